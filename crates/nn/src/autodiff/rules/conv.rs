//! Convolution and its two adjoints: each is linear in both its inputs, and their gradients are each other.

use tensor_core::op::{Conv, ConvInputGrad, ConvWeightGrad};
use tensor_core::{Dims, Expr, Op, Result, Shape, Tensor};

use super::matmul::through_epilogue;
use super::{Step, run};

fn plain(conv: &Conv) -> Conv {
    Conv { epilogue: Expr::identity(), ..conv.clone() }
}

fn spatial(shape: &Shape) -> Dims {
    Dims::from_slice(&shape[2..])
}

fn by_input(conv: &Conv, g: &Tensor, weight: &Tensor, input: &Shape) -> Result<Tensor> {
    run(&Op::ConvInputGrad(ConvInputGrad { conv: plain(conv), spatial: spatial(input) }), &[g, weight])
}

fn by_weight(conv: &Conv, input: &Tensor, g: &Tensor, weight: &Shape) -> Result<Tensor> {
    run(&Op::ConvWeightGrad(ConvWeightGrad { conv: plain(conv), kernel: spatial(weight) }), &[input, g])
}

/// y = epilogue(x ⋆ w, …).
pub(super) fn conv(conv: &Conv, step: &mut Step<'_>) -> Result<()> {
    let h = through_epilogue("conv", &conv.epilogue, step)?;
    if step.wants(0) {
        step.give(0, by_input(conv, &h, step.input(1), step.shape(0))?)?;
    }
    if step.wants(1) {
        step.give(1, by_weight(conv, step.input(0), &h, step.shape(1))?)?;
    }
    Ok(())
}

/// z(g, w), the adjoint by the input: with h the gradient by z, ∂g = h ⋆ w and ∂w as if h were the input.
pub(super) fn input_grad(grad: &ConvInputGrad, step: &mut Step<'_>) -> Result<()> {
    let h = step.g();
    if step.wants(0) {
        step.give(0, run(&Op::Conv(plain(&grad.conv)), &[h, step.input(1)])?)?;
    }
    if step.wants(1) {
        step.give(1, by_weight(&grad.conv, h, step.input(0), step.shape(1))?)?;
    }
    Ok(())
}

/// z(x, g), the adjoint by the weight: with h the gradient by z, ∂x as if h were the weight and ∂g = x ⋆ h.
pub(super) fn weight_grad(grad: &ConvWeightGrad, step: &mut Step<'_>) -> Result<()> {
    let h = step.g();
    if step.wants(0) {
        step.give(0, by_input(&grad.conv, step.input(1), h, step.shape(0))?)?;
    }
    if step.wants(1) {
        step.give(1, run(&Op::Conv(plain(&grad.conv)), &[step.input(0), h])?)?;
    }
    Ok(())
}
