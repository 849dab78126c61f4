//! Pooling over windows.

use tensor_core::op::{Pool, PoolKind};
use tensor_core::{Op, Result, Tensor, execute};

use super::sizes::{Sizes, unless_default, window};
use crate::{Forward, Module};

/// [`MaxPoolNd`] over one spatial axis.
pub type MaxPool1d = MaxPoolNd<1>;
/// [`MaxPoolNd`] over two spatial axes.
pub type MaxPool2d = MaxPoolNd<2>;
/// [`MaxPoolNd`] over three spatial axes.
pub type MaxPool3d = MaxPoolNd<3>;
/// [`AvgPoolNd`] over one spatial axis.
pub type AvgPool1d = AvgPoolNd<1>;
/// [`AvgPoolNd`] over two spatial axes.
pub type AvgPool2d = AvgPoolNd<2>;
/// [`AvgPoolNd`] over three spatial axes.
pub type AvgPool3d = AvgPoolNd<3>;

/// y = the largest value of each window. Padding never wins.
///
/// # Shapes
/// | | shape |
/// |---|---|
/// | input | [N, C, L…] |
/// | output | [N, C, L′…], L′ = ⌊(L + 2·padding − dilation·(kernel − 1) − 1)/stride⌋ + 1 |
///
/// # Gradient
/// Goes to the largest; of equals to the first.
///
/// # Errors
/// If the input has another number of axes or is smaller than the window, or if the padding exceeds half the window.
#[derive(Module, Clone, Copy, Debug)]
#[module(describe = Self::settings)]
pub struct MaxPoolNd<const D: usize> {
    /// The window's sizes.
    #[module(skip)]
    pub kernel: Sizes<D>,
    /// From one window to the next; the kernel's sizes.
    #[module(skip)]
    pub stride: Sizes<D>,
    /// Elements on either side; 0.
    #[module(skip)]
    pub padding: Sizes<D>,
    /// From one element of a window to the next; 1.
    #[module(skip)]
    pub dilation: Sizes<D>,
}

impl<const D: usize> MaxPoolNd<D> {
    /// Windows of this size, side by side.
    pub fn new(kernel: impl Into<Sizes<D>>) -> Self {
        let kernel = kernel.into();
        Self { kernel, stride: kernel, padding: Sizes([0; D]), dilation: Sizes([1; D]) }
    }

    /// The same layer with this stride.
    pub fn stride(self, stride: impl Into<Sizes<D>>) -> Self {
        Self { stride: stride.into(), ..self }
    }

    /// The same layer with so much padding on either side.
    pub fn padding(self, padding: impl Into<Sizes<D>>) -> Self {
        Self { padding: padding.into(), ..self }
    }

    /// The same layer with this dilation.
    pub fn dilation(self, dilation: impl Into<Sizes<D>>) -> Self {
        Self { dilation: dilation.into(), ..self }
    }

    fn settings(&self) -> String {
        let dilation = unless_default("dilation", &self.dilation.0, Sizes([1; D]));
        settings("MaxPool", self.kernel, self.stride, self.padding, &dilation)
    }
}

impl<const D: usize> Forward for MaxPoolNd<D> {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let window = window(self.stride, self.padding, self.dilation);
        let pool = Pool { kind: PoolKind::Max, kernel: self.kernel.0.as_slice().into(), window };
        super::only(execute(&Op::Pool(pool), &[x]))
    }
}

/// y = the mean of each window.
///
/// # Shapes
/// | | shape |
/// |---|---|
/// | input | [N, C, L…] |
/// | output | [N, C, L′…], L′ = ⌊(L + 2·padding − kernel)/stride⌋ + 1 |
///
/// # Errors
/// If the input has another number of axes or is smaller than the window, or if the padding exceeds half the window.
#[derive(Module, Clone, Copy, Debug)]
#[module(describe = Self::settings)]
pub struct AvgPoolNd<const D: usize> {
    /// The window's sizes.
    #[module(skip)]
    pub kernel: Sizes<D>,
    /// From one window to the next; the kernel's sizes.
    #[module(skip)]
    pub stride: Sizes<D>,
    /// Zeros on either side; 0.
    #[module(skip)]
    pub padding: Sizes<D>,
    /// Whether the zeros of the padding count in the mean; true.
    #[module(skip)]
    pub count_padding: bool,
}

impl<const D: usize> AvgPoolNd<D> {
    /// Windows of this size, side by side.
    pub fn new(kernel: impl Into<Sizes<D>>) -> Self {
        let kernel = kernel.into();
        Self { kernel, stride: kernel, padding: Sizes([0; D]), count_padding: true }
    }

    /// The same layer with this stride.
    pub fn stride(self, stride: impl Into<Sizes<D>>) -> Self {
        Self { stride: stride.into(), ..self }
    }

    /// The same layer with so many zeros on either side.
    pub fn padding(self, padding: impl Into<Sizes<D>>) -> Self {
        Self { padding: padding.into(), ..self }
    }

    /// The same layer, the padding counted in the mean or not.
    pub fn count_padding(self, count_padding: bool) -> Self {
        Self { count_padding, ..self }
    }

    fn settings(&self) -> String {
        let count = if self.count_padding { "" } else { ", padding not counted" };
        settings("AvgPool", self.kernel, self.stride, self.padding, count)
    }
}

impl<const D: usize> Forward for AvgPoolNd<D> {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let kind = PoolKind::Avg { count_padding: self.count_padding };
        let window = window(self.stride, self.padding, Sizes([1; D]));
        super::only(execute(&Op::Pool(Pool { kind, kernel: self.kernel.0.as_slice().into(), window }), &[x]))
    }
}

fn settings<const D: usize>(
    name: &str,
    kernel: Sizes<D>,
    stride: Sizes<D>,
    padding: Sizes<D>,
    further: &str,
) -> String {
    let stride = unless_default("stride", &stride.0, kernel);
    let padding = unless_default("padding", &padding.0, Sizes([0; D]));
    format!("{name}{D}d({kernel}{stride}{padding}{further})")
}
