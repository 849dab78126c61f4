//! The one math library: every transcendental that a backend evaluates, as straight-line code over [`Real`].
//!
//! A function here is a fixed sequence of additions, products, fused products, comparisons, selects and bit
//! operations. Compiled for `f32` and `f64` it is what the CPU runs; instantiated with a symbolic [`Real`] it yields
//! the graph that PTX and WGSL are printed from. So backends agree to rounding, and an error bound is stated once, in
//! [`BOUNDS`]. There is no branch on a value, no table indexed by a value, and no call of a platform's `libm`.
//!
//! # Rules for code in this module
//!
//! - Every operation on a value goes through [`Real`] or [`Bits`]. Loops run over constants only.
//! - [`Real::fma`] may round twice on a target without a fused instruction: no formula relies on it for exactness.
//!   Products whose rounding error matters use [`Real::mul_error`].
//! - Sums that must not be regrouped pass through [`Real::keep`]: GPU drivers reassociate.
//! - Division and square root may be off by an ulp or two on WGSL; formulas tolerate it, and their bound grows by it.

mod accuracy;
mod coefficients;
mod erf;
mod exponential;
mod logarithm;
mod native;
mod pair;
mod power;
mod reduction;
mod rounding;
mod tanh;
mod trigonometric;

use std::ops::{Add, BitAnd, BitOr, BitXor, Div, Mul, Neg, Not, Sub};

pub use accuracy::{BOUNDS, Bound, bound};
pub use erf::erf;
pub use exponential::{exp, exp_m1};
pub use logarithm::{ln, ln_1p};
pub use power::{pow, recip, rsqrt};
pub use rounding::{abs, ceil, floor, max, min, rem, round, sign, sqrt};
pub use tanh::tanh;
pub use trigonometric::{cos, sin, tan};

/// The layout of a floating-point number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// IEEE 754 binary32.
    Single,
    /// IEEE 754 binary64.
    Double,
}

impl Format {
    /// Bits in the whole number.
    #[inline(always)]
    pub const fn width(self) -> u32 {
        match self {
            Format::Single => 32,
            Format::Double => 64,
        }
    }

    /// Bits stored for the significand, which has one more that is implied.
    #[inline(always)]
    pub const fn mantissa_bits(self) -> u32 {
        match self {
            Format::Single => 23,
            Format::Double => 52,
        }
    }

    /// The bits of the exponent field of 1.0.
    #[inline(always)]
    pub const fn exponent_bias(self) -> i64 {
        match self {
            Format::Single => 127,
            Format::Double => 1023,
        }
    }
}

/// A truth value per lane: `bool` natively, a predicate in a graph.
pub trait Mask: Copy + BitAnd<Output = Self> + BitOr<Output = Self> + Not<Output = Self> {}

impl<M: Copy + BitAnd<Output = M> + BitOr<Output = M> + Not<Output = M>> Mask for M {}

