//! One file per kernel: what it is given, how it is launched, and what is pasted into its skeleton.

pub(crate) mod attention;
pub(crate) mod context;
pub(crate) mod contract;
pub(crate) mod copy;
pub(crate) mod counter;
pub(crate) mod create;
pub(crate) mod cross_entropy;
pub(crate) mod custom;
pub(crate) mod extremum;
pub(crate) mod indexing;
pub(crate) mod map;
pub(crate) mod matmul;
pub(crate) mod normalize;
pub(crate) mod pool;
pub(crate) mod reduce;
pub(crate) mod rows;
pub(crate) mod scan;
pub(crate) mod softmax;
pub(crate) mod sort;
pub(crate) mod text;
pub(crate) mod update;
pub(crate) mod vector;

pub(crate) use context::{Context, address, storage};
pub(crate) use text::{Text, names};
