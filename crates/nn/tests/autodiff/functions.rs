//! Gradients of plain functions: nesting, several inputs, matrices of derivatives, and their errors.

use nn::{
    gradient, gradient_n, hessian_vector_product, jacobian, numerical_gradient, stop_gradient, value_and_gradient,
};
use tensor_core::{DType, Error, Result, Tensor, zip};

use crate::support::{assert_values, device, indices, tensor, values};

fn scalar(v: f64) -> Tensor {
    tensor(&[v], ())
}

#[test]
fn value_and_gradient_of_a_function() {
    let (value, slope) = value_and_gradient(|x| x.square()?.sum(..), &tensor(&[1.0, 2.0, 3.0], [3])).unwrap();
    assert_values("value", &value, &[14.0]);
    assert_values("gradient", &slope, &[2.0, 4.0, 6.0]);
    let [a, b] = gradient_n(|[a, b]| a.mul(b)?.sum(..), [&tensor(&[1.0, 2.0], [2]), &scalar(3.0)]).unwrap();
    assert_values("by a", &a, &[3.0, 3.0]);
    assert_values("by b", &b, &[3.0]);
}

#[test]
fn a_function_that_does_not_depend_on_its_input_has_gradient_zero() {
    let c = tensor(&[1.0, 2.0], [2]);
    assert_values("constant", &gradient(|_| c.sum(..), &c).unwrap(), &[0.0, 0.0]);
    assert_values("steps", &gradient(|x| x.floor()?.sum(..), &c).unwrap(), &[0.0, 0.0]);
    assert_values("stopped", &gradient(|x| stop_gradient(x).mul(x)?.sum(..), &c).unwrap(), &[1.0, 2.0]);
    let [_, b] = gradient_n(|[a, _]| a.sum(..), [&c, &c]).unwrap();
    assert_values("one of two", &b, &[0.0, 0.0]);
}

#[test]
fn gradients_nest() {
    let fourth = |x: &Tensor| x.square()?.square();
    let first = |x: &Tensor| gradient(fourth, x);
    let second = |x: &Tensor| gradient(first, x);
    let third = |x: &Tensor| gradient(second, x);
    let at = scalar(2.0);
    assert_values("first", &first(&at).unwrap(), &[32.0]);
    assert_values("second", &second(&at).unwrap(), &[48.0]);
    assert_values("third", &third(&at).unwrap(), &[48.0]);
    assert_values("fourth", &gradient(third, &at).unwrap(), &[24.0]);
}

/// d/dx x·(d/dy (x + y)) is 1: what one level differentiates by is a constant for the other.
#[test]
fn levels_are_not_confused() {
    let outer = |x: &Tensor| x.mul(&gradient(|y| x.add(y), &scalar(1.0))?);
    assert_values("x·1", &gradient(outer, &scalar(3.0)).unwrap(), &[1.0]);
    // d/dx of d/dy (x·y²) at y = x: 2xy differentiated by x alone, then also through y.
    let inner = |x: &Tensor, y: &Tensor| gradient(|y| x.mul(&y.square()?), y);
    let y = scalar(3.0);
    assert_values("mixed", &gradient(|x| inner(x, &y), &scalar(2.0)).unwrap(), &[6.0]);
    assert_values("through both", &gradient(|x| inner(x, x), &scalar(3.0)).unwrap(), &[12.0]);
}

#[test]
fn a_closed_level_counts_as_its_plain_value() {
    let mut leaked = None;
    let x = tensor(&[1.0, 2.0], [2]);
    gradient(
        |x| {
            let y = x.square()?;
            leaked = Some(y.clone());
            y.sum(..)
        },
        &x,
    )
    .unwrap();
    let leaked = leaked.unwrap();
    assert_values("read", &leaked, &[1.0, 4.0]);
    assert_values("used", &leaked.mul(2.0).unwrap(), &[2.0, 8.0]);
    assert_values("moved", &leaked.reshape([2, 1]).unwrap().t().unwrap(), &[1.0, 4.0]);
    assert_eq!(leaked.device(), device());
    assert_eq!(*leaked.add(&x).unwrap().place(), device());
    let g = gradient(|x| x.mul(&leaked)?.sum(..), &x).unwrap();
    assert_values("a constant in another gradient", &g, &[1.0, 4.0]);
    let g = gradient(|x| x.square()?.sum(..), &leaked).unwrap();
    assert_values("differentiated by", &g, &[2.0, 8.0]);
}

#[test]
fn integers_and_truths_take_part_as_constants() {
    let x = tensor(&[3.0, 1.0, 2.0], [3]);
    let f = |x: &Tensor| -> Result<Tensor> {
        assert_eq!(*x.argmax(0)?.place().physical(), device());
        let largest = x.gather(0, &x.argsort(0, true)?.narrow(0, 0, 2)?)?;
        largest.mul(&x.gt(1.5)?.narrow(0, 1, 2)?.cast(DType::F64)?)?.sum(..)
    };
    assert_values("argsort, gt", &gradient(f, &x).unwrap(), &[0.0, 0.0, 1.0]);
}

