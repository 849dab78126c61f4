//! The matrix product, with an epilogue whose derivative does not read the product.

use smallvec::{SmallVec, smallvec};
use tensor_core::op::MatMul;
use tensor_core::{Expr, Result, Shape, Tensor};

use super::elementwise::{self, pull, result};
use super::{Grads, Operand, Step, unbroadcast};

/// Whether input `i` of a bilinear op with an epilogue is read: each operand by the other's gradient.
pub(super) fn is_read(epilogue: &Expr, i: usize, wants: impl Fn(usize) -> bool) -> bool {
    match i {
        0 | 1 => wants(1 - i),
        _ => elementwise::is_read(epilogue, i - 1, |j| if j == 0 { wants(0) || wants(1) } else { wants(j + 1) }),
    }
}

/// The gradient by the result before the epilogue, and those by the epilogue's further inputs in their places.
pub(super) fn through_epilogue(name: &'static str, epilogue: &Expr, step: &Step<'_>) -> Result<(Tensor, Grads)> {
    let g = step.g()?;
    let mut grads: Grads = smallvec![None; step.inputs.len()];
    if epilogue.is_identity() {
        return Ok((g.clone(), grads));
    }
    let product = result(g.shape(), step.inputs[0].dtype(), step.wants(0) || step.wants(1));
    let inputs: SmallVec<[&Operand; 4]> = std::iter::once(&product).chain(&step.inputs[2..]).collect();
    let mut pulled = pull(name, epilogue, &inputs, g)?.into_iter();
    let by_product = pulled.next().flatten();
    grads[2..].iter_mut().zip(pulled).for_each(|(place, gradient)| *place = gradient);
    let by_product = match by_product {
        Some(gradient) => gradient,
        None => Tensor::zeros((), (&g.device(), product.dtype()))?.expand(g.shape())?,
    };
    Ok((by_product, grads))
}

/// y = epilogue(l·r, …): with h the gradient by the product, ∂l = h·rᵀ and ∂r = lᵀ·h.
pub(super) fn matmul(matmul: &MatMul, step: &Step<'_>) -> Result<Grads> {
    let (h, mut grads) = through_epilogue("matmul", &matmul.epilogue, step)?;
    if step.wants(0) {
        grads[0] = Some(unbroadcast(&h.matmul(&step.input(1).transpose(-2, -1)?)?, step.shape(0))?);
    }
    if step.wants(1) {
        grads[1] = Some(by_rhs(step.input(0), &h, step.shape(1))?);
    }
    Ok(grads)
}

/// lᵀ·h, summed over the batch where the right operand has none: then as one product.
fn by_rhs(lhs: &Tensor, h: &Tensor, shape: &Shape) -> Result<Tensor> {
    let is_batched = shape[..shape.rank() - 2].iter().any(|&n| n != 1);
    if is_batched || h.rank() == 2 || lhs.shape()[..lhs.rank() - 1] != h.shape()[..h.rank() - 1] {
        return unbroadcast(&lhs.transpose(-2, -1)?.matmul(h)?, shape);
    }
    let rows = |x: &Tensor| x.flatten(..-1);
    rows(lhs)?.t()?.matmul(&rows(h)?)?.reshape(shape)
}
