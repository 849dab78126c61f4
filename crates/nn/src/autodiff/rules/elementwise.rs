//! Elementwise expressions, and user ops, which bring their own derivative.

use smallvec::{SmallVec, smallvec};
use tensor_core::op::{Map, Reduce, ReduceKind};
use tensor_core::{CustomOp, DType, Dims, Expr, Meta, Op, Result, Shape, Tensor, execute};

use super::{Grads, Operand, Step, broadcast_axes, run, unbroadcast};

/// Whether the gradients by some inputs read input `i`.
pub(super) fn is_read(expr: &Expr, i: usize, wants: impl Fn(usize) -> bool) -> bool {
    let derivatives = expr.code.derivatives();
    derivatives.iter().enumerate().any(|(j, code)| wants(j) && code.as_ref().is_some_and(|code| code.reads(i)))
}

/// Whether an epilogue's derivative reads the result that it is applied to.
pub(super) fn reads_result(epilogue: &Expr) -> bool {
    !epilogue.is_identity() && is_read(epilogue, 0, |_| true)
}

pub(super) fn map(map: &Map, step: &Step<'_>) -> Result<Grads> {
    let inputs: SmallVec<[&Operand; 4]> = step.inputs.iter().collect();
    let mut sum: Grads = smallvec![None; inputs.len()];
    for (expr, g) in map.exprs.iter().zip(step.grads) {
        let Some(g) = g else { continue };
        for (sum, gradient) in sum.iter_mut().zip(pull(map.name, expr, &inputs, g)?) {
            *sum = match (sum.take(), gradient) {
                (Some(a), Some(b)) => Some(a.add(&b)?),
                (a, b) => a.or(b),
            };
        }
    }
    Ok(sum)
}

/// The gradients by an expression's inputs, given that by its value. Those of the value's own shape come from one pass.
pub(super) fn pull(name: &'static str, expr: &Expr, inputs: &[&Operand], g: &Tensor) -> Result<Grads> {
    let n = inputs.len();
    // A value that was not kept is not read: the cotangent stands in for it.
    let operands: SmallVec<[&Tensor; 4]> = inputs.iter().map(|x| x.value().unwrap_or(g)).chain([g]).collect();
    let mut grads: Grads = smallvec![None; n];
    let mut together: SmallVec<[(usize, Expr); 2]> = SmallVec::new();
    for (i, x) in inputs.iter().enumerate().filter(|(_, x)| x.is_wanted()) {
        let Some(derivative) = expr.derivative(i) else { continue };
        if derivative.code.is_input(n) {
            grads[i] = Some(unbroadcast(g, x.shape())?);
        } else if x.shape() == g.shape() {
            together.push((i, derivative));
        } else {
            grads[i] = Some(pulled_and_summed(name, derivative, &operands, x.shape())?);
        }
    }
    if !together.is_empty() {
        let exprs = together.iter().map(|(_, derivative)| derivative.clone()).collect();
        let results = execute(&Op::Map(Map { name, exprs }), &operands)?;
        together.iter().zip(results).for_each(|(&(i, _), gradient)| grads[i] = Some(gradient));
    }
    // Through a cast the cotangent has the other type.
    for (gradient, x) in grads.iter_mut().zip(inputs) {
        if let Some(g) = gradient
            && g.dtype() != x.dtype()
        {
            *gradient = Some(g.cast(x.dtype())?);
        }
    }
    Ok(grads)
}

/// A derivative summed over the axes along which its input was broadcast, in the same pass.
fn pulled_and_summed(name: &'static str, derivative: Expr, operands: &[&Tensor], shape: &Shape) -> Result<Tensor> {
    let full = operands[operands.len() - 1].shape();
    let axes: Dims = broadcast_axes(full, shape);
    let reduce = Reduce { name, kind: ReduceKind::Sum, axes, keepdim: true, producer: derivative };
    run(&Op::Reduce(reduce), operands)?.reshape(shape)
}

pub(super) fn custom(op: &dyn CustomOp, step: &Step<'_>) -> Result<Grads> {
    let inputs: SmallVec<[&Tensor; 4]> = (0..step.inputs.len()).map(|i| step.input(i)).collect();
    let outputs: SmallVec<[Tensor; 1]> = (0..step.outputs.len()).map(|k| step.output(k).clone()).collect();
    let grads = outputs
        .iter()
        .zip(step.grads)
        .map(|(y, g)| match g {
            Some(g) => Ok(g.clone()),
            None => Tensor::zeros(y.shape(), (&y.device(), y.dtype())),
        })
        .collect::<Result<SmallVec<[Tensor; 1]>>>()?;
    let mut gradients: Grads = op.derivative(&inputs, &outputs, &grads)?.into_iter().collect();
    gradients.resize(inputs.len(), None);
    Ok(gradients)
}

/// What is known of an epilogue's first input: the result of the op before it.
pub(super) fn result(shape: &Shape, dtype: DType, is_wanted: bool) -> Operand {
    Operand::known(Meta::new(shape.clone(), dtype), is_wanted)
}