/// A floating-point number of known [`Format`], native or symbolic.
///
/// Operators round to nearest. Comparisons are ordered: false when an operand is NaN. Implementors provide the
/// operations without a body; the others may be overridden where the target has something better that gives the same
/// bits.
pub trait Real:
    Copy + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> + Div<Output = Self> + Neg<Output = Self>
{
    /// The number's width.
    const FORMAT: Format;
    /// The integer of the same width.
    type Bits: Bits<Mask = Self::Mask>;
    /// The result of a comparison.
    type Mask: Mask;

    /// The literal `value`, rounded to this width. Infinite and NaN literals occur.
    fn constant(value: f64) -> Self;
    /// `|self|`: clears the sign bit.
    fn abs(self) -> Self;
    /// `√self`.
    fn sqrt(self) -> Self;
    /// The largest integer not above `self`; keeps ±0, ±inf and NaN.
    fn floor(self) -> Self;
    /// The smallest integer not below `self`; keeps ±0, ±inf and NaN.
    fn ceil(self) -> Self;
    /// The nearest integer, ties to even; keeps ±0, ±inf and NaN.
    fn round_even(self) -> Self;
    /// `self · factor + addend`, rounded once where the target can.
    fn fma(self, factor: Self, addend: Self) -> Self;
    /// The rounding error `self · factor − product` of `product = self * factor`, exact unless it underflows.
    ///
    /// A target without a fused instruction splits the factors by masking bits (Dekker).
    fn mul_error(self, factor: Self, product: Self) -> Self;
    /// `self`, opaque to an optimizer that regroups floating-point sums or products.
    fn keep(self) -> Self;

    /// `self < rhs`.
    fn lt(self, rhs: Self) -> Self::Mask;
    /// `self <= rhs`.
    fn le(self, rhs: Self) -> Self::Mask;
    /// `self == rhs`.
    fn eq(self, rhs: Self) -> Self::Mask;
    /// `if mask { then } else { otherwise }`, lane by lane; both are computed.
    fn select(mask: Self::Mask, then: Self, otherwise: Self) -> Self;

    /// The representation as an integer.
    fn to_bits(self) -> Self::Bits;
    /// The number that `bits` represents.
    fn from_bits(bits: Self::Bits) -> Self;
    /// The integer equal to an integral `self` with `|self| < 2^22` (single) or `2^51` (double); any integer otherwise.
    fn to_int(self) -> Self::Bits;
    /// The number equal to `int`, for `|int| < 2^24` (single) or `2^51` (double).
    fn from_int(int: Self::Bits) -> Self;

    /// [`round_even`](Self::round_even) as a number and as an integer, under the limits of [`to_int`](Self::to_int).
    #[inline(always)]
    fn round_to_int(self) -> (Self, Self::Bits) {
        let rounded = self.round_even();
        (rounded, rounded.to_int())
    }
    /// `self > rhs`.
    #[inline(always)]
    fn gt(self, rhs: Self) -> Self::Mask {
        rhs.lt(self)
    }
    /// `self >= rhs`.
    #[inline(always)]
    fn ge(self, rhs: Self) -> Self::Mask {
        rhs.le(self)
    }
    /// Whether `self` is NaN, as "not equal to itself": some targets give an ordered `!=`.
    #[inline(always)]
    fn is_nan(self) -> Self::Mask {
        !self.eq(self)
    }
    /// `self` if it is not above `limit`, else `limit`; NaN stays NaN.
    #[inline(always)]
    fn at_most(self, limit: Self) -> Self {
        Self::select(self.gt(limit), limit, self)
    }
    /// `self` if it is not below `limit`, else `limit`; NaN stays NaN.
    #[inline(always)]
    fn at_least(self, limit: Self) -> Self {
        Self::select(self.lt(limit), limit, self)
    }
    /// `self` with its sign bit flipped where `sign` has its own set.
    #[inline(always)]
    fn xor_sign(self, sign: Self) -> Self {
        let sign_bit = Self::Bits::constant(i64::MIN >> (64 - Self::FORMAT.width()));
        Self::from_bits(self.to_bits() ^ (sign.to_bits() & sign_bit))
    }
}

/// The two's-complement integer of a [`Real`]'s width. Arithmetic wraps.
pub trait Bits: Copy + BitAnd<Output = Self> + BitOr<Output = Self> + BitXor<Output = Self> {
    /// The result of a comparison.
    type Mask: Mask;

    /// The literal `value`, truncated to this width.
    fn constant(value: i64) -> Self;
    /// `self + rhs`.
    fn add(self, rhs: Self) -> Self;
    /// `self − rhs`.
    fn sub(self, rhs: Self) -> Self;
    /// The low half of the product.
    fn mul(self, rhs: Self) -> Self;
    /// The high half of the product, both factors taken as unsigned.
    fn mul_high(self, rhs: Self) -> Self;
    /// `self << bits`, `bits` less than the width.
    fn shl(self, bits: u32) -> Self;
    /// `self >> bits`, filling with the sign.
    fn shr(self, bits: u32) -> Self;
    /// `self >> bits`, filling with zeros.
    fn shr_logical(self, bits: u32) -> Self;
    /// `self << bits` by a run-time count from 0 to the width − 1.
    fn shl_by(self, bits: Self) -> Self;
    /// [`shr_logical`](Self::shr_logical) by a run-time count from 0 to the width − 1.
    fn shr_logical_by(self, bits: Self) -> Self;
    /// `self < rhs`, both taken as unsigned.
    fn lt_unsigned(self, rhs: Self) -> Self::Mask;
    /// `self == rhs`.
    fn eq(self, rhs: Self) -> Self::Mask;
    /// `if mask { then } else { otherwise }`, lane by lane.
    fn select(mask: Self::Mask, then: Self, otherwise: Self) -> Self;
}
