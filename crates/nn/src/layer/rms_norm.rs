//! Normalisation by the root mean square.

use tensor_core::{IntoShape, Param, Place, Result, Shape, Tensor};

use super::norm::{affine, joined, last_axes, normalize};
use crate::init::Init;
use crate::{Forward, Module};

/// y = x/√(mean of x² + ε)·weight, the mean over the last axes of each element.
///
/// # Shapes
/// | | shape |
/// |---|---|
/// | input, output | [.., D…] |
///
/// # Parameters
/// | | shape | starts as |
/// |---|---|---|
/// | `weight` | [D…] | 1 |
///
/// # Errors
/// If the input's last axes are not D….
///
/// # Source
/// Zhang and Sennrich, 2019.
#[derive(Module, Clone, Debug)]
#[module(describe = Self::settings)]
pub struct RmsNorm {
    /// [D…].
    pub weight: Option<Param>,
    #[module(skip)]
    shape: Shape,
    #[module(skip)]
    epsilon: Option<f64>,
}

/// Options of [`RmsNorm::with`].
#[derive(Clone, Copy, Debug)]
pub struct RmsNormOptions {
    /// Added to the mean square; as in PyTorch, the rounding step of the dtype that it is computed in.
    pub epsilon: Option<f64>,
    /// Whether there is a weight; true.
    pub affine: bool,
}

impl Default for RmsNormOptions {
    fn default() -> Self {
        Self { epsilon: None, affine: true }
    }
}

impl RmsNorm {
    /// A layer over the last axes, which have this shape: `64`, or `[3, 4]`.
    ///
    /// # Errors
    /// If the dtype is not a float, or the device has no memory.
    pub fn new(shape: impl IntoShape, place: impl Place) -> Result<Self> {
        Self::with(shape, RmsNormOptions::default(), place)
    }

    /// A layer with options.
    ///
    /// # Errors
    /// As [`RmsNorm::new`].
    pub fn with(shape: impl IntoShape, options: RmsNormOptions, place: impl Place) -> Result<Self> {
        let shape = shape.into_shape("rms_norm")?;
        let (device, dtype) = super::float_place("rms_norm", place)?;
        let weight = options.affine.then(|| Init::ONES.tensor(&shape, (&device, dtype)).map(Param::new)).transpose()?;
        Ok(Self { weight, shape, epsilon: options.epsilon })
    }

    fn settings(&self) -> String {
        format!("RmsNorm({})", joined(&self.shape))
    }
}

impl Forward for RmsNorm {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let axes = last_axes(|| format!("rms_norm({})", joined(&self.shape)), x, &self.shape)?;
        let epsilon = self.epsilon.unwrap_or(x.dtype().compute().epsilon());
        let y = super::only(normalize(x, axes, epsilon, false))?;
        affine("rms_norm", y, self.weight.as_ref(), None, &self.shape)
    }
}
