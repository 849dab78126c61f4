//! Ops that pick by index: the gradient goes where the value came from.

use smallvec::smallvec;
use tensor_core::Result;
use tensor_core::op::{Gather, ScatterAdd, Sort};

use super::{Grads, Step};

pub(super) fn gather(gather: &Gather, step: &Step<'_>) -> Result<Grads> {
    let g = step.g()?;
    let gradient = step.zeros_like(0)?.scatter_add(gather.axis, step.input(1), g)?;
    Ok(smallvec![Some(gradient), None])
}

pub(super) fn scatter_add(scatter: &ScatterAdd, step: &Step<'_>) -> Result<Grads> {
    let g = step.g()?;
    let by_source = if step.wants(2) { Some(g.gather(scatter.axis, step.input(1))?) } else { None };
    Ok(smallvec![Some(g.clone()), None, by_source])
}

pub(super) fn sort(sort: &Sort, step: &Step<'_>) -> Result<Grads> {
    step.only(|g| step.zeros_like(0)?.scatter_add(sort.axis, step.output(1), g))
}
