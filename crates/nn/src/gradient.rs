//! Gradients of plain functions, and what is built from them; [`with_gradient`] is the one for models.

use tensor_core::{DType, Dims, Error, Result, Tensor};

use crate::autodiff::{Session, Trace, check_float};

mod collection;
mod lift;
mod model;

pub use collection::Gradients;
pub use model::{Outcome, with_gradient};

/// The gradient of a scalar function at `x`: ∂f/∂x, of x's shape. Zero where f does not depend on x.
///
/// Nests: `gradient(|x| gradient(f, x), &x)` differentiates the gradient. No layer's mode changes.
///
/// # Errors
/// If `x` is not of a float dtype, what `f` reports, and if f(x) is not a single float.
///
/// # Example: the derivative of the sine, and its derivative
/// ```
/// # fn main() -> tensor_core::Result<()> {
/// use nn::gradient;
/// use tensor_core::{DType, Tensor};
///
/// let x = Tensor::full((), 0.5, (&backend_cpu::device(), DType::F64))?;
/// let slope = gradient(|x| x.sin(), &x)?;
/// let bend = gradient(|x| gradient(|x| x.sin(), x), &x)?;
/// assert!((slope.item::<f64>()? - 0.5f64.cos()).abs() < 1e-12);
/// assert!((bend.item::<f64>()? + 0.5f64.sin()).abs() < 1e-12);
/// # Ok(())
/// # }
/// ```
pub fn gradient(f: impl FnOnce(&Tensor) -> Result<Tensor>, x: &Tensor) -> Result<Tensor> {
    Ok(value_and_gradient(f, x)?.1)
}

/// f(x) and [`gradient`] of f at `x`.
///
/// # Errors
/// As [`gradient`].
pub fn value_and_gradient(f: impl FnOnce(&Tensor) -> Result<Tensor>, x: &Tensor) -> Result<(Tensor, Tensor)> {
    let (value, [gradient]) = value_and_gradient_n(|[x]| f(x), [x])?;
    Ok((value, gradient))
}

/// The gradients of a scalar function of several tensors by each of them: `gradient_n(|[a, b]| …, [&a, &b])`.
///
/// # Errors
/// As [`gradient`].
pub fn gradient_n<const N: usize>(
    f: impl FnOnce([&Tensor; N]) -> Result<Tensor>,
    inputs: [&Tensor; N],
) -> Result<[Tensor; N]> {
    Ok(value_and_gradient_n(f, inputs)?.1)
}

/// f(x…) and its gradients by each of several tensors.
///
/// # Errors
/// As [`gradient`].
pub fn value_and_gradient_n<const N: usize>(
    f: impl FnOnce([&Tensor; N]) -> Result<Tensor>,
    inputs: [&Tensor; N],
) -> Result<(Tensor, [Tensor; N])> {
    let op = "gradient";
    let Some(first) = inputs.first() else {
        return Err(Error::gradient(op, "needs at least one input: got none"));
    };
    let session = Session::open(&first.device());
    for x in inputs {
        check_float(op, "input", x.dtype())?;
    }
    let lifted = inputs.map(|x| session.lift(x));
    let y = f(lifted.each_ref())?;
    drop(lifted);
    check_loss(op, &session, &y)?;
    let (value, trace) = session.finish(&y, N);
    let mut gradients = match trace {
        Some(trace) => trace.walk(one(&value)?)?,
        None => vec![None; N],
    }
    .into_iter();
    let mut result = inputs.map(Tensor::clone);
    for x in &mut result {
        *x = match gradients.next().flatten() {
            Some(gradient) => gradient,
            None => zeros_like(x)?,
        };
    }
    Ok((value, result))
}

/// The matrix of all derivatives ∂f_i/∂x_j, [f's shape.., x's shape..]. Runs `f` once and walks back once per element
/// of the result.
///
/// # Errors
/// If `x` or f(x) is not of a float dtype, and what `f` reports.
pub fn jacobian(f: impl FnOnce(&Tensor) -> Result<Tensor>, x: &Tensor) -> Result<Tensor> {
    check_float("jacobian", "input", x.dtype())?;
    let session = Session::open(&x.device());
    let y = f(&session.lift(x))?;
    check_float("jacobian", "result", y.dtype())?;
    let (value, trace) = session.finish(&y, 1);
    let shape: Dims = value.dims().iter().chain(x.dims()).copied().collect();
    let rows = match trace {
        Some(trace) => rows(&trace)?,
        None => Vec::new(),
    };
    if rows.is_empty() {
        return Tensor::zeros(&shape[..], (&x.device(), x.dtype()));
    }
    let rows = rows.into_iter().map(|row| row.map_or_else(|| zeros_like(x), Ok)).collect::<Result<Vec<_>>>()?;
    Tensor::stack(&rows, 0)?.reshape(&shape[..])
}

