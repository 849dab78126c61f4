//! Functions of elements: unary and binary methods.

use tensor_core::{Operand, Result, Tensor};

use super::{is_rare, number, subject};
use crate::suite::case::{Call, Subject};
use crate::suite::input::Input;

type Unary = fn(&Tensor) -> Result<Tensor>;
type Binary = fn(&Tensor, Operand<'_>) -> Result<Tensor>;

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
    methods_with!(add, sub, mul, div, rem, pow, maximum, minimum, eq, ne, lt, le, gt, ge, logical_and, logical_or,);

pub(super) fn subjects() -> Vec<Subject> {
    let unary = UNARY.iter().map(|&(name, run)| {
        subject(name, format!("{name}()"), move |draw, _| {
            Call::new("", vec![Input::data(&draw.shape())], move |x| run(&x[0]))
        })
    });
    let binary = BINARY.iter().map(|&(name, run)| {
        subject(name, format!("{name}(rhs)"), move |draw, dtype| {
            let dims = draw.shape();
            let lhs = draw.broadcast(&dims);
            if draw.below(5) == 4 {
                let rhs = number(draw, dtype);
                return Call::new(format!("rhs {rhs}"), vec![Input::data(&lhs)], move |x| run(&x[0], rhs.into()));
            }
            let mut rhs = draw.broadcast(&dims);
            if is_rare(draw, 24) {
                rhs.push(3);
            }
            Call::new("", vec![Input::data(&lhs), Input::data(&rhs)], move |x| run(&x[0], (&x[1]).into()))
        })
    });
    unary.chain(binary).collect()
}
