//! Pooling over the whole of an image.

use tensor_core::{Error, Result, Tensor};

use crate::{Forward, Module};

/// y = the mean over all spatial axes: [N, C, L…] → [N, C], ready for a [`crate::Linear`] (Lin et al., 2013).
#[derive(Module, Clone, Copy, Debug, Default)]
pub struct GlobalAvgPool;

/// y = the maximum over all spatial axes: [N, C, L…] → [N, C]. Of equals the first has the gradient.
#[derive(Module, Clone, Copy, Debug, Default)]
pub struct GlobalMaxPool;

impl Forward for GlobalAvgPool {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        flat("global_avg_pool", x)?.mean(2)
    }
}

impl Forward for GlobalMaxPool {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        flat("global_max_pool", x)?.max(2)
    }
}

/// [N, C, L…] as [N, C, L].
fn flat(op: &'static str, x: &Tensor) -> Result<Tensor> {
    if x.rank() < 3 {
        return Err(Error::shape(op, format!("input must be [N, C, spatial..]: input {}", x.shape())));
    }
    x.flatten(2..)
}