/// The gradient of every element of the result.
fn rows(trace: &Trace<'_>) -> Result<Vec<Option<Tensor>>> {
    let y = &trace.value;
    let positions = Tensor::arange(0, y.len() as i64, 1, (&y.device(), DType::I64))?.reshape(y.shape())?;
    (0..y.len())
        .map(|i| {
            let unit = positions.eq(i as i64)?.cast(y.dtype())?;
            Ok(trace.walk_again(unit)?.into_iter().next().flatten())
        })
        .collect()
}

/// H·v, H the matrix of second derivatives of a scalar function at `x`: the derivative of its gradient along `v`.
///
/// # Errors
/// As [`gradient`], and if `v` does not have x's shape and dtype.
pub fn hessian_vector_product(f: impl FnOnce(&Tensor) -> Result<Tensor>, x: &Tensor, v: &Tensor) -> Result<Tensor> {
    if v.shape() != x.shape() {
        return Err(Error::shape(
            "hessian_vector_product",
            format!("the vector must have the input's shape: input {}, vector {}", x.shape(), v.shape()),
        ));
    }
    gradient(|x| gradient(f, x)?.mul(v)?.sum(..), x)
}

/// The gradient of a scalar function at `x` from differences, (f(x + h) − f(x − h))/2h per element: slow, for checks.
///
/// h is ∛ε·max(1, |x|), ε the dtype's: about 10 right digits in f64, 4 in f32.
///
/// # Errors
/// As [`gradient`].
pub fn numerical_gradient(f: impl Fn(&Tensor) -> Result<Tensor>, x: &Tensor) -> Result<Tensor> {
    let op = "numerical_gradient";
    check_float(op, "input", x.dtype())?;
    let device = x.device();
    let place = (&device, x.dtype());
    let at = x.stop_gradient().cast(DType::F64)?.to_vec::<f64>()?;
    let value = |at: &[f64]| -> Result<f64> {
        let x = Tensor::from_slice(at, x.shape(), &device)?.cast(x.dtype())?;
        let y = f(&x)?;
        check_scalar(op, &y)?;
        y.cast(DType::F64)?.reshape(())?.item()
    };
    let mut gradient = Vec::with_capacity(at.len());
    let mut moved = at.clone();
    for (i, &v) in at.iter().enumerate() {
        let h = x.dtype().epsilon().cbrt() * v.abs().max(1.0);
        // The step is what the dtype makes of it.
        let [above, below] = [v + h, v - h].map(|v| match x.dtype() {
            DType::F64 => v,
            _ => f64::from(v as f32),
        });
        moved[i] = above;
        let high = value(&moved)?;
        moved[i] = below;
        let low = value(&moved)?;
        moved[i] = v;
        gradient.push((high - low) / (above - below));
    }
    Tensor::from_slice(&gradient, x.shape(), place.0)?.cast(place.1)
}

/// The value of `x` as a constant: no gradient flows through it, of any order.
pub fn stop_gradient(x: &Tensor) -> Tensor {
    x.stop_gradient()
}

fn one(value: &Tensor) -> Result<Tensor> {
    Tensor::ones(value.shape(), (&value.device(), value.dtype()))
}

fn zeros_like(x: &Tensor) -> Result<Tensor> {
    Tensor::zeros(x.shape(), (&x.device(), x.dtype()))
}

fn check_scalar(op: &'static str, loss: &Tensor) -> Result<()> {
    if loss.len() != 1 {
        return Err(Error::shape(
            op,
            format!("the loss must be a single number: loss {}; reduce it with .mean(..) or .sum(..)", loss.shape()),
        ));
    }
    check_float(op, "loss", loss.dtype())
}

fn check_loss(op: &'static str, session: &Session, loss: &Tensor) -> Result<()> {
    check_scalar(op, loss)?;
    let device = loss.device();
    if device != *session.base() {
        return Err(Error::device(
            op,
            format!(
                "the loss is on another device than what it is differentiated by: loss {device}, parameters {}",
                session.base()
            ),
        ));
    }
    Ok(())
}
