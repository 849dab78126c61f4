//! Losses of single elements: of the error e = prediction − target.

use tensor_core::{Error, Result, Tensor};

use super::{Reduction, reduced, same_shape};

/// The mean of e².
///
/// # Shapes
/// Prediction and target have one shape; the result is a scalar.
///
/// # Errors
/// If the shapes or dtypes differ, the dtype is not a float, or there is no element.
pub fn mse(prediction: &Tensor, target: &Tensor) -> Result<Tensor> {
    Mse::default().loss(prediction, target)
}

/// The mean of |e|. The gradient at 0 is 0.
///
/// # Errors
/// As [`mse`].
pub fn mae(prediction: &Tensor, target: &Tensor) -> Result<Tensor> {
    Mae::default().loss(prediction, target)
}

/// The mean of e²/2 where |e| ≤ 1, else |e| − ½. For another threshold see [`Huber`].
///
/// # Errors
/// As [`mse`].
pub fn huber(prediction: &Tensor, target: &Tensor) -> Result<Tensor> {
    Huber::default().loss(prediction, target)
}

/// [`huber`] with threshold 1. For another see [`SmoothL1`], which scales differently.
///
/// # Errors
/// As [`mse`].
pub fn smooth_l1(prediction: &Tensor, target: &Tensor) -> Result<Tensor> {
    SmoothL1::default().loss(prediction, target)
}

/// e².
#[derive(Clone, Copy, Debug, Default)]
pub struct Mse {
    /// What becomes of the elements; [`Reduction::Mean`].
    pub reduction: Reduction,
}

impl Mse {
    /// The loss.
    ///
    /// # Errors
    /// As [`mse`].
    pub fn loss(&self, prediction: &Tensor, target: &Tensor) -> Result<Tensor> {
        same_shape("mse", prediction, target)?;
        reduced("mse", self.reduction, [prediction, target], |[p, t]| (p - t).square())
    }
}

/// |e|.
#[derive(Clone, Copy, Debug, Default)]
pub struct Mae {
    /// What becomes of the elements; [`Reduction::Mean`].
    pub reduction: Reduction,
}

impl Mae {
    /// The loss.
    ///
    /// # Errors
    /// As [`mse`].
    pub fn loss(&self, prediction: &Tensor, target: &Tensor) -> Result<Tensor> {
        same_shape("mae", prediction, target)?;
        reduced("mae", self.reduction, [prediction, target], |[p, t]| (p - t).abs())
    }
}

/// e²/2 where |e| ≤ δ, else δ(|e| − δ/2) (Huber, 1964).
#[derive(Clone, Copy, Debug)]
pub struct Huber {
    /// Where the square becomes a line; 1.
    pub delta: f64,
    /// What becomes of the elements; [`Reduction::Mean`].
    pub reduction: Reduction,
}

impl Default for Huber {
    fn default() -> Self {
        Self { delta: 1.0, reduction: Reduction::Mean }
    }
}

impl Huber {
    /// The loss.
    ///
    /// # Errors
    /// As [`mse`], or if δ is not positive.
    pub fn loss(&self, prediction: &Tensor, target: &Tensor) -> Result<Tensor> {
        same_shape("huber", prediction, target)?;
        let delta = positive("huber", "delta", self.delta)?;
        reduced("huber", self.reduction, [prediction, target], |[p, t]| {
            let e = p - t;
            e.abs().le(delta).select(e.square() * 0.5, (e.abs() - 0.5 * delta) * delta)
        })
    }
}

/// e²/(2β) where |e| < β, else |e| − β/2: [`Huber`] over β (Girshick, 2015).
#[derive(Clone, Copy, Debug)]
pub struct SmoothL1 {
    /// Where the square becomes a line; 1.
    pub beta: f64,
    /// What becomes of the elements; [`Reduction::Mean`].
    pub reduction: Reduction,
}

impl Default for SmoothL1 {
    fn default() -> Self {
        Self { beta: 1.0, reduction: Reduction::Mean }
    }
}

impl SmoothL1 {
    /// The loss.
    ///
    /// # Errors
    /// As [`mse`], or if β is not positive.
    pub fn loss(&self, prediction: &Tensor, target: &Tensor) -> Result<Tensor> {
        same_shape("smooth_l1", prediction, target)?;
        let beta = positive("smooth_l1", "beta", self.beta)?;
        reduced("smooth_l1", self.reduction, [prediction, target], |[p, t]| {
            let e = p - t;
            e.abs().lt(beta).select(e.square() * (0.5 / beta), e.abs() - 0.5 * beta)
        })
    }
}

fn positive(op: &'static str, name: &str, value: f64) -> Result<f64> {
    if value > 0.0 && value.is_finite() {
        return Ok(value);
    }
    Err(Error::value(op, format!("{name} must be positive: {name} {value:?}; use mae for 0")))
}
