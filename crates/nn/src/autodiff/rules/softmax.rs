//! Softmax, its logarithm, and the cross-entropy of logits.

use smallvec::smallvec;
use tensor_core::op::{Reduce, ReduceKind, Softmax};
use tensor_core::{Dims, Op, Result, Tensor};

use super::{Grads, Step, formula, run, zip};

/// y = softmax x: ∂x = y·(g − Σ g·y). y = log_softmax x: ∂x = g − eʸ·Σ g.
pub(super) fn softmax(softmax: &Softmax, step: &Step<'_>) -> Result<Grads> {
    step.only(|g| {
        let y = step.output(0);
        if softmax.log {
            let sum = g.sum_keepdim(softmax.axis)?;
            return zip("log_softmax", formula!(|[y, g, sum]| g - y.exp() * sum), &[y, g, &sum]);
        }
        let reduce = Reduce {
            name: "softmax",
            kind: ReduceKind::Sum,
            axes: Dims::from_elem(softmax.axis, 1),
            keepdim: true,
            producer: formula!(|[y, g]| y * g).clone(),
        };
        let sum = run(&Op::Reduce(reduce), &[y, g])?;
        zip("softmax", formula!(|[y, g, sum]| y * (g - sum)), &[y, g, &sum])
    })
}

/// y = −log_softmax(x)[target]: ∂x = g·(softmax x − one-hot target).
pub(super) fn cross_entropy(step: &Step<'_>) -> Result<Grads> {
    let g = step.g()?.unsqueeze(-1)?;
    let (logits, target) = (step.input(0), step.input(1).unsqueeze(-1)?);
    let weighted: Tensor = logits.softmax(-1)?.mul(&g)?;
    Ok(smallvec![Some(weighted.scatter_add(-1, &target, &g.neg()?)?), None])
}
