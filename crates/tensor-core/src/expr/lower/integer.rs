//! Primitives of integers and truth values, without branches: division floors, division by zero gives 0.

use super::symbolic::{SymBits, SymMask};
use super::{LowOp, LowType};
use crate::DType;
use crate::expr::{Binary, Unary};
use crate::math::Bits;

/// What the two widths have in common beyond [`Bits`].
pub(super) trait Int: Bits<Mask = SymMask> {
    const WIDTH: u32;
    fn less(self, rhs: Self) -> SymMask;
    fn at_most(self, rhs: Self) -> SymMask;
    fn div_trunc(self, rhs: Self) -> Self;
}

macro_rules! int {
    ($double:literal) => {
        impl Int for SymBits<$double> {
            const WIDTH: u32 = if $double { 64 } else { 32 };
            fn less(self, rhs: Self) -> SymMask {
                self.lt(rhs)
            }
            fn at_most(self, rhs: Self) -> SymMask {
                self.le(rhs)
            }
            fn div_trunc(self, rhs: Self) -> Self {
                Self::apply(LowOp::DivTrunc, &[self.0, rhs.0])
            }
        }
    };
}
int!(false);
int!(true);

fn negated<I: Int>(x: I) -> I {
    I::constant(0).sub(x)
}

pub(super) fn unary<I: Int>(op: Unary, x: I) -> I {
    let zero = I::constant(0);
    match op {
        Unary::Neg => negated(x),
        Unary::Abs => I::select(x.less(zero), negated(x), x),
        Unary::Sign => {
            let positive = I::select(zero.less(x), I::constant(1), zero);
            I::select(x.less(zero), I::constant(-1), positive)
        }
        Unary::Floor | Unary::Ceil | Unary::Round => x,
        _ => unreachable!("invariant: {op:?} is not defined for integers"),
    }
}

pub(super) fn binary<I: Int>(op: Binary, x: I, y: I) -> I {
    match op {
        Binary::Add => x.add(y),
        Binary::Sub => x.sub(y),
        Binary::Mul => x.mul(y),
        Binary::Div => divide(x, y).0,
        Binary::Rem => divide(x, y).1,
        Binary::Pow => power(x, y),
        Binary::Min => I::select(y.less(x), y, x),
        Binary::Max => I::select(x.less(y), y, x),
        _ => unreachable!("invariant: {op:?} does not give an integer"),
    }
}

/// The floored quotient and the remainder with the divisor's sign; both 0 where y is 0.
fn divide<I: Int>(x: I, y: I) -> (I, I) {
    let (zero, one) = (I::constant(0), I::constant(1));
    // 0 is no divisor, and −1 overflows for the smallest integer: both divide by 1 here.
    let (by_zero, by_minus_one) = (y.eq(zero), y.eq(I::constant(-1)));
    let divisor = I::select(by_zero | by_minus_one, one, y);
    let truncated = x.div_trunc(divisor);
    let rest = x.sub(truncated.mul(divisor));
    let is_below = !rest.eq(zero) & (rest ^ divisor).less(zero);
    let quotient = I::select(is_below, truncated.sub(one), truncated);
    let remainder = I::select(is_below, rest.add(divisor), rest);
    let quotient = I::select(by_minus_one, negated(x), quotient);
    (I::select(by_zero, zero, quotient), remainder)
}

/// xʸ by squaring, wrapping; a negative exponent truncates the quotient: 0 but for ±1.
fn power<I: Int>(x: I, y: I) -> I {
    let (zero, one, minus_one) = (I::constant(0), I::constant(1), I::constant(-1));
    let is_set = |bit: u32| !(y.shr_logical(bit) & one).eq(zero);
    let mut power = one;
    let mut square = x;
    for bit in 0..I::WIDTH - 1 {
        power = I::select(is_set(bit), power.mul(square), power);
        square = square.mul(square);
    }
    let of_minus_one = I::select(is_set(0), minus_one, one);
    let inverse = I::select(x.eq(one), one, I::select(x.eq(minus_one), of_minus_one, zero));
    I::select(y.less(zero), inverse, power)
}

pub(super) fn compare<I: Int>(op: Binary, x: I, y: I) -> SymMask {
    match op {
        Binary::Eq => x.eq(y),
        Binary::Ne => !x.eq(y),
        Binary::Lt => x.less(y),
        _ => x.at_most(y),
    }
}

/// Truth values, false before true.
pub(super) fn truth(op: Binary, x: SymMask, y: SymMask) -> SymMask {
    match op {
        Binary::And | Binary::Min => x & y,
        Binary::Or | Binary::Max => x | y,
        Binary::Ne => x ^ y,
        Binary::Eq => !(x ^ y),
        Binary::Lt => !x & y,
        Binary::Le => !x | y,
        _ => unreachable!("invariant: {op:?} is not defined for bool"),
    }
}

/// What an integer of this type keeps of a 32-bit result.
pub(super) fn within(x: SymBits<false>, dtype: DType) -> SymBits<false> {
    debug_assert_eq!(LowType::of(dtype), LowType::I32);
    if dtype == DType::U8 { x & SymBits::constant(255) } else { x }
}
