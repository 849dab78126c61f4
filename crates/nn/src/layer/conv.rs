//! Convolutions over one, two and three spatial axes.

use std::sync::OnceLock;

use tensor_core::op::{Conv, Window};
use tensor_core::{Error, Expr, Op, Param, Place, Result, Shape, Tensor, execute, expr};

use super::sizes::{Sizes, unless_default, window};
use crate::init::{Init, bias_bound};
use crate::{Forward, Module};

/// [`ConvNd`] over one spatial axis.
pub type Conv1d = ConvNd<1>;
/// [`ConvNd`] over two spatial axes.
pub type Conv2d = ConvNd<2>;
/// [`ConvNd`] over three spatial axes.
pub type Conv3d = ConvNd<3>;
/// [`ConvNdOptions`] over one spatial axis.
pub type Conv1dOptions = ConvNdOptions<1>;
/// [`ConvNdOptions`] over two spatial axes.
pub type Conv2dOptions = ConvNdOptions<2>;
/// [`ConvNdOptions`] over three spatial axes.
pub type Conv3dOptions = ConvNdOptions<3>;

/// y = x ⋆ W + b: cross-correlation over `D` spatial axes, as in every framework. Padding is zeros.
///
/// # Shapes
/// | | shape |
/// |---|---|
/// | input | [N, C_in, L…] |
/// | output | [N, C_out, L′…], L′ = ⌊(L + 2·padding − dilation·(kernel − 1) − 1)/stride⌋ + 1 |
///
/// # Parameters
/// fan_in = C_in/groups · taps of the kernel.
///
/// | | shape | starts as |
/// |---|---|---|
/// | `weight` | [C_out, C_in/groups, kernel…] | U(−1/√fan_in, 1/√fan_in) |
/// | `bias` | \[C_out\] | U(−1/√fan_in, 1/√fan_in) |
///
/// # Errors
/// If the input has another number of axes or channels, or is smaller than the kernel.
///
/// ```no_run
/// # use nn::Conv2d;
/// # fn f(device: &tensor_core::Device) -> tensor_core::Result<()> {
/// let conv = Conv2d::new(3, 16, 5, device)?.padding(2).stride([2, 1]);
/// # Ok(()) }
/// ```
#[derive(Module, Clone, Debug)]
#[module(describe = Self::settings)]
pub struct ConvNd<const D: usize> {
    /// [C_out, C_in/groups, kernel…].
    pub weight: Param,
    /// \[C_out\].
    pub bias: Option<Param>,
    #[module(skip)]
    window: Window,
    #[module(skip)]
    groups: usize,
}

/// Options of [`ConvNd::with`].
#[derive(Clone, Copy, Debug)]
pub struct ConvNdOptions<const D: usize> {
    /// From one window to the next; 1.
    pub stride: Sizes<D>,
    /// Zeros on either side; 0.
    pub padding: Sizes<D>,
    /// From one tap of the kernel to the next; 1.
    pub dilation: Sizes<D>,
    /// Into how many independent groups the channels fall: C_in for a depthwise convolution; 1.
    pub groups: usize,
    /// Whether to add a bias; true.
    pub bias: bool,
    /// How the weight starts; [`Init::torch_weight`].
    pub init: Init,
}

impl<const D: usize> Default for ConvNdOptions<D> {
    fn default() -> Self {
        let one = Sizes([1; D]);
        let padding = Sizes([0; D]);
        Self { stride: one, padding, dilation: one, groups: 1, bias: true, init: Init::torch_weight() }
    }
}

impl<const D: usize> ConvNd<D> {
    const NAME: &'static str = ["Conv", "Conv1d", "Conv2d", "Conv3d"][if D < 4 { D } else { 0 }];

    /// A layer from `n_in` to `n_out` channels.
    ///
    /// # Errors
    /// If the dtype is not a float, or the device has no memory.
    pub fn new(n_in: usize, n_out: usize, kernel: impl Into<Sizes<D>>, place: impl Place) -> Result<Self> {
        Self::with(n_in, n_out, kernel, ConvNdOptions::default(), place)
    }

