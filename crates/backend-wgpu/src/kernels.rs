//! One file per kernel: what it is given, how it is dispatched, and what is pasted into its skeleton.

pub(crate) mod context;
pub(crate) mod conv;
pub(crate) mod create;
pub(crate) mod cross_entropy;
pub(crate) mod custom;
pub(crate) mod extremum;
pub(crate) mod indexing;
pub(crate) mod map;
pub(crate) mod matmul;
pub(crate) mod moves;
pub(crate) mod normalize;
pub(crate) mod order;
pub(crate) mod pool;
pub(crate) mod product;
pub(crate) mod reduce;
pub(crate) mod rows;
pub(crate) mod scan;
pub(crate) mod softmax;
pub(crate) mod sort;
pub(crate) mod update;

pub(crate) use context::{Context, block, storage};
