//! Normalisation: its main output through the adjoint op, its moments by formula.

use tensor_core::op::{Normalize, NormalizeGrad};
use tensor_core::{Op, Result, Tensor};

use super::{Grads, Step, run};

/// Outputs y = (x − mean)·rstd, rstd and mean over n elements: ∂rstd/∂x = −rstd²·y/n, ∂mean/∂x = 1/n.
pub(super) fn normalize(normalize: &Normalize, step: &Step<'_>) -> Result<Grads> {
    let (y, rstd) = (step.output(0), step.output(1));
    let n = normalize.axes.iter().map(|&a| y.dims()[a]).product::<usize>() as f64;
    let mut sum: Option<Tensor> = None;
    let mut add = |gradient: Tensor| -> Result<()> {
        sum = Some(match &sum {
            Some(sum) => sum.add(&gradient)?,
            None => gradient,
        });
        Ok(())
    };
    if let Some(g) = step.grad(0) {
        let grad = NormalizeGrad { axes: normalize.axes.clone(), center: normalize.center };
        add(run(&Op::NormalizeGrad(grad), &[g, y, rstd])?)?;
    }
    if let Some(g) = step.grad(1) {
        add(tensor_core::zip_n([g, y, rstd], |[g, y, rstd]| -(g * rstd * rstd * y) / n)?)?;
    }
    if let Some(g) = step.grads.get(2).and_then(Option::as_ref) {
        add(g.div(n)?.expand(y.shape())?)?;
    }
    Ok(smallvec::smallvec![sum])
}