    /// A layer with options.
    ///
    /// # Errors
    /// As [`ConvNd::new`], or if the groups do not divide the channels.
    pub fn with(
        n_in: usize,
        n_out: usize,
        kernel: impl Into<Sizes<D>>,
        options: ConvNdOptions<D>,
        place: impl Place,
    ) -> Result<Self> {
        let groups = options.groups;
        if groups == 0 || !n_in.is_multiple_of(groups) || !n_out.is_multiple_of(groups) {
            return Err(Error::value(
                Self::NAME.to_lowercase(),
                format!("groups must divide both numbers of channels: in {n_in}, out {n_out}, groups {groups}"),
            ));
        }
        let (device, dtype) = super::float_place("conv", place)?;
        let shape: Shape = [n_out, n_in / groups].into_iter().chain(kernel.into().0).collect();
        let weight = options.init.tensor(&shape, (&device, dtype))?;
        let bias = options.bias.then(|| bias_bound(&shape)?.tensor(n_out, (&device, dtype))).transpose()?;
        let window = window(options.stride, options.padding, options.dilation);
        Ok(Self { weight: Param::new(weight), bias: bias.map(Param::new), window, groups })
    }

    /// The same layer with this stride.
    pub fn stride(mut self, stride: impl Into<Sizes<D>>) -> Self {
        self.window.stride = stride.into().0.as_slice().into();
        self
    }

    /// The same layer with so many zeros on either side.
    pub fn padding(mut self, padding: impl Into<Sizes<D>>) -> Self {
        self.window.before = padding.into().0.as_slice().into();
        self.window.after = self.window.before.clone();
        self
    }

    /// The same layer with this dilation.
    pub fn dilation(mut self, dilation: impl Into<Sizes<D>>) -> Self {
        self.window.dilation = dilation.into().0.as_slice().into();
        self
    }

    fn n_in(&self) -> usize {
        self.weight.dims()[1] * self.groups
    }

    fn settings(&self) -> String {
        let (kernel, defaults) = (&self.weight.dims()[2..], ConvNdOptions::<D>::default());
        let mut text = format!("{}({} => {}", Self::NAME, self.n_in(), self.weight.dims()[0]);
        text += &unless_default("kernel", kernel, Sizes([0; D]));
        text += &unless_default("stride", &self.window.stride, defaults.stride);
        text += &unless_default("padding", &self.window.before, defaults.padding);
        text += &unless_default("dilation", &self.window.dilation, defaults.dilation);
        if self.groups != 1 {
            text += &format!(", groups {}", self.groups);
        }
        text + if self.bias.is_none() { ", no bias)" } else { ")" }
    }

    #[cold]
    fn misfit(&self, x: &Tensor) -> Error {
        let (n_in, n_out) = (self.n_in(), self.weight.dims()[0]);
        let axes = ["", ", L", ", H, W", ", D, H, W"].get(D).copied().unwrap_or(", ..");
        let remedy = if x.rank() == D { "; add the missing axes with .unsqueeze(0)" } else { "" };
        Error::shape(
            format!("{}({n_in} => {n_out})", Self::NAME.to_lowercase()),
            format!("input must be [N, {n_in}{axes}]: input {}{remedy}", x.shape()),
        )
    }
}

impl<const D: usize> Forward for ConvNd<D> {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        static ADD_BIAS: OnceLock<Expr> = OnceLock::new();
        if x.rank() != D + 2 || x.dims()[1] != self.n_in() {
            return Err(self.misfit(x));
        }
        let (window, groups) = (self.window.clone(), self.groups);
        let Some(bias) = &self.bias else {
            return super::only(execute(
                &Op::Conv(Conv { window, groups, epilogue: Expr::identity() }),
                &[x, &self.weight],
            ));
        };
        // [C_out, 1…]: along the channels.
        let bias = bias.reshape([bias.len()].into_iter().chain([1; D]).collect::<Shape>())?;
        let epilogue = ADD_BIAS.get_or_init(|| expr::build(|[y, b]| y + b)).clone();
        super::only(execute(&Op::Conv(Conv { window, groups, epilogue }), &[x, &self.weight, &bias]))
    }
}
