//! Batch normalisation.

use std::sync::OnceLock;

use smallvec::smallvec;
use tensor_core::op::Map;
use tensor_core::{DType, Error, Expr, Op, Param, Place, Result, Shape, Tensor, execute, expr, zip_n};

use super::norm::{affine, channel_shape, normalize};
use crate::init::Init;
use crate::{Buffer, Forward, Mode, Module};

/// [`BatchNormNd`] over [N, C] or [N, C, L].
pub type BatchNorm1d = BatchNormNd<1>;
/// [`BatchNormNd`] over [N, C, H, W].
pub type BatchNorm2d = BatchNormNd<2>;
/// [`BatchNormNd`] over [N, C, D, H, W].
pub type BatchNorm3d = BatchNormNd<3>;

/// y = (x − mean)/√(variance + ε)·weight + bias, per channel.
///
/// While training the moments are the batch's, over all axes but the channels', and move the running statistics:
/// r ← (1 − momentum)·r + momentum·moment, the variance with correction 1 there. While inferring they are the running
/// statistics.
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
/// | `running_mean` (buffer) | \[C\] | 0 |
/// | `running_var` (buffer) | \[C\] | 1 |
/// | `num_batches_tracked` (buffer) | [], i64 | 0 |
///
/// # Errors
/// If the input has another number of axes or channels; while training, if there is only one value per channel.
///
/// # Source
/// Ioffe and Szegedy, 2015.
#[derive(Module, Clone, Debug)]
#[module(describe = Self::settings)]
pub struct BatchNormNd<const D: usize> {
    /// \[C\].
    pub weight: Option<Param>,
    /// \[C\].
    pub bias: Option<Param>,
    /// \[C\]: the mean that inference uses.
    pub running_mean: Buffer,
    /// \[C\]: the variance that inference uses.
    pub running_var: Buffer,
    /// How many batches the running statistics have seen; PyTorch's files hold it.
    pub num_batches_tracked: Buffer,
    mode: Mode,
    #[module(skip)]
    epsilon: f64,
    #[module(skip)]
    momentum: f64,
}

/// Options of [`BatchNormNd::with`].
#[derive(Clone, Copy, Debug)]
pub struct BatchNormOptions {
    /// Added to the variance; 1e-5.
    pub epsilon: f64,
    /// The weight of the newest batch in the running statistics; 0.1.
    pub momentum: f64,
    /// Whether there are weight and bias; true.
    pub affine: bool,
}

impl Default for BatchNormOptions {
    fn default() -> Self {
        Self { epsilon: 1e-5, momentum: 0.1, affine: true }
    }
}

impl<const D: usize> BatchNormNd<D> {
    /// A layer for `n_channels` channels.
    ///
    /// # Errors
    /// If the dtype is not a float, or the device has no memory.
    pub fn new(n_channels: usize, place: impl Place) -> Result<Self> {
        Self::with(n_channels, BatchNormOptions::default(), place)
    }

    /// A layer with options.
    ///
    /// # Errors
    /// As [`BatchNormNd::new`].
    pub fn with(n_channels: usize, options: BatchNormOptions, place: impl Place) -> Result<Self> {
        let (device, dtype) = super::float_place("batch_norm", place)?;
        let start = |init: Init| init.tensor(n_channels, (&device, dtype));
        let param = |init: Init| options.affine.then(|| start(init).map(Param::new)).transpose();
        Ok(Self {
            weight: param(Init::ONES)?,
            bias: param(Init::ZEROS)?,
            running_mean: Buffer::new(start(Init::ZEROS)?),
            running_var: Buffer::new(start(Init::ONES)?),
            num_batches_tracked: Buffer::new(Tensor::zeros((), (&device, DType::I64))?),
            mode: Mode::default(),
            epsilon: options.epsilon,
            momentum: options.momentum,
        })
    }

    fn n_channels(&self) -> usize {
        self.running_mean.get().len()
    }