#[test]
fn jacobians() {
    let a = tensor(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], [2, 3]);
    let x = tensor(&[1.0, -1.0, 2.0], [3]);
    let j = jacobian(|x| a.matmul(x), &x).unwrap();
    assert_eq!(j.shape(), &[2, 3]);
    assert_values("linear", &j, &values(&a));
    let j = jacobian(|x| x.square(), &x).unwrap();
    assert_values("diagonal", &j, &[2.0, 0.0, 0.0, 0.0, -2.0, 0.0, 0.0, 0.0, 4.0]);
    let hessian = jacobian(|x| gradient(|x| x.prod(0), x), &x).unwrap();
    assert_values("hessian", &hessian, &[0.0, 2.0, -1.0, 2.0, 0.0, 1.0, -1.0, 1.0, 0.0]);
    assert_values("constant", &jacobian(|_| Ok(x.clone()), &x).unwrap(), &[0.0; 9]);
    assert_eq!(jacobian(|x| x.narrow(0, 0, 0), &x).unwrap().shape(), &[0, 3]);
}

#[test]
fn hessian_vector_products() {
    let x = tensor(&[1.0, -1.0, 2.0], [3]);
    let v = tensor(&[1.0, 2.0, 3.0], [3]);
    let product = hessian_vector_product(|x| x.prod(0), &x, &v).unwrap();
    assert_values("H·v", &product, &[1.0, 5.0, 1.0]);
    let error = hessian_vector_product(|x| x.prod(0), &x, &v.narrow(0, 0, 2).unwrap()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "hessian_vector_product: the vector must have the input's shape: input [3], vector [2]"
    );
}

#[test]
fn numerical_gradients_in_every_precision() {
    let x = tensor(&[0.5, -1.0, 2.0], [3]);
    for (dtype, tolerance) in [(DType::F64, 1e-9), (DType::F32, 1e-3)] {
        let x = x.cast(dtype).unwrap();
        let g = numerical_gradient(|x| x.sin()?.sum(..), &x).unwrap();
        assert_eq!(g.dtype(), dtype);
        let expected = x.cos().unwrap();
        assert!(g.allclose(&expected, tolerance, tolerance).unwrap(), "{dtype}: {g:?}");
    }
}

/// A cast in the middle: the gradient comes back in each tensor's own type.
#[test]
fn gradients_through_casts() {
    let x = tensor(&[0.5, -1.0, 2.0], [3]);
    let g = gradient(|x| x.cast(DType::F32)?.square()?.cast(DType::F64)?.sum(..), &x).unwrap();
    assert_eq!(g.dtype(), DType::F64);
    assert_values("values", &g, &[1.0, -2.0, 4.0]);
    let half = x.cast(DType::F16).unwrap();
    let g = gradient(|x| zip(&x.cast(DType::F32)?, x, |a, b| a * b.cast(DType::F32))?.sum(..), &half).unwrap();
    assert_eq!(g.dtype(), DType::F16);
    assert_values("mixed", &g, &[1.0, -2.0, 4.0]);
    let g = gradient(|x| x.square()?.sum(..)?.cast(DType::F32), &half).unwrap();
    assert_values("f16", &g, &[1.0, -2.0, 4.0]);
}

#[test]
fn errors_name_what_is_wrong() {
    let x = tensor(&[1.0, 2.0], [2]);
    let check = |f: &dyn Fn() -> Result<Tensor>, kind: fn(&Error) -> bool, text: &str| {
        let error = f().unwrap_err();
        assert!(kind(&error), "{error}");
        assert_eq!(error.to_string(), text);
    };
    check(
        &|| gradient(|x| x.square(), &x),
        Error::is_shape,
        "gradient: the loss must be a single number: loss [2]; reduce it with .mean(..) or .sum(..)",
    );
    check(
        &|| gradient(|x| x.argmax(0), &x),
        Error::is_dtype,
        "gradient: loss must be of a float dtype: loss i64; cast it with .cast(..)",
    );
    check(
        &|| gradient(|x| x.sum(..), &indices(&[1], [1])),
        Error::is_dtype,
        "gradient: input must be of a float dtype: input i64; cast it with .cast(..)",
    );
    let (other, _) = backend_cpu::test_device("other", 0);
    let elsewhere = Tensor::ones((), (&other, DType::F64)).unwrap();
    check(
        &|| gradient(|_| Ok(elsewhere.clone()), &x),
        Error::is_device,
        "gradient: the loss is on another device than what it is differentiated by: loss other:0, parameters cpu",
    );
    check(
        &|| gradient(|x| x.to(&other)?.sum(..), &x),
        Error::is_gradient,
        "to: a tensor inside a gradient cannot move to another device: input cpu, device other:0; move the model and \
         the data before",
    );
    check(&|| gradient(|_| Err(Error::other("mine", "own error")), &x), Error::is_other, "mine: own error");
}
