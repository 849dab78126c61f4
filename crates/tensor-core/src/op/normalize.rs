//! Normalisation over a set of axes: the shared core of layer, batch, group, instance and RMS norm.

use smallvec::smallvec;

use super::{Contract, Keeps, Meta, Metas, Record, Tensors, exactly, float, one, same_dtype};
use crate::{Dims, Error, Result, Tensor, zip_n};

/// y = (x − mean)·rstd with rstd = 1/√(variance + ε), moments over `axes` (variance without correction); without
/// `center`, y = x·rstd with rstd = 1/√(mean square + ε).
///
/// Outputs: y, rstd and, with `center`, mean (both with the axes kept at size 1). Moments are taken so that values
/// up to the dtype's largest square root, and beyond in f32, do not overflow: 16-bit floats accumulate in f32.
#[derive(Clone, Debug)]
pub struct Normalize {
    /// Resolved axes, ascending.
    pub axes: Dims,
    /// Added to the variance.
    pub epsilon: f64,
    /// Subtract the mean.
    pub center: bool,
}

impl Record for Normalize {
    fn name(&self) -> &str {
        "normalize"
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Metas> {
        let [x] = exactly(inputs, "normalize")?;
        float("normalize", "input", x.dtype)?;
        if let Some(&axis) = self.axes.iter().find(|&&a| a >= x.shape.rank()) {
            return Err(Error::axis(
                "normalize",
                format!("axis is out of range: axis {axis}, rank {}", x.shape.rank()),
            ));
        }
        let moment = Meta::new(x.shape.reduced(&self.axes, true), x.dtype);
        if self.center { Ok(smallvec![x.clone(), moment.clone(), moment]) } else { Ok(smallvec![x.clone(), moment]) }
    }

    fn contract(&self) -> Contract {
        Contract::composite()
    }

    fn keeps(&self) -> Keeps {
        Keeps { inputs: 0, outputs: 0b11 }
    }

    fn decompose(&self, inputs: &[&Tensor]) -> Option<Result<Tensors>> {
        Some((|| {
            // 16-bit floats would lose the moments: f32 throughout, and one rounding at the end.
            let dtype = inputs[0].dtype();
            let x = &inputs[0].cast(dtype.compute())?;
            let (mean, centered) = if self.center {
                let mean = x.mean_keepdim(&self.axes[..])?;
                (Some(mean.clone()), x.sub(&mean)?)
            } else {
                (None, x.clone())
            };
            let epsilon = self.epsilon;
            let rstd = centered.mean_square_keepdim(&self.axes[..])?.map(|v| (v + epsilon).rsqrt())?;
            let y = centered.mul(&rstd)?;
            [Some(y), Some(rstd), mean].into_iter().flatten().map(|x| x.cast(dtype)).collect()
        })())
    }
}

/// Inputs: grad (of y), y, rstd; gives rstd·(g − mean(g) − y·mean(g·y)), means over `axes`; without `center` no
/// mean(g): the adjoint of [`Normalize`] by its input.
#[derive(Clone, Debug)]
pub struct NormalizeGrad {
    /// Resolved axes, ascending.
    pub axes: Dims,
    /// Whether the normalisation subtracted the mean.
    pub center: bool,
}

impl Record for NormalizeGrad {
    fn name(&self) -> &str {
        "normalize_grad"
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Metas> {
        let [g, y, rstd] = exactly(inputs, "normalize_grad")?;
        same_dtype("normalize_grad", ("grad", g.dtype), ("y", y.dtype))?;
        same_dtype("normalize_grad", ("grad", g.dtype), ("rstd", rstd.dtype))?;
        float("normalize_grad", "grad", g.dtype)?;
        if g.shape != y.shape || rstd.shape != y.shape.reduced(&self.axes, true) {
            return Err(Error::shape(
                "normalize_grad",
                format!("shapes do not fit: grad {}, y {}, rstd {}", g.shape, y.shape, rstd.shape),
            ));
        }
        one(g.shape.clone(), g.dtype)
    }

    fn contract(&self) -> Contract {
        Contract::composite()
    }

    fn keeps(&self) -> Keeps {
        Keeps { inputs: 0b111, outputs: 0 }
    }

    fn decompose(&self, inputs: &[&Tensor]) -> Option<Result<Tensors>> {
        Some((|| {
            let dtype = inputs[0].dtype();
            let wide = |i: usize| inputs[i].cast(dtype.compute());
            let (g, y, rstd) = (&wide(0)?, &wide(1)?, &wide(2)?);
            let gy = g.mul(y)?.mean_keepdim(&self.axes[..])?;
            let dx = if self.center {
                let mean = g.mean_keepdim(&self.axes[..])?;
                zip_n([g, y, rstd, &gy, &mean], |[g, y, rstd, gy, mean]| rstd * (g - mean - y * gy))?
            } else {
                zip_n([g, y, rstd, &gy], |[g, y, rstd, gy]| rstd * (g - y * gy))?
            };
            Ok(smallvec![dx.cast(dtype)?])
        })())
    }
}
