//! The matrix product, with an epilogue whose derivative does not read the product.

use smallvec::SmallVec;
use tensor_core::op::MatMul;
use tensor_core::{Expr, Meta, Result, Tensor};

use super::elementwise::{self, pull};
use super::{Operand, Step, unbroadcast, zeros};

/// Whether input `i` of a bilinear op with an epilogue is read: each operand by the other's gradient.
pub(super) fn is_read(epilogue: &Expr, i: usize, wants: impl Fn(usize) -> bool) -> bool {
    match i {
        0 | 1 => wants(1 - i),
        _ => elementwise::is_read(epilogue, i - 1, |j| if j == 0 { wants(0) || wants(1) } else { wants(j + 1) }),
    }
}

/// Gives the gradients by the epilogue's further inputs; returns that by the result before it.
pub(super) fn through_epilogue(name: &'static str, epilogue: &Expr, step: &mut Step<'_>) -> Result<Tensor> {
    let g = step.g();
    if epilogue.is_identity() {
        return Ok(g.clone());
    }
    let dtype = step.inputs[0].dtype();
    let result = Operand::known(Meta::new(g.shape().clone(), dtype), step.wants(0) || step.wants(1));
    let inputs: SmallVec<[Operand; 2]> = std::iter::once(result).chain(step.inputs[2..].iter().cloned()).collect();
    let mut by_result = None;
    pull(name, epilogue, &inputs, g, |i, gradient| match i {
        0 => {
            by_result = Some(gradient);
            Ok(())
        }
        _ => step.give(i + 1, gradient),
    })?;
    by_result.map_or_else(|| zeros(g.shape(), dtype, g), Ok)
}

/// y = epilogue(l·r, …): with h the gradient by the product, ∂l = h·rᵀ and ∂r = lᵀ·h.
pub(super) fn matmul(matmul: &MatMul, step: &mut Step<'_>) -> Result<()> {
    let h = through_epilogue("matmul", &matmul.epilogue, step)?;
    if step.wants(0) {
        step.give(0, unbroadcast(&h.matmul(&step.input(1).transpose(-2, -1)?)?, step.shape(0))?)?;
    }
    if step.wants(1) {
        step.give(1, by_rhs(step.input(0), &h, &step.inputs[1])?)?;
    }
    Ok(())
}

/// lᵀ·h, summed over the batch where the right operand has none: then as one product.
///
/// It lies in memory as the operand does, so that a weight's gradient is read in order. One whose value was not kept
/// is taken for a transposed weight.
fn by_rhs(lhs: &Tensor, h: &Tensor, rhs: &Operand) -> Result<Tensor> {
    let shape = rhs.shape();
    let is_transposed = rhs.value().is_none_or(|rhs| rhs.layout().strides()[rhs.rank() - 2] == 1);
    let product = |lhs: &Tensor, h: &Tensor| match is_transposed {
        true => h.transpose(-2, -1)?.matmul(lhs)?.transpose(-2, -1),
        false => lhs.transpose(-2, -1)?.matmul(h),
    };
    let is_batched = shape[..shape.rank() - 2].iter().any(|&n| n != 1);
    if is_batched || h.rank() == 2 || lhs.shape()[..lhs.rank() - 1] != h.shape()[..h.rank() - 1] {
        return unbroadcast(&product(lhs, h)?, shape);
    }
    let rows = |x: &Tensor| x.flatten(..-1);
    product(&rows(lhs)?, &rows(h)?)?.reshape(shape)
}
