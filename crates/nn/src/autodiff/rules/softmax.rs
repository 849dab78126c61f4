//! Softmax, its logarithm, and the cross-entropy of logits.

use tensor_core::op::{Reduce, ReduceKind, Softmax};
use tensor_core::{Dims, Op, Result};

use super::{Step, formula, run, zip};

/// y = softmax x: ∂x = y·(g − Σ g·y). y = log_softmax x: ∂x = g − eʸ·Σ g.
pub(super) fn softmax(softmax: &Softmax, step: &mut Step<'_>) -> Result<()> {
    let (y, g) = (step.output(0), step.g());
    if softmax.log {
        let sum = g.sum_keepdim(softmax.axis)?;
        return step.give(0, zip("log_softmax", formula!(|[y, g, sum]| g - y.exp() * sum), &[y, g, &sum])?);
    }
    let reduce = Reduce {
        name: "softmax",
        kind: ReduceKind::Sum,
        axes: Dims::from_elem(softmax.axis, 1),
        keepdim: true,
        producer: formula!(|[y, g]| y * g).clone(),
    };
    let sum = run(&Op::Reduce(reduce), &[y, g])?;
    step.give(0, zip("softmax", formula!(|[y, g, sum]| y * (g - sum)), &[y, g, &sum])?)
}

/// y = −log_softmax(x)[target]: ∂x = g·(softmax x − one-hot target).
pub(super) fn cross_entropy(step: &mut Step<'_>) -> Result<()> {
    let g = step.g().unsqueeze(-1)?;
    let (logits, target) = (step.input(0), step.input(1).unsqueeze(-1)?);
    let weighted = logits.softmax(-1)?.mul(&g)?;
    step.give(0, weighted.scatter_add(-1, &target, &g.neg()?)?)
}
