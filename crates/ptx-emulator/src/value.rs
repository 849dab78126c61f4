//! Arithmetic of single lanes and rows, free of any state.

pub(crate) mod approx;
pub(crate) mod convert;
pub(crate) mod float;
pub(crate) mod half;
pub(crate) mod int;
pub(crate) mod kernel;
pub(crate) mod mma;
pub(crate) mod round;
