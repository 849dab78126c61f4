//! Convolutions and transposed convolutions of one, two and three spatial axes.

use std::sync::OnceLock;

use smallvec::SmallVec;

use super::window::window;
use super::{ConvOptions, ConvTransposeOptions, first};
use crate::expr::build;
use crate::op::{Conv, ConvInputGrad};
use crate::{Dims, Error, Expr, Op, Result, Tensor, execute};

/// The sizes of a weight's kernel, once input and weight have been found to have the right rank.
fn kernel<'w>(op: &'static str, x: &Tensor, weight: &'w Tensor, rank: usize, form: &str) -> Result<&'w [usize]> {
    if x.rank() != rank + 2 || weight.rank() != rank + 2 {
        return Err(Error::shape(
            op,
            format!(
                "input must be [N, C, spatial..] and weight {form}, {} axes each: input {}, weight {}",
                rank + 2,
                x.shape(),
                weight.shape()
            ),
        ));
    }
    Ok(&weight.dims()[2..])
}

/// The bias [C] as it broadcasts over [N, C, spatial…].
fn channels(op: &'static str, bias: &Tensor, c: usize, rank: usize) -> Result<Tensor> {
    if bias.dims() != [c] {
        return Err(Error::shape(
            op,
            format!("bias must have one value per output channel: bias {}, channels {c}", bias.shape()),
        ));
    }
    let mut dims = Dims::from_elem(1, rank + 1);
    dims[0] = c;
    bias.reshape(&dims[..])
}

fn add_bias() -> &'static Expr {
    static BIAS: OnceLock<Expr> = OnceLock::new();
    BIAS.get_or_init(|| build(|[y, bias]| y + bias))
}

impl Tensor {
    fn conv(
        &self,
        op: &'static str,
        rank: usize,
        weight: &Tensor,
        bias: Option<&Tensor>,
        options: &ConvOptions,
    ) -> Result<Tensor> {
        let kernel = kernel(op, self, weight, rank, "[C_out, C / groups, kernel..]")?;
        let window =
            window(op, kernel, &options.stride, &options.padding, &options.dilation)?.within(&self.dims()[2..]);
        let mut conv = Conv { window, groups: options.groups, epilogue: Expr::identity() };
        let Some(bias) = bias else {
            return first(execute(&Op::Conv(conv), &[self, weight]));
        };
        let bias = channels(op, bias, weight.dims()[0], rank)?;
        conv.epilogue = add_bias().clone();
        first(execute(&Op::Conv(conv), &[self, weight, &bias]))
    }

    /// Any convolution with an epilogue in the same pass: an expression over the result and the further inputs, which
    /// broadcast to [N, C_out, spatial′…]. The weight's rank says how many spatial axes there are.
    ///
    /// # Errors
    /// As [`Tensor::conv2d`], and if a further input does not broadcast to the result.
    pub fn conv_with(
        &self,
        weight: &Tensor,
        options: &ConvOptions,
        epilogue: &Expr,
        extra: &[&Tensor],
    ) -> Result<Tensor> {
        let rank = weight.rank().saturating_sub(2);
        let kernel = kernel("conv", self, weight, rank, "[C_out, C / groups, kernel..]")?;
        let window =
            window("conv", kernel, &options.stride, &options.padding, &options.dilation)?.within(&self.dims()[2..]);
        let conv = Conv { window, groups: options.groups, epilogue: epilogue.clone() };
        let inputs: SmallVec<[&Tensor; 4]> = [self, weight].into_iter().chain(extra.iter().copied()).collect();
        first(execute(&Op::Conv(conv), &inputs))
    }

