//! Softmax, cross-entropy, normalisation and attention: ops that a backend may run in one pass.

use super::first;
use crate::op::{Attention, CrossEntropy, Normalize, Softmax};
use crate::{IntoAxes, IntoAxis, Op, Result, Tensor, execute};

/// How [`Tensor::attention`] attends.
#[derive(Clone, Debug, Default)]
pub struct AttentionOptions<'a> {
    /// What scores are multiplied with; 1/√D unless given.
    pub scale: Option<f64>,
    /// Whether a position sees only itself and those before it.
    pub causal: bool,
    /// Bool, broadcasting to [.., T, S]: true where a query may attend to a key.
    pub mask: Option<&'a Tensor>,
}

impl Tensor {
    /// eˣ / Σ eˣ along `axis`.
    ///
    /// # Errors
    /// If the axis is out of range, or the dtype is not a float.
    pub fn softmax(&self, axis: impl IntoAxis) -> Result<Tensor> {
        let axis = axis.resolve_axis("softmax", self.rank())?;
        self.run(&Op::Softmax(Softmax { axis, log: false }))
    }

    /// x − ln Σ eˣ along `axis`.
    ///
    /// # Errors
    /// If the axis is out of range, or the dtype is not a float.
    pub fn log_softmax(&self, axis: impl IntoAxis) -> Result<Tensor> {
        let axis = axis.resolve_axis("log_softmax", self.rank())?;
        self.run(&Op::Softmax(Softmax { axis, log: true }))
    }

    /// `−log_softmax(x)[target]` per row: logits `[.., C]` and class indices `[..]` give `[..]`.
    ///
    /// # Errors
    /// If the target does not have the logits' shape without the last axis, or is not i64 or i32. A class out of range
    /// is an error on the CPU.
    pub fn cross_entropy(&self, target: &Tensor) -> Result<Tensor> {
        first(execute(&Op::CrossEntropy(CrossEntropy), &[self, target]))
    }

    /// (x − mean)/√(variance + ε), moments over the axes: the core of layer, batch and group norm.
    ///
    /// # Errors
    /// If an axis is out of range or named twice, or the dtype is not a float.
    pub fn normalize(&self, axes: impl IntoAxes, epsilon: f64) -> Result<Tensor> {
        let axes = axes.resolve_axes("normalize", self.rank())?;
        self.run(&Op::Normalize(Normalize { axes, epsilon, center: true }))
    }

    /// x/√(mean square + ε), the mean over the axes: the core of RMS norm.
    ///
    /// # Errors
    /// If an axis is out of range or named twice, or the dtype is not a float.
    pub fn rms_normalize(&self, axes: impl IntoAxes, epsilon: f64) -> Result<Tensor> {
        let axes = axes.resolve_axes("normalize", self.rank())?;
        self.run(&Op::Normalize(Normalize { axes, epsilon, center: false }))
    }

    /// softmax(scale·q·kᵀ)·v for this query [.., T, D], key [.., S, D] and value [.., S, E]: [.., T, E].
    ///
    /// # Errors
    /// If the shapes do not fit, the dtypes differ or are not floats, or the mask is not bool.
    pub fn attention(&self, key: &Tensor, value: &Tensor, options: &AttentionOptions<'_>) -> Result<Tensor> {
        let d = self.dims().last().copied().unwrap_or(1);
        let scale = options.scale.unwrap_or_else(|| (d as f64).sqrt().recip());
        let op = Op::Attention(Attention { scale, causal: options.causal });
        first(match options.mask {
            Some(mask) => execute(&op, &[self, key, value, mask]),
            None => execute(&op, &[self, key, value]),
        })
    }
}
