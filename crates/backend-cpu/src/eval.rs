//! Elementwise expressions over chunks: one tight vectorised loop per node, its operands in registers of a thousand
//! elements that stay in the first-level cache, so that a fused chain reads and writes memory once.
//!
//! [`Evaluator`] is an expression made ready for input types; [`Bound`] ties it to inputs and a shape; a [`Worker`] of
//! one thread computes any range of the result. Used by `map`, by `update`, and by kernels that fuse a producer or an
//! epilogue.

mod arithmetic;
mod bound;
mod convert;
mod lane;
mod plan;
mod space;
mod vector;
mod worker;

pub(crate) use bound::{Bound, Evaluator, Input};
pub(crate) use convert::{narrow, widen};
pub(crate) use lane::{Lane, LaneType, Stored};
pub(crate) use worker::Worker;

/// Elements in a register. Ranges need not be multiples of it.
pub(crate) const CHUNK: usize = 1024;

#[cfg(test)]
mod tests;
