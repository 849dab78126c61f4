//! Six networks and how a training step of each is timed: for the benchmark here, and for the program that checks GPUs.

#![forbid(unsafe_code)]

mod gpt;
mod measure;
mod workloads;

pub use measure::Protocol;
pub use workloads::{Run, WORKLOADS, names};