    fn settings(&self) -> String {
        format!("BatchNorm{D}d({})", self.n_channels())
    }

    fn checked(&self, x: &Tensor) -> Result<()> {
        let n = self.n_channels();
        let name = || format!("batch_norm{D}d({n})");
        let fits = (x.rank() == D + 2 || (D == 1 && x.rank() == 2)) && x.dims()[1] == n;
        if !fits {
            let axes = ["", "] or [N, C, L", ", H, W", ", D, H, W"].get(D).copied().unwrap_or(", ..");
            return Err(Error::shape(name(), format!("input must be [N, C{axes}] with C = {n}: input {}", x.shape())));
        }
        if self.mode.is_training() && x.len() <= n {
            return Err(Error::shape(
                name(),
                format!("training needs more than one value per channel: input {}; use a larger batch", x.shape()),
            ));
        }
        Ok(())
    }

    fn train(&self, x: &Tensor, shape: &Shape) -> Result<Tensor> {
        let axes = (0..x.rank()).filter(|&axis| axis != 1);
        let outputs = normalize(x, axes, self.epsilon, true)?;
        let [y, rstd, mean] = &outputs[..] else { unreachable!("invariant: centred normalisation has three outputs") };
        self.track(rstd, mean, x.len() / self.n_channels().max(1))?;
        affine("batch_norm", y.clone(), self.weight.as_ref(), self.bias.as_ref(), shape)
    }

    /// Moves the running statistics towards a batch of `n` values per channel.
    fn track(&self, rstd: &Tensor, mean: &Tensor, n: usize) -> Result<()> {
        let (old_mean, old_var) = (self.running_mean.get(), self.running_var.get());
        let plain = |t: &Tensor| t.stop_gradient().reshape(old_mean.shape());
        let (momentum, epsilon, correction) = (self.momentum, self.epsilon, n as f64 / (n as f64 - 1.0));
        let exprs = smallvec![
            expr::build(|[old, _, mean, _]| old + (mean - old) * momentum),
            // rstd = 1/√(variance + ε).
            expr::build(|[_, old, _, rstd]| {
                old + ((rstd.square().recip() - epsilon).max(0) * correction - old) * momentum
            }),
        ];
        let map = Op::Map(Map { name: "batch_norm", exprs });
        let new = execute(&map, &[&old_mean, &old_var, &plain(mean)?, &plain(rstd)?])?;
        self.running_mean.set(&new[0])?;
        self.running_var.set(&new[1])?;
        self.num_batches_tracked.set(&self.num_batches_tracked.get().add(1)?)
    }

    fn infer(&self, x: &Tensor, shape: &Shape) -> Result<Tensor> {
        static SCALE_AND_SHIFT: OnceLock<Expr> = OnceLock::new();
        let (mean, var, epsilon) = (self.running_mean.get(), self.running_var.get(), self.epsilon);
        let rstd = var.map(|var| (var + epsilon).rsqrt())?;
        let scale = match &self.weight {
            Some(weight) => rstd.mul(weight)?,
            None => rstd,
        };
        let shift = match &self.bias {
            Some(bias) => zip_n([bias, &mean, &scale], |[bias, mean, scale]| bias - mean * scale)?,
            None => mean.mul(&scale)?.neg()?,
        };
        let expr = SCALE_AND_SHIFT.get_or_init(|| expr::build(|[x, scale, shift]| x * scale + shift)).clone();
        let inputs = [x, &scale.reshape(shape)?, &shift.reshape(shape)?];
        super::only(execute(&Op::Map(Map::new("batch_norm", expr)), &inputs))
    }
}

impl<const D: usize> Forward for BatchNormNd<D> {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        self.checked(x)?;
        let shape = channel_shape(x.dims()[1], x.rank());
        if self.mode.is_training() { self.train(x, &shape) } else { self.infer(x, &shape) }
    }
}
