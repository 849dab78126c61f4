//! Functions of elements: unary and binary methods.

use tensor_core::{Result, Tensor};

use super::subject;
use crate::suite::case::{Call, Subject};
use crate::suite::input::Input;

type Unary = fn(&Tensor) -> Result<Tensor>;
type Binary = fn(&Tensor, &Tensor) -> Result<Tensor>;

/// Pairs of a name and the method of that name.
macro_rules! methods {
    ($($name:ident),* $(,)?) => { &[$((stringify!($name), |x| x.$name())),*] };
}

/// The same for methods of two tensors.
macro_rules! methods_of_two {
    ($($name:ident),* $(,)?) => { &[$((stringify!($name), |x, y| x.$name(y))),*] };
}

const UNARY: &[(&str, Unary)] = methods!(
    neg,
    abs,
    sign,
    exp,
    exp_m1,
    ln,
    ln_1p,
    sqrt,
    rsqrt,
    recip,
    square,
    sin,
    cos,
    tan,
    tanh,
    erf,
    floor,
    ceil,
    round,
    is_nan,
    is_finite,
    logical_not,
    relu,
    selu,
    gelu,
    gelu_tanh,
    silu,
    mish,
    softplus,
    sigmoid,
    log_sigmoid,
    hard_swish,
    hard_tanh,
    softsign,
);

const BINARY: &[(&str, Binary)] =
    methods_of_two!(add, sub, mul, div, rem, pow, maximum, minimum, eq, ne, lt, le, gt, ge, logical_and, logical_or,);

pub(super) fn subjects() -> Vec<Subject> {
    let unary = UNARY.iter().map(|&(name, run)| {
        subject(name, format!("{name}()"), move |draw, _| {
            Call::new("", vec![Input::data(&draw.shape())], move |x| run(&x[0]))
        })
    });
    let binary = BINARY.iter().map(|&(name, run)| {
        subject(name, format!("{name}(rhs)"), move |draw, _| {
            let dims = draw.shape();
            let (lhs, rhs) = (draw.broadcast(&dims), draw.broadcast(&dims));
            Call::new("", vec![Input::data(&lhs), Input::data(&rhs)], move |x| run(&x[0], &x[1]))
        })
    });
    unary.chain(binary).collect()
}
