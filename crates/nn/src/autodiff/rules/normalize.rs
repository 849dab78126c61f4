//! Normalisation: its main output through the adjoint op, its moments by formula.

use tensor_core::op::{Normalize, NormalizeGrad};
use tensor_core::{Op, Result, zip_n};

use super::{Step, run};

/// Outputs y = (x − mean)·rstd, rstd and mean over n elements: ∂rstd/∂x = −rstd²·y/n, ∂mean/∂x = 1/n.
pub(super) fn normalize(normalize: &Normalize, step: &mut Step<'_>) -> Result<()> {
    let (y, rstd) = (step.output(0), step.output(1));
    let n = normalize.axes.iter().map(|&a| y.dims()[a]).product::<usize>() as f64;
    let grads = step.grads;
    if let Some(g) = &grads[0] {
        let grad = NormalizeGrad { axes: normalize.axes.clone(), center: normalize.center };
        step.give(0, run(&Op::NormalizeGrad(grad), &[g, y, rstd])?)?;
    }
    if let Some(g) = &grads[1] {
        step.give(0, zip_n([g, y, rstd], |[g, y, rstd]| -(g * rstd * rstd * y) / n)?)?;
    }
    if let Some(g) = grads.get(2).and_then(Option::as_ref) {
        step.give(0, g.div(n)?.expand(y.shape())?)?;
    }
    Ok(())
}
