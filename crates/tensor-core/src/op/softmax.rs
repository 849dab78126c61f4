//! Softmax along an axis, or its logarithm.

use smallvec::smallvec;

use super::{Contract, Keeps, Meta, Metas, Record, Tensors, axis_in, exactly, float, one};
use crate::expr::build;
use crate::{Dims, Result, Tensor, zip};

/// y_i = e^(x_i − max) / Σ_j e^(x_j − max) along `axis`, or x_i − max − ln Σ_j e^(x_j − max).
#[derive(Clone, Debug)]
pub struct Softmax {
    /// The resolved axis.
    pub axis: usize,
    /// The logarithm.
    pub log: bool,
}

impl Softmax {
    fn op_name(&self) -> &'static str {
        if self.log { "log_softmax" } else { "softmax" }
    }
}

impl Record for Softmax {
    fn name(&self) -> &str {
        self.op_name()
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Metas> {
        let [x] = exactly(inputs, self.op_name())?;
        axis_in(self.op_name(), self.axis, x.shape.rank())?;
        float(self.op_name(), "input", x.dtype)?;
        one(x.shape.clone(), x.dtype)
    }

    fn contract(&self) -> Contract {
        Contract::composite()
    }

    fn keeps(&self) -> Keeps {
        Keeps { inputs: 0, outputs: 1 }
    }

    fn decompose(&self, inputs: &[&Tensor]) -> Option<Result<Tensors>> {
        Some((|| {
            if inputs[0].is_empty() {
                return Ok(smallvec![inputs[0].clone()]);
            }
            let dtype = inputs[0].dtype();
            let x = &inputs[0].cast(dtype.compute())?;
            let max = x.max_keepdim(self.axis)?;
            let shifted = zip(x, &max, |x, max| x - max)?;
            let y = if self.log {
                let axes = Dims::from_elem(self.axis, 1);
                let sum = shifted.summed("log_softmax", &axes, true, &build(|[x]| x.exp()), &[])?;
                zip(&shifted, &sum, |x, sum| x - sum.ln())?
            } else {
                let e = shifted.exp()?;
                e.div(&e.sum_keepdim(self.axis)?)?
            };
            Ok(smallvec![y.cast(dtype)?])
        })())
    }
}
