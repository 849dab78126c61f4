//! Placeholder.
use tensor_core::Tensor;

/// The interpreter.
pub struct Autodiff;

pub(crate) fn replayed(f: impl FnOnce() -> Tensor) -> Tensor {
    f()
}

pub(crate) fn is_replaying() -> bool {
    false
}
