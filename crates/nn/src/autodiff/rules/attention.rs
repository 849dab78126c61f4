//! Attention: by query, key and value through the adjoint op.

use tensor_core::op::{Attention, AttentionGrad};
use tensor_core::{Op, Result, execute};

use super::{Step, zeros};

/// The gradient by the rows' lse goes into delta: lse changes by P where scores do.
pub(super) fn attention(attention: &Attention, step: &mut Step<'_>) -> Result<()> {
    let (attended, lse, grads) = (step.output(0), step.output(1), step.grads);
    let nothing;
    let g = match (&grads[0], &grads[1]) {
        (Some(g), _) => g,
        (None, Some(other)) => {
            nothing = zeros(attended.shape(), attended.dtype(), other)?;
            &nothing
        }
        (None, None) => return Ok(()),
    };
    let delta = AttentionGrad::delta(attended, g, grads[1].as_ref())?;
    let mut inputs = vec![step.input(0), step.input(1), step.input(2), lse, g, &delta];
    if step.inputs.len() > 3 {
        inputs.push(step.input(3));
    }
    let op = Op::AttentionGrad(AttentionGrad { scale: attention.scale, causal: attention.causal });
    for (i, gradient) in execute(&op, &inputs)?.into_iter().enumerate() {
        step.give(i, gradient)?;
    }
    Ok(())
}
