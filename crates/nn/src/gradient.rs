//! Placeholder while the interpreter is written.
use tensor_core::Tensor;

/// Gradients of a model's parameters.
pub struct Gradients;

/// The value without its history.
pub fn stop_gradient(x: &Tensor) -> Tensor {
    x.clone()
}
