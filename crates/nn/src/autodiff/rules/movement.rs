//! Movements, joining and padding: the gradient takes the way back.

use tensor_core::op::{Concat, Pad};
use tensor_core::{Dims, Movement, Number, Op, Result, Shape, Tensor};

use super::{Step, run, unbroadcast, zeros};

pub(in super::super) fn movement(movement: &Movement, step: &mut Step<'_>) -> Result<()> {
    let (g, shape) = (step.g(), step.shape(0));
    let gradient = match movement {
        Movement::Reshape(_) => g.reshape(shape)?,
        Movement::Permute(axes) => unpermute(g, axes)?,
        Movement::Expand(_) => unbroadcast(g, shape)?,
        &Movement::Slice { axis, start, len, step } => unslice(g, shape, axis, start, len, step)?,
    };
    step.give(0, gradient)
}

/// The inverse of `permute(axes)`.
pub(super) fn unpermute(x: &Tensor, axes: &[usize]) -> Result<Tensor> {
    let mut inverse = Dims::from_elem(0, axes.len());
    axes.iter().enumerate().for_each(|(i, &axis)| inverse[axis] = i);
    x.view(&Movement::Permute(inverse))
}

/// The elements back at their positions among zeros.
fn unslice(g: &Tensor, shape: &Shape, axis: usize, start: usize, len: usize, step: isize) -> Result<Tensor> {
    if len == 0 {
        return zeros(shape, g.dtype(), g);
    }
    let stride = step.unsigned_abs();
    let span = (len - 1) * stride + 1;
    let (g, start) = if step < 0 { (g.flip(axis)?, start + 1 - span) } else { (g.clone(), start) };
    let rank = shape.rank();
    let mut pad = Pad {
        before: Dims::from_elem(0, rank),
        after: Dims::from_elem(0, rank),
        interior: Dims::from_elem(0, rank),
        value: Number::Int(0),
    };
    pad.before[axis] = start;
    pad.interior[axis] = stride - 1;
    pad.after[axis] = shape[axis] - start - span;
    run(&Op::Pad(pad), &[&g])
}

pub(super) fn concat(concat: &Concat, step: &mut Step<'_>) -> Result<()> {
    let mut start = 0;
    for i in 0..step.inputs.len() {
        let len = step.shape(i)[concat.axis];
        if step.wants(i) {
            step.give(i, step.g().narrow(concat.axis, start, len)?)?;
        }
        start += len;
    }
    Ok(())
}

pub(super) fn pad(pad: &Pad, step: &mut Step<'_>) -> Result<()> {
    let mut g = step.g().clone();
    for (axis, &n) in step.shape(0).iter().enumerate() {
        let step = pad.interior[axis] as isize + 1;
        g = g.view(&Movement::Slice { axis, start: pad.before[axis], len: n, step })?;
    }
    step.give(0, g)
}
