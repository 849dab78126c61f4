//! Elementwise expressions, and user ops, which bring their own derivative.

use smallvec::SmallVec;
use tensor_core::op::{Map, Reduce, ReduceKind};
use tensor_core::{CustomOp, Dims, Expr, Op, Result, Shape, Tensor, execute};

use super::{Operand, Step, broadcast_axes, run, unbroadcast, zeros};

/// Whether the gradients by some inputs read input `i`.
pub(super) fn is_read(expr: &Expr, i: usize, wants: impl Fn(usize) -> bool) -> bool {
    let derivatives = expr.code.derivatives();
    derivatives.iter().enumerate().any(|(j, code)| wants(j) && code.as_ref().is_some_and(|code| code.reads(i)))
}

/// Whether an epilogue's derivative reads the result that it is applied to.
pub(super) fn reads_result(epilogue: &Expr) -> bool {
    !epilogue.is_identity() && is_read(epilogue, 0, |_| true)
}

pub(super) fn map(map: &Map, step: &mut Step<'_>) -> Result<()> {
    let (inputs, grads) = (step.inputs, step.grads);
    for (expr, g) in map.exprs.iter().zip(grads) {
        let Some(g) = g else { continue };
        pull(map.name, expr, inputs, g, |i, gradient| step.give(i, gradient))?;
    }
    Ok(())
}

/// Gives the gradients by an expression's inputs, `g` being that by its value. Those of the value's own shape come from
/// one pass.
pub(super) fn pull(
    name: &'static str,
    expr: &Expr,
    inputs: &[Operand],
    g: &Tensor,
    mut give: impl FnMut(usize, Tensor) -> Result<()>,
) -> Result<()> {
    // Through a cast the cotangent has the other type.
    let mut give = |i: usize, gradient: Tensor| {
        let dtype = inputs[i].dtype();
        give(i, if gradient.dtype() == dtype { gradient } else { gradient.cast(dtype)? })
    };
    // A value that was not kept is not read: the cotangent stands in for it.
    let mut operands: SmallVec<[&Tensor; 4]> = SmallVec::new();
    operands.extend(inputs.iter().map(|x| x.value().unwrap_or(g)).chain([g]));
    let mut together: SmallVec<[usize; 4]> = SmallVec::new();
    let mut exprs: SmallVec<[Expr; 1]> = SmallVec::new();
    for (i, x) in inputs.iter().enumerate().filter(|(_, x)| x.is_wanted()) {
        let Some(derivative) = expr.derivative(i) else { continue };
        if derivative.code.is_input(inputs.len()) {
            give(i, unbroadcast(g, x.shape())?)?;
        } else if x.shape() == g.shape() {
            together.push(i);
            exprs.push(derivative);
        } else {
            give(i, pulled_and_summed(name, derivative, &operands, x.shape())?)?;
        }
    }
    if !together.is_empty() {
        let gradients = execute(&Op::Map(Map { name, exprs }), &operands)?;
        for (i, gradient) in together.into_iter().zip(gradients) {
            give(i, gradient)?;
        }
    }
    Ok(())
}

/// A derivative summed over the axes along which its input was broadcast, in the same pass.
fn pulled_and_summed(name: &'static str, derivative: Expr, operands: &[&Tensor], shape: &Shape) -> Result<Tensor> {
    let full = operands[operands.len() - 1].shape();
    let axes: Dims = broadcast_axes(full, shape);
    let reduce = Reduce { name, kind: ReduceKind::Sum, axes, keepdim: true, producer: derivative };
    run(&Op::Reduce(reduce), operands)?.reshape(shape)
}

pub(super) fn custom(op: &dyn CustomOp, step: &mut Step<'_>) -> Result<()> {
    let inputs: Vec<&Tensor> = (0..step.inputs.len()).map(|i| step.input(i)).collect();
    let outputs: Vec<Tensor> = (0..step.n_outputs()).map(|k| step.output(k).clone()).collect();
    let grads = outputs.iter().zip(step.grads).map(|(y, g)| match g {
        Some(g) => Ok(g.clone()),
        None => zeros(y.shape(), y.dtype(), y),
    });
    let grads = grads.collect::<Result<Vec<_>>>()?;
    for (i, gradient) in op.derivative(&inputs, &outputs, &grads)?.into_iter().enumerate().take(inputs.len()) {
        if let Some(gradient) = gradient {
            step.give(i, gradient)?;
        }
    }
    Ok(())
}
