//! The CPU backend: every op and every dtype, vectorised for the processor it finds itself on and spread over threads.
//!
//! One file per op under `kernels/`; memory comes from one pool ([`Pool`]), threads from one place ([`threads`]), and
//! vector instructions from one place ([`simd`], which alone holds `unsafe`). Deliberately absent: shapes, dtypes and
//! their errors (core decides them), and derivatives.

mod backend;
pub(crate) mod eval;
mod kernels;
mod pool;
pub mod simd;
mod storage;
pub mod test_device;
pub mod threads;

pub use backend::{Context, CpuBackend, device};
pub use pool::Pool;
pub use storage::{Buffer, Elem, input};
pub use test_device::test_device;
