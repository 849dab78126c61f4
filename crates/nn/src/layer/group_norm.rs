//! Group and instance normalisation.

use tensor_core::{Error, Param, Place, Result, Tensor};

use super::norm::{affine, channel_shape, normalize};
use crate::init::Init;
use crate::{Forward, Module};

/// y = (x − mean)/√(variance + ε)·weight + bias, moments over the channels of a group and all spatial axes, weight and bias per
/// channel. With as many groups as channels it is instance normalisation: see [`GroupNorm::instance`].
///
/// # Shapes
/// | | shape |
/// |---|---|
/// | input, output | [N, C, L…] |
///
/// # Parameters
/// | | shape | starts as |
/// |---|---|---|
/// | `weight` | \[C\] | 1 |
/// | `bias` | \[C\] | 0 |
///
/// # Errors
/// If the input has another number of channels.
///
/// # Source
/// Wu and He, 2018; Ulyanov et al., 2016.
#[derive(Module, Clone, Debug)]
#[module(describe = Self::settings)]
pub struct GroupNorm {
    /// \[C\].
    pub weight: Option<Param>,
    /// \[C\].
    pub bias: Option<Param>,
    #[module(skip)]
    n_groups: usize,
    #[module(skip)]
    n_channels: usize,
    #[module(skip)]
    epsilon: f64,
}

/// Options of [`GroupNorm::with`].
#[derive(Clone, Copy, Debug)]
pub struct GroupNormOptions {
    /// Added to the variance; 1e-5.
    pub epsilon: f64,
    /// Whether there are weight and bias; true.
    pub affine: bool,
}

impl Default for GroupNormOptions {
    fn default() -> Self {
        Self { epsilon: 1e-5, affine: true }
    }
}

impl GroupNorm {
    /// A layer over `n_groups` groups of `n_channels` channels.
    ///
    /// # Errors
    /// If the groups do not divide the channels, the dtype is not a float, or the device has no memory.
    pub fn new(n_groups: usize, n_channels: usize, place: impl Place) -> Result<Self> {
        Self::with(n_groups, n_channels, GroupNormOptions::default(), place)
    }

    /// Instance normalisation: each channel by itself; without weight and bias, as in PyTorch.
    ///
    /// # Errors
    /// As [`GroupNorm::new`].
    pub fn instance(n_channels: usize, place: impl Place) -> Result<Self> {
        Self::with(n_channels, n_channels, GroupNormOptions { affine: false, ..Default::default() }, place)
    }

    /// A layer with options.
    ///
    /// # Errors
    /// As [`GroupNorm::new`].
    pub fn with(n_groups: usize, n_channels: usize, options: GroupNormOptions, place: impl Place) -> Result<Self> {
        if n_groups == 0 || !n_channels.is_multiple_of(n_groups) {
            return Err(Error::value(
                "group_norm",
                format!("groups must divide the channels: channels {n_channels}, groups {n_groups}"),
            ));
        }
        let (device, dtype) = super::float_place("group_norm", place)?;
        let start =
            |init: Init| options.affine.then(|| init.tensor(n_channels, (&device, dtype)).map(Param::new)).transpose();
        let (weight, bias) = (start(Init::ONES)?, start(Init::ZEROS)?);
        Ok(Self { weight, bias, n_groups, n_channels, epsilon: options.epsilon })
    }

    fn settings(&self) -> String {
        format!("GroupNorm({} of {})", self.n_groups, self.n_channels)
    }
}

impl Forward for GroupNorm {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        if x.rank() < 2 || x.dims()[1] != self.n_channels {
            return Err(Error::shape(
                format!("group_norm({} of {})", self.n_groups, self.n_channels),
                format!("input must be [N, {}, ..]: input {}", self.n_channels, x.shape()),
            ));
        }
        let per_group = x.len() / (x.dims()[0] * self.n_groups).max(1);
        let grouped = x.reshape([x.dims()[0], self.n_groups, per_group])?;
        let y = super::only(normalize(&grouped, 2..3, self.epsilon, true))?.reshape(x.shape())?;
        let shape = channel_shape(self.n_channels, x.rank());
        affine("group_norm", y, self.weight.as_ref(), self.bias.as_ref(), &shape)
    }
}
