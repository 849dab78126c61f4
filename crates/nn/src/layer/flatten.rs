//! From images to rows.

use tensor_core::{Result, Tensor};

use crate::{Forward, Module};

/// y = x with all axes after the first joined: [N, C, H, W] → [N, C·H·W]. Moves no data.
#[derive(Module, Clone, Copy, Debug, Default)]
pub struct Flatten;

impl Forward for Flatten {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        x.flatten(1..)
    }
}
