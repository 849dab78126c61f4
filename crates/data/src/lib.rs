//! Data sets, samplers and loaders: from files to batches on a device.
//!
//! A [`Dataset`] knows its length and the observation at an index; [`split`], [`map`] and their kin make sets of sets;
//! a [`DataLoader`] makes batches of one, ahead of time and in a reproducible order. Files are read by [`read_idx`],
//! [`read_npy`], [`read_npz`] and [`Csv`]; [`Digits`] needs no file. Deliberately absent: downloads.
#![forbid(unsafe_code)]

mod adapt;
mod batch;
mod collate;
mod dataset;
mod digits;
mod loader;
mod rng;
mod sampler;
mod source;
mod subset;
mod tensors;
mod transform;

pub use adapt::{Concat, Map, Windows, Zip, concat, map, windows, zip};
pub use batch::Batch;
pub use collate::{Collate, List, OnDevice, Pad, Single, Stack, Then, With};
pub use dataset::Dataset;
pub use digits::Digits;
pub use loader::{Batches, DataLoader, Position};
pub use rng::Rng;
pub use sampler::{BatchSampler, Sampler, Sequential, Shuffled, Weighted};
pub use source::csv::{Column, Csv, Missing, Table, Type};
pub use source::idx::read_idx;
pub use source::npy::read_npy;
pub use source::npz::read_npz;
pub use subset::{Subset, k_folds, oversample, shuffle, split, split_stratified, subset, undersample};
pub use tensors::TensorDataset;
pub use transform::{Rescale, Standardize};