    fn conv_transpose(
        &self,
        op: &'static str,
        rank: usize,
        weight: &Tensor,
        bias: Option<&Tensor>,
        options: &ConvTransposeOptions,
    ) -> Result<Tensor> {
        let kernel = kernel(op, self, weight, rank, "[C, C_out / groups, kernel..]")?;
        let window = window(op, kernel, &options.stride, &options.padding, &options.dilation)?;
        let extra = options.output_padding.resolve(op, "output_padding", rank)?;
        let groups = options.groups;
        if groups == 0 || self.dims()[1] != weight.dims()[0] || !weight.dims()[0].is_multiple_of(groups) {
            return Err(Error::shape(
                op,
                format!(
                    "channels do not fit: input {} has C = {}, weight {} takes {}, and C must divide by groups {groups}",
                    self.shape(),
                    self.dims()[1],
                    weight.shape(),
                    weight.dims()[0]
                ),
            ));
        }
        let size = |i: usize| {
            if extra[i] >= window.stride[i].max(1) {
                return Err(Error::value(
                    op,
                    format!(
                        "output_padding must be less than the stride: output_padding {}, stride {} on spatial axis {i}",
                        extra[i], window.stride[i]
                    ),
                ));
            }
            let n = self.dims()[i + 2];
            let whole = || {
                let windows = n.saturating_sub(1).checked_mul(window.stride[i])?;
                let span = window.dilation[i].checked_mul(kernel[i].saturating_sub(1))?.checked_add(1)?;
                windows.checked_add(span)?.checked_add(extra[i])
            };
            let (Some(whole), Some(cut)) = (whole(), window.before[i].checked_add(window.after[i])) else {
                return Err(Error::shape(
                    op,
                    format!(
                        "the sizes overflow: input {n}, kernel {}, stride {}, padding ({}, {}), dilation {} on spatial axis {i}",
                        kernel[i], window.stride[i], window.before[i], window.after[i], window.dilation[i]
                    ),
                ));
            };
            if n == 0 || whole < cut {
                return Err(Error::shape(
                    op,
                    format!(
                        "the padding cuts off the whole output: input {n}, output {whole}, padding {cut} on spatial axis {i}"
                    ),
                ));
            }
            Ok(whole - cut)
        };
        let spatial = (0..rank).map(size).collect::<Result<Dims>>()?;
        let conv = Conv { window, groups, epilogue: Expr::identity() };
        let y = first(execute(&Op::ConvInputGrad(ConvInputGrad { conv, spatial }), &[self, weight]))?;
        match bias {
            Some(bias) => y.add(&channels(op, bias, weight.dims()[1] * groups, rank)?),
            None => Ok(y),
        }
    }
}

macro_rules! convolutions {
    ($($rank:literal: $conv:ident, $transpose:ident, $input:literal, $kernel:literal;)*) => { impl Tensor { $(
        #[doc = concat!("The convolution (cross-correlation) of input ", $input, " with weight `[C_out, C / groups, ", $kernel, "]` and,")]
        /// optionally, a bias `[C_out]` that is added in the same pass.
        ///
        /// # Errors
        /// If ranks, channels or groups do not fit, the kernel is larger than the padded input, or the dtypes differ or
        /// are not floats.
        pub fn $conv(&self, weight: &Tensor, bias: Option<&Tensor>, options: &ConvOptions) -> Result<Tensor> {
            self.conv(stringify!($conv), $rank, weight, bias, options)
        }

        #[doc = concat!("The transposed convolution of input ", $input, " with weight `[C, C_out / groups, ", $kernel, "]` and, optionally, a")]
        /// bias `[C_out]`: the adjoint of the convolution with these options by its input.
        ///
        /// Its sizes are (n − 1)·stride + dilation·(kernel − 1) + 1 + output_padding − padding.
        ///
        /// # Errors
        /// If ranks, channels or groups do not fit, `output_padding` is not less than the stride, or the dtypes differ
        /// or are not floats.
        pub fn $transpose(&self, weight: &Tensor, bias: Option<&Tensor>, options: &ConvTransposeOptions) -> Result<Tensor> {
            self.conv_transpose(stringify!($transpose), $rank, weight, bias, options)
        }
    )* } };
}

convolutions! {
    1: conv1d, conv_transpose1d, "`[N, C, L]`", "k";
    2: conv2d, conv_transpose2d, "`[N, C, H, W]`", "kh, kw";
    3: conv3d, conv_transpose3d, "`[N, C, D, H, W]`", "kd, kh, kw";
}
