//! Formulas of the user's own, and ops of the user's own.

use std::sync::Arc;

use super::first;
use crate::expr::build;
use crate::op::{CustomOp, Map};
use crate::{Op, Result, Sym, Tensor, execute};

impl Tensor {
    /// f(x), elementwise, in one kernel on every backend, and differentiable.
    ///
    /// # Errors
    /// If the dtype has no such function.
    ///
    /// # Panics
    /// If `f` uses a symbol of another closure.
    pub fn map(&self, f: impl FnOnce(Sym) -> Sym) -> Result<Tensor> {
        self.run(&Op::Map(Map::new("map", build(|[x]| f(x)))))
    }
}

/// f(a, b), elementwise over the broadcast tensors, in one kernel on every backend, and differentiable.
///
/// # Errors
/// If the shapes do not broadcast, or the dtypes do not fit.
pub fn zip(a: &Tensor, b: &Tensor, f: impl FnOnce(Sym, Sym) -> Sym) -> Result<Tensor> {
    zip_named("zip", a, b, f)
}

/// [`zip`] under a name of its own for errors and profiles.
pub(crate) fn zip_named(name: &'static str, a: &Tensor, b: &Tensor, f: impl FnOnce(Sym, Sym) -> Sym) -> Result<Tensor> {
    first(execute(&Op::Map(Map::new(name, build(|[a, b]| f(a, b)))), &[a, b]))
}

/// f over any number of tensors, elementwise: `zip_n([&a, &b, &c], |[a, b, c]| a * b + c)`.
///
/// # Errors
/// If the shapes do not broadcast, or the dtypes do not fit.
pub fn zip_n<const N: usize>(inputs: [&Tensor; N], f: impl FnOnce([Sym; N]) -> Sym) -> Result<Tensor> {
    first(execute(&Op::Map(Map::new("zip", build(f))), &inputs))
}

/// Runs a user's own op: `custom(Arc::new(MyOp), &[&x, &y])`.
///
/// # Errors
/// What the op's `infer` and kernel report, and a device that it has no kernel for.
pub fn custom(op: Arc<dyn CustomOp>, inputs: &[&Tensor]) -> Result<Vec<Tensor>> {
    Ok(execute(&Op::Custom(op), inputs)?.into_vec())
}
