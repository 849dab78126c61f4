//! Convolution and its two adjoints: each is linear in both its inputs, and their gradients are each other.

use smallvec::smallvec;
use tensor_core::op::{Conv, ConvInputGrad, ConvWeightGrad};
use tensor_core::{Dims, Expr, Op, Result, Shape, Tensor};

use super::matmul::through_epilogue;
use super::{Grads, Step, run};

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
pub(super) fn conv(conv: &Conv, step: &Step<'_>) -> Result<Grads> {
    let (h, mut grads) = through_epilogue("conv", &conv.epilogue, step)?;
    if step.wants(0) {
        grads[0] = Some(by_input(conv, &h, step.input(1), step.shape(0))?);
    }
    if step.wants(1) {
        grads[1] = Some(by_weight(conv, step.input(0), &h, step.shape(1))?);
    }
    Ok(grads)
}

/// z(g, w), the adjoint by the input: with h the gradient by z, ∂g = h ⋆ w and ∂w as if h were the input.
pub(super) fn input_grad(grad: &ConvInputGrad, step: &Step<'_>) -> Result<Grads> {
    let h = step.g()?;
    let mut grads: Grads = smallvec![None; 2];
    if step.wants(0) {
        grads[0] = Some(run(&Op::Conv(plain(&grad.conv)), &[h, step.input(1)])?);
    }
    if step.wants(1) {
        grads[1] = Some(by_weight(&grad.conv, h, step.input(0), step.shape(1))?);
    }
    Ok(grads)
}

/// z(x, g), the adjoint by the weight: with h the gradient by z, ∂x as if h were the weight and ∂g = x ⋆ h.
pub(super) fn weight_grad(grad: &ConvWeightGrad, step: &Step<'_>) -> Result<Grads> {
    let h = step.g()?;
    let mut grads: Grads = smallvec![None; 2];
    if step.wants(0) {
        grads[0] = Some(by_input(&grad.conv, step.input(1), h, step.shape(0))?);
    }
    if step.wants(1) {
        grads[1] = Some(run(&Op::Conv(plain(&grad.conv)), &[step.input(0), h])?);
    }
    Ok(grads)
}
