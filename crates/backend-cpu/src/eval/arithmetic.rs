//! The scalar primitives as functions of one and two elements: floats through the shared math library, integers
//! wrapping, with division that floors and gives 0 by zero.

use tensor_core::expr::{Binary, Unary};
use tensor_core::math::{self, Real};

use super::lane::{Lane, LaneType, for_lane};
use super::vector::{Fn1, Fn2, Operand, each, select, zip};

/// Floats.
trait Float: Real + Lane {}
impl Float for f32 {}
impl Float for f64 {}

macro_rules! functions {
    ($trait:ident <$t:ident: $bound:ident>, $out:ty; $($name:ident($($x:ident),*) = $body:expr;)*) => { $(
        struct $name;
        impl<$t: $bound> $trait<$t> for $name {
            type Out = $out;
            #[inline(always)]
            fn call($($x: $t),*) -> $out { $body }
        }
    )* };
}

functions! { Fn1<F: Float>, F;
    Neg(x) = -x;
    Abs(x) = math::abs(x);
    Sign(x) = math::sign(x);
    Exp(x) = math::exp(x);
    ExpM1(x) = math::exp_m1(x);
    Ln(x) = math::ln(x);
    Ln1p(x) = math::ln_1p(x);
    Sqrt(x) = math::sqrt(x);
    Rsqrt(x) = math::rsqrt(x);
    Recip(x) = math::recip(x);
    Sin(x) = math::sin(x);
    Cos(x) = math::cos(x);
    Tanh(x) = math::tanh(x);
    Erf(x) = math::erf(x);
    Floor(x) = math::floor(x);
    Ceil(x) = math::ceil(x);
    Round(x) = math::round(x);
}

functions! { Fn2<F: Float>, F;
    Add(x, y) = x + y;
    Sub(x, y) = x - y;
    Mul(x, y) = x * y;
    Div(x, y) = x / y;
    Rem(x, y) = math::rem(x, y);
    Pow(x, y) = math::pow(x, y);
    Min(x, y) = math::min(x, y);
    Max(x, y) = math::max(x, y);
}

functions! { Fn2<T: Lane>, u8;
    Eq(x, y) = u8::from(x == y);
    Ne(x, y) = u8::from(x != y);
    Lt(x, y) = u8::from(x < y);
    Le(x, y) = u8::from(x <= y);
}

/// Wrapping integers.
trait Int: Lane {
    fn neg(self) -> Self;
    fn abs(self) -> Self;
    fn sign(self) -> Self;
    fn add(self, y: Self) -> Self;
    fn sub(self, y: Self) -> Self;
    fn mul(self, y: Self) -> Self;
    fn div(self, y: Self) -> Self;
    fn rem(self, y: Self) -> Self;
    fn pow(self, y: Self) -> Self;
    fn min(self, y: Self) -> Self;
    fn max(self, y: Self) -> Self;
}

