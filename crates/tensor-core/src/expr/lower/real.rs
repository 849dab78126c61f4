//! Primitives of floats: the math library's.

use crate::expr::{Binary, Unary};
use crate::math::{self, Real};

pub(super) fn unary<R: Real>(op: Unary, x: R) -> R {
    match op {
        Unary::Neg => -x,
        Unary::Abs => math::abs(x),
        Unary::Sign => math::sign(x),
        Unary::Exp => math::exp(x),
        Unary::ExpM1 => math::exp_m1(x),
        Unary::Ln => math::ln(x),
        Unary::Ln1p => math::ln_1p(x),
        Unary::Sqrt => math::sqrt(x),
        Unary::Rsqrt => math::rsqrt(x),
        Unary::Recip => math::recip(x),
        Unary::Sin => math::sin(x),
        Unary::Cos => math::cos(x),
        Unary::Tanh => math::tanh(x),
        Unary::Erf => math::erf(x),
        Unary::Floor => math::floor(x),
        Unary::Ceil => math::ceil(x),
        Unary::Round => math::round(x),
        Unary::Not => unreachable!("invariant: not takes a bool"),
    }
}

pub(super) fn binary<R: Real>(op: Binary, x: R, y: R) -> R {
    match op {
        Binary::Add => x + y,
        Binary::Sub => x - y,
        Binary::Mul => x * y,
        Binary::Div => x / y,
        Binary::Rem => math::rem(x, y),
        Binary::Pow => math::pow(x, y),
        Binary::Min => math::min(x, y),
        Binary::Max => math::max(x, y),
        Binary::Eq | Binary::Ne | Binary::Lt | Binary::Le | Binary::And | Binary::Or => {
            unreachable!("invariant: {op:?} does not give a float")
        }
    }
}

pub(super) fn compare<R: Real>(op: Binary, x: R, y: R) -> R::Mask {
    match op {
        Binary::Eq => x.eq(y),
        Binary::Ne => !x.eq(y),
        Binary::Lt => x.lt(y),
        _ => x.le(y),
    }
}
