//! Ops that pick by index: the gradient goes where the value came from.

use tensor_core::Result;
use tensor_core::op::{Gather, ScatterAdd, Sort};

use super::Step;

pub(super) fn gather(gather: &Gather, step: &mut Step<'_>) -> Result<()> {
    step.give(0, step.zeros_like(0)?.scatter_add(gather.axis, step.input(1), step.g())?)
}

pub(super) fn scatter_add(scatter: &ScatterAdd, step: &mut Step<'_>) -> Result<()> {
    let g = step.g();
    step.give(0, g.clone())?;
    if step.wants(2) {
        step.give(2, g.gather(scatter.axis, step.input(1))?)?;
    }
    Ok(())
}

pub(super) fn sort(sort: &Sort, step: &mut Step<'_>) -> Result<()> {
    step.give(0, step.zeros_like(0)?.scatter_add(sort.axis, step.output(1), step.g())?)
}
