//! [`Real`] for `f32` and `f64`: every method is one or two machine instructions that vectorise.

use super::{Bits, Format, Real};

/// Implements [`Real`] and [`Bits`] for a float, its signed and unsigned integers and the integer twice as wide.
///
/// `$shift` is 1.5 · 2^mantissa_bits: adding it leaves an integer in the low bits of the sum.
macro_rules! native {
    ($float:ty, $int:ty, $uint:ty, $wide:ty, $format:expr, $shift:expr, $from_int:ident) => {
        impl Real for $float {
            const FORMAT: Format = $format;
            type Bits = $int;
            type Mask = bool;

            #[inline(always)]
            fn constant(value: f64) -> Self {
                value as $float
            }
            #[inline(always)]
            fn abs(self) -> Self {
                <$float>::abs(self)
            }
            #[inline(always)]
            fn sqrt(self) -> Self {
                <$float>::sqrt(self)
            }
            #[inline(always)]
            fn floor(self) -> Self {
                <$float>::floor(self)
            }
            #[inline(always)]
            fn ceil(self) -> Self {
                <$float>::ceil(self)
            }
            #[inline(always)]
            fn round_even(self) -> Self {
                <$float>::round_ties_even(self)
            }
            #[inline(always)]
            fn fma(self, factor: Self, addend: Self) -> Self {
                self.mul_add(factor, addend)
            }
            #[inline(always)]
            fn mul_error(self, factor: Self, product: Self) -> Self {
                self.mul_add(factor, -product)
            }
            #[inline(always)]
            fn keep(self) -> Self {
                self
            }
            #[inline(always)]
            fn lt(self, rhs: Self) -> bool {
                self < rhs
            }
            #[inline(always)]
            fn le(self, rhs: Self) -> bool {
                self <= rhs
            }
            #[inline(always)]
            fn eq(self, rhs: Self) -> bool {
                self == rhs
            }
            #[inline(always)]
            fn select(mask: bool, then: Self, otherwise: Self) -> Self {
                if mask { then } else { otherwise }
            }
            #[inline(always)]
            fn to_bits(self) -> $int {
                <$float>::to_bits(self) as $int
            }
            #[inline(always)]
            fn from_bits(bits: $int) -> Self {
                <$float>::from_bits(bits as $uint)
            }
            // `as` would saturate, which takes a compare and a select more.
            #[inline(always)]
            fn to_int(self) -> $int {
                Bits::sub(Real::to_bits(self + $shift), Real::to_bits($shift))
            }
            #[inline(always)]
            fn from_int(int: $int) -> Self {
                $from_int(int)
            }
            // One addition rounds and leaves the integer.
            #[inline(always)]
            fn round_to_int(self) -> (Self, $int) {
                let shifted = self + $shift;
                (shifted - $shift, Bits::sub(Real::to_bits(shifted), Real::to_bits($shift)))
            }
        }

        impl Bits for $int {
            type Mask = bool;

            #[inline(always)]
            fn constant(value: i64) -> Self {
                value as $int
            }
            #[inline(always)]
            fn add(self, rhs: Self) -> Self {
                self.wrapping_add(rhs)
            }
            #[inline(always)]
            fn sub(self, rhs: Self) -> Self {
                self.wrapping_sub(rhs)
            }
            #[inline(always)]
            fn mul(self, rhs: Self) -> Self {
                self.wrapping_mul(rhs)
            }
            #[inline(always)]
            fn mul_high(self, rhs: Self) -> Self {
                ((self as $uint as $wide * rhs as $uint as $wide) >> <$int>::BITS) as $int
            }
            #[inline(always)]
            fn shl(self, bits: u32) -> Self {
                self << bits
            }
            #[inline(always)]
            fn shr(self, bits: u32) -> Self {
                self >> bits
            }
            #[inline(always)]
            fn shr_logical(self, bits: u32) -> Self {
                (self as $uint >> bits) as $int
            }
            #[inline(always)]
            fn shl_by(self, bits: Self) -> Self {
                self.wrapping_shl(bits as u32)
            }
            #[inline(always)]
            fn shr_logical_by(self, bits: Self) -> Self {
                (self as $uint).wrapping_shr(bits as u32) as $int
            }
            #[inline(always)]
            fn lt_unsigned(self, rhs: Self) -> bool {
                (self as $uint) < rhs as $uint
            }
            #[inline(always)]
            fn eq(self, rhs: Self) -> bool {
                self == rhs
            }
            #[inline(always)]
            fn select(mask: bool, then: Self, otherwise: Self) -> Self {
                if mask { then } else { otherwise }
            }
        }
    };
}

/// One conversion instruction.
#[inline(always)]
fn f32_from_int(int: i32) -> f32 {
    int as f32
}

/// There is no vector conversion of 64-bit integers before AVX-512: the integer enters a float's low bits.
#[inline(always)]
fn f64_from_int(int: i64) -> f64 {
    const SHIFT: f64 = 6_755_399_441_055_744.0;
    f64::from_bits(int.wrapping_add(SHIFT.to_bits() as i64) as u64) - SHIFT
}

native!(f32, i32, u32, u64, Format::Single, 12_582_912.0_f32, f32_from_int);
native!(f64, i64, u64, u128, Format::Double, 6_755_399_441_055_744.0_f64, f64_from_int);