macro_rules! int {
    ($t:ty, abs $abs:expr, sign $sign:expr, floor $floor:expr) => {
        impl Int for $t {
            #[inline(always)]
            fn neg(self) -> Self {
                self.wrapping_neg()
            }
            #[inline(always)]
            fn abs(self) -> Self {
                ($abs)(self)
            }
            #[inline(always)]
            fn sign(self) -> Self {
                ($sign)(self)
            }
            #[inline(always)]
            fn add(self, y: Self) -> Self {
                self.wrapping_add(y)
            }
            #[inline(always)]
            fn sub(self, y: Self) -> Self {
                self.wrapping_sub(y)
            }
            #[inline(always)]
            fn mul(self, y: Self) -> Self {
                self.wrapping_mul(y)
            }
            #[inline(always)]
            fn div(self, y: Self) -> Self {
                if y == 0 { 0 } else { ($floor)(self.wrapping_div(y), self.wrapping_rem(y), y).0 }
            }
            #[inline(always)]
            fn rem(self, y: Self) -> Self {
                if y == 0 { 0 } else { ($floor)(0, self.wrapping_rem(y), y).1 }
            }
            /// A negative power is the true one, truncated; 0 of 0.
            #[inline(always)]
            fn pow(self, y: Self) -> Self {
                #[allow(unused_comparisons)]
                if y < 0 {
                    return match self {
                        1 => 1,
                        _ if self.wrapping_add(1) == 0 => {
                            if y & 1 == 0 {
                                1
                            } else {
                                self
                            }
                        }
                        _ => 0,
                    };
                }
                let (mut base, mut exponent, mut power) = (self, y, 1);
                while exponent > 0 {
                    if exponent & 1 == 1 {
                        power = <$t>::wrapping_mul(power, base);
                    }
                    base = base.wrapping_mul(base);
                    exponent >>= 1;
                }
                power
            }
            #[inline(always)]
            fn min(self, y: Self) -> Self {
                Ord::min(self, y)
            }
            #[inline(always)]
            fn max(self, y: Self) -> Self {
                Ord::max(self, y)
            }
        }
    };
}
/// The quotient and remainder that floor, from those that truncate.
macro_rules! floor {
    ($t:ty) => {
        |quotient: $t, remainder: $t, divisor: $t| {
            let differ = remainder != 0 && (remainder < 0) != (divisor < 0);
            if differ { (quotient.wrapping_sub(1), remainder.wrapping_add(divisor)) } else { (quotient, remainder) }
        }
    };
}
int!(i64, abs |x: i64| x.wrapping_abs(), sign |x: i64| x.signum(), floor floor!(i64));
int!(i32, abs |x: i32| x.wrapping_abs(), sign |x: i32| x.signum(), floor floor!(i32));
int!(u8, abs | x | x, sign | x | u8::from(x != 0), floor | quotient, remainder, _ | (quotient, remainder));

functions! { Fn1<T: Int>, T;
    IntNeg(x) = x.neg();
    IntAbs(x) = x.abs();
    IntSign(x) = x.sign();
}

functions! { Fn2<T: Int>, T;
    IntAdd(x, y) = x.add(y);
    IntSub(x, y) = x.sub(y);
    IntMul(x, y) = x.mul(y);
    IntDiv(x, y) = x.div(y);
    IntRem(x, y) = x.rem(y);
    IntPow(x, y) = x.pow(y);
    IntMin(x, y) = x.min(y);
    IntMax(x, y) = x.max(y);
}

struct Not;
impl Fn1<u8> for Not {
    type Out = u8;
    #[inline(always)]
    fn call(x: u8) -> u8 {
        x ^ 1
    }
}

struct And;
impl Fn2<u8> for And {
    type Out = u8;
    #[inline(always)]
    fn call(x: u8, y: u8) -> u8 {
        x & y
    }
}

struct Or;
impl Fn2<u8> for Or {
    type Out = u8;
    #[inline(always)]
    fn call(x: u8, y: u8) -> u8 {
        x | y
    }
}

/// A primitive of one operand over a chunk; core has checked that the lane has it.
pub(super) fn unary(op: Unary, lane: LaneType, x: Operand<'_>, out: &mut [u8]) {
    match lane {
        LaneType::F64 => unary_float::<f64>(op, x, out),
        LaneType::F32 => unary_float::<f32>(op, x, out),
        LaneType::I64 => unary_int::<i64>(op, x, out),
        LaneType::I32 => unary_int::<i32>(op, x, out),
        LaneType::U8 if op == Unary::Not => each::<Not, u8>(x, out),
        LaneType::U8 => unary_int::<u8>(op, x, out),
    }
}

fn unary_float<F: Float>(op: Unary, x: Operand<'_>, out: &mut [u8]) {
    match op {
        Unary::Neg => each::<Neg, F>(x, out),
        Unary::Abs => each::<Abs, F>(x, out),
        Unary::Sign => each::<Sign, F>(x, out),
        Unary::Exp => each::<Exp, F>(x, out),
        Unary::ExpM1 => each::<ExpM1, F>(x, out),
        Unary::Ln => each::<Ln, F>(x, out),
        Unary::Ln1p => each::<Ln1p, F>(x, out),
        Unary::Sqrt => each::<Sqrt, F>(x, out),
        Unary::Rsqrt => each::<Rsqrt, F>(x, out),
        Unary::Recip => each::<Recip, F>(x, out),
        Unary::Sin => each::<Sin, F>(x, out),
        Unary::Cos => each::<Cos, F>(x, out),
        Unary::Tanh => each::<Tanh, F>(x, out),
        Unary::Erf => each::<Erf, F>(x, out),
        Unary::Floor => each::<Floor, F>(x, out),
        Unary::Ceil => each::<Ceil, F>(x, out),
        Unary::Round => each::<Round, F>(x, out),
        Unary::Not => unreachable!("invariant: not takes bool"),
    }
}

