//! Layer normalisation.

use tensor_core::{IntoShape, Param, Place, Result, Shape, Tensor};

use super::norm::{affine, joined, last_axes, normalize};
use crate::init::Init;
use crate::{Forward, Module};

/// y = (x − mean)/√(variance + ε)·weight + bias, moments over the last axes of each element (variance without correction).
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
/// | `bias` | [D…] | 0 |
///
/// # Errors
/// If the input's last axes are not D….
///
/// # Source
/// Ba et al., 2016.
#[derive(Module, Clone, Debug)]
#[module(describe = Self::settings)]
pub struct LayerNorm {
    /// [D…].
    pub weight: Option<Param>,
    /// [D…].
    pub bias: Option<Param>,
    #[module(skip)]
    shape: Shape,
    #[module(skip)]
    epsilon: f64,
}

/// Options of [`LayerNorm::with`].
#[derive(Clone, Copy, Debug)]
pub struct LayerNormOptions {
    /// Added to the variance; 1e-5.
    pub epsilon: f64,
    /// Whether there are weight and bias; true.
    pub affine: bool,
    /// Whether there is a bias beside the weight; true.
    pub bias: bool,
}

impl Default for LayerNormOptions {
    fn default() -> Self {
        Self { epsilon: 1e-5, affine: true, bias: true }
    }
}

impl LayerNorm {
    /// A layer over the last axes, which have this shape: `64`, or `[3, 4]`.
    ///
    /// # Errors
    /// If the dtype is not a float, or the device has no memory.
    pub fn new(shape: impl IntoShape, place: impl Place) -> Result<Self> {
        Self::with(shape, LayerNormOptions::default(), place)
    }

    /// A layer with options.
    ///
    /// # Errors
    /// As [`LayerNorm::new`].
    pub fn with(shape: impl IntoShape, options: LayerNormOptions, place: impl Place) -> Result<Self> {
        let shape = shape.into_shape("layer_norm")?;
        let (device, dtype) = super::float_place("layer_norm", place)?;
        let start = |wanted: bool, init: Init| {
            wanted.then(|| init.tensor(&shape, (&device, dtype)).map(Param::new)).transpose()
        };
        let weight = start(options.affine, Init::ONES)?;
        let bias = start(options.affine && options.bias, Init::ZEROS)?;
        Ok(Self { weight, bias, shape, epsilon: options.epsilon })
    }

    fn settings(&self) -> String {
        format!("LayerNorm({})", joined(&self.shape))
    }
}

impl Forward for LayerNorm {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let axes = last_axes(|| format!("layer_norm({})", joined(&self.shape)), x, &self.shape)?;
        let y = super::only(normalize(x, axes, self.epsilon, true))?;
        affine("layer_norm", y, self.weight.as_ref(), self.bias.as_ref(), &self.shape)
    }
}