fn unary_int<T: Int>(op: Unary, x: Operand<'_>, out: &mut [u8]) {
    match op {
        Unary::Neg => each::<IntNeg, T>(x, out),
        Unary::Abs => each::<IntAbs, T>(x, out),
        Unary::Sign => each::<IntSign, T>(x, out),
        other => unreachable!("invariant: {other:?} is not an integer primitive"),
    }
}

/// A primitive of two operands of one lane over a chunk.
pub(super) fn binary(op: Binary, lane: LaneType, x: Operand<'_>, y: Operand<'_>, out: &mut [u8]) {
    match lane {
        LaneType::F64 => binary_float::<f64>(op, x, y, out),
        LaneType::F32 => binary_float::<f32>(op, x, y, out),
        LaneType::I64 => binary_int::<i64>(op, x, y, out),
        LaneType::I32 => binary_int::<i32>(op, x, y, out),
        LaneType::U8 => match op {
            Binary::And => zip::<And, u8>(x, y, out),
            Binary::Or => zip::<Or, u8>(x, y, out),
            _ => binary_int::<u8>(op, x, y, out),
        },
    }
}

fn binary_float<F: Float>(op: Binary, x: Operand<'_>, y: Operand<'_>, out: &mut [u8]) {
    match op {
        Binary::Add => zip::<Add, F>(x, y, out),
        Binary::Sub => zip::<Sub, F>(x, y, out),
        Binary::Mul => zip::<Mul, F>(x, y, out),
        Binary::Div => zip::<Div, F>(x, y, out),
        Binary::Rem => zip::<Rem, F>(x, y, out),
        Binary::Pow => zip::<Pow, F>(x, y, out),
        Binary::Min => zip::<Min, F>(x, y, out),
        Binary::Max => zip::<Max, F>(x, y, out),
        Binary::Eq => zip::<Eq, F>(x, y, out),
        Binary::Ne => zip::<Ne, F>(x, y, out),
        Binary::Lt => zip::<Lt, F>(x, y, out),
        Binary::Le => zip::<Le, F>(x, y, out),
        Binary::And | Binary::Or => unreachable!("invariant: {op:?} takes bool"),
    }
}

fn binary_int<T: Int>(op: Binary, x: Operand<'_>, y: Operand<'_>, out: &mut [u8]) {
    match op {
        Binary::Add => zip::<IntAdd, T>(x, y, out),
        Binary::Sub => zip::<IntSub, T>(x, y, out),
        Binary::Mul => zip::<IntMul, T>(x, y, out),
        Binary::Div => zip::<IntDiv, T>(x, y, out),
        Binary::Rem => zip::<IntRem, T>(x, y, out),
        Binary::Pow => zip::<IntPow, T>(x, y, out),
        Binary::Min => zip::<IntMin, T>(x, y, out),
        Binary::Max => zip::<IntMax, T>(x, y, out),
        Binary::Eq => zip::<Eq, T>(x, y, out),
        Binary::Ne => zip::<Ne, T>(x, y, out),
        Binary::Lt => zip::<Lt, T>(x, y, out),
        Binary::Le => zip::<Le, T>(x, y, out),
        Binary::And | Binary::Or => unreachable!("invariant: {op:?} takes bool"),
    }
}

/// `condition ? x : y` over a chunk.
pub(super) fn choose(lane: LaneType, condition: Operand<'_>, x: Operand<'_>, y: Operand<'_>, out: &mut [u8]) {
    for_lane!(lane, L => select::<L>(condition, x, y, out));
}
