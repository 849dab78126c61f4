//! Conversions between element types, without branches so that they vectorise.

use half::{bf16, f16};
use tensor_core::DType;

use super::lane::{Lane, LaneType, Stored, for_lane};
use super::vector::{Fn1, Operand, each};
use crate::simd::{self, Level};

/// The 16-bit float of these bits.
#[inline(always)]
pub(super) fn f16_to_f32(bits: u16) -> f32 {
    let sign = u32::from(bits & 0x8000) << 16;
    let rest = u32::from(bits & 0x7fff) << 13;
    // Rebiases the exponent by a product, which also normalises subnormals.
    let finite = (f32::from_bits(rest) * f32::from_bits((254 - 15) << 23)).to_bits();
    let bits = if rest >= 31 << 23 { rest | 0x7f80_0000 } else { finite };
    f32::from_bits(bits | sign)
}

/// The bits of the nearest 16-bit float, ties to even.
#[inline(always)]
pub(super) fn f32_to_f16(value: f32) -> u16 {
    let bits = value.to_bits();
    let rest = bits & 0x7fff_ffff;
    let overflow = if rest > 0x7f80_0000 { 0x7e00 } else { 0x7c00 };
    // Adding ½ shifts a subnormal's bits into place and rounds them.
    let subnormal = (f32::from_bits(rest) + 0.5).to_bits().wrapping_sub(0.5f32.to_bits());
    let rounding = 0xfff + (rest >> 13 & 1);
    let normal = rest.wrapping_sub(112 << 23).wrapping_add(rounding) >> 13;
    let small = if rest < 113 << 23 { subnormal } else { normal };
    let magnitude = if rest >= 143 << 23 { overflow } else { small };
    (magnitude | bits >> 16 & 0x8000) as u16
}

/// The bfloat16 of these bits.
#[inline(always)]
pub(super) fn bf16_to_f32(bits: u16) -> f32 {
    f32::from_bits(u32::from(bits) << 16)
}

/// The bits of the nearest bfloat16, ties to even.
#[inline(always)]
pub(super) fn f32_to_bf16(value: f32) -> u16 {
    let bits = value.to_bits();
    let rounded = bits.wrapping_add(0x7fff + (bits >> 16 & 1));
    let is_nan = bits & 0x7fff_ffff > 0x7f80_0000;
    ((if is_nan { bits | 0x40_0000 } else { rounded }) >> 16) as u16
}

/// A value of `f32` that rounds on to a 16-bit float as `value` itself does: inexact results get an odd last bit.
#[inline(always)]
fn f64_to_odd_f32(value: f64) -> f32 {
    let nearest = value as f32;
    let error = f64::from(nearest) - value;
    let bits = nearest.to_bits();
    let is_inexact = error != 0.0 && nearest.is_finite();
    // Back towards zero where rounding went away from it.
    let is_past = (error > 0.0) == (value > 0.0);
    let towards_zero = bits.wrapping_sub(u32::from(is_past));
    f32::from_bits(if is_inexact { towards_zero | 1 } else { bits })
}

macro_rules! conversions {
    ($($name:ident: $from:ty => $to:ty, |$x:ident| $body:expr;)*) => { $(
        struct $name;
        impl Fn1<$from> for $name {
            type Out = $to;
            #[inline(always)]
            fn call($x: $from) -> $to { $body }
        }
    )* };
}
conversions! {
    RoundF16: f32 => f32, |x| f16_to_f32(f32_to_f16(x));
    RoundBf16: f32 => f32, |x| bf16_to_f32(f32_to_bf16(x));
    OddF32: f64 => f32, |x| f64_to_odd_f32(x);
}

/// `as`: integers wrap, floats to integers saturate, NaN gives 0.
struct As<T>(std::marker::PhantomData<T>);
macro_rules! casts {
    ($($from:ty => $($to:ty)*;)*) => { $($(
        impl Fn1<$from> for As<$to> {
            type Out = $to;
            const WIDEST: Level = Level::Baseline;
            #[inline(always)]
            fn call(x: $from) -> $to { x as $to }
        }
    )*)* };
}
casts! {
    f64 => f64 f32 i64 i32 u8;
    f32 => f64 f32 i64 i32 u8;
    i64 => f64 f32 i64 i32 u8;
    i32 => f64 f32 i64 i32 u8;
    u8 => f64 f32 i64 i32 u8;
}

/// x ≠ 0.
struct Truth;
impl<T: Lane> Fn1<T> for Truth {
    type Out = u8;
    const WIDEST: Level = Level::Baseline;
    #[inline(always)]
    fn call(x: T) -> u8 {
        u8::from(x != T::default())
    }
}

/// One conversion of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Conversion {
    /// To the lane.
    As(LaneType),
    /// x ≠ 0.
    Truth,
    /// f64 to an f32 that a 16-bit rounding follows.
    OddF32,
    /// f32 to the nearest f16.
    RoundF16,
    /// f32 to the nearest bf16.
    RoundBf16,
}

impl Conversion {
    /// The lane of the result.
    pub(super) fn to(self) -> LaneType {
        match self {
            Self::As(lane) => lane,
            Self::Truth => LaneType::U8,
            Self::OddF32 | Self::RoundF16 | Self::RoundBf16 => LaneType::F32,
        }
    }

    /// The steps from one element type to another; none when both are the same values in the same lane. To 16 bits
    /// always rounds: what is computed of such a type has the precision of f32 until then.
    pub(super) fn between(from: DType, to: DType) -> Vec<Self> {
        let (source, target) = (LaneType::of(from), LaneType::of(to));
        let round = match to {
            DType::F16 => Some(Self::RoundF16),
            DType::BF16 => Some(Self::RoundBf16),
            _ => None,
        };
        match (to, round) {
            _ if from == to && round.is_none() => Vec::new(),
            (DType::Bool, _) => vec![Self::Truth],
            (_, Some(round)) => match source {
                LaneType::F32 => vec![round],
                LaneType::U8 => vec![Self::As(LaneType::F32), round],
                LaneType::F64 => vec![Self::OddF32, round],
                LaneType::I64 | LaneType::I32 => vec![Self::As(LaneType::F64), Self::OddF32, round],
            },
            _ if source == target => Vec::new(),
            _ => vec![Self::As(target)],
        }
    }

    /// Converts a chunk.
    pub(super) fn run(self, from: LaneType, x: Operand<'_>, out: &mut [u8]) {
        match self {
            Self::As(to) => for_lane!(from, F => for_lane!(to, T => each::<As<T>, F>(x, out))),
            Self::Truth => for_lane!(from, F => each::<Truth, F>(x, out)),
            Self::OddF32 => each::<OddF32, f64>(x, out),
            Self::RoundF16 => each::<RoundF16, f32>(x, out),
            Self::RoundBf16 => each::<RoundBf16, f32>(x, out),
        }
    }
}

struct Widen<'a, T: Stored> {
    from: &'a [T],
    to: &'a mut [T::Lane],
}

impl<T: Stored> simd::Kernel for Widen<'_, T> {
    type Output = ();
    const WIDEST: Level = <T::Lane as Lane>::WIDEST;
    #[inline(always)]
    fn run(self) {
        let n = self.to.len();
        let from = &self.from[..n];
        for i in 0..n {
            self.to[i] = from[i].load();
        }
    }
}

struct Narrow<'a, T: Stored> {
    from: &'a [T::Lane],
    to: &'a mut [T],
}

impl<T: Stored> simd::Kernel for Narrow<'_, T> {
    type Output = ();
    const WIDEST: Level = <T::Lane as Lane>::WIDEST;
    #[inline(always)]
    fn run(self) {
        let n = self.to.len();
        let from = &self.from[..n];
        for i in 0..n {
            self.to[i] = T::store(from[i]);
        }
    }
}

/// Elements as the values they are computed as: f16 and bf16 become f32, others are copied.
pub(crate) fn widen<T: Stored>(from: &[T], to: &mut [T::Lane]) {
    simd::run(Widen { from, to });
}

/// Computed values as elements, rounded to nearest.
pub(crate) fn narrow<T: Stored>(from: &[T::Lane], to: &mut [T]) {
    simd::run(Narrow { from, to });
}

/// Stores lanes of a chunk as elements of an output.
pub(super) fn store(dtype: DType, x: Operand<'_>, out: &mut [u8]) {
    match dtype {
        DType::F16 => store_narrow::<f16>(x, out),
        DType::BF16 => store_narrow::<bf16>(x, out),
        _ => for_lane!(LaneType::of(dtype), L => match x {
            Operand::Vector(x) => out.copy_from_slice(&x[..out.len()]),
            Operand::Scalar(slot) => bytemuck::cast_slice_mut::<u8, L>(out).fill(L::of_slot(slot)),
        }),
    }
}

fn store_narrow<T: Stored<Lane = f32>>(x: Operand<'_>, out: &mut [u8]) {
    let out = bytemuck::cast_slice_mut::<u8, T>(out);
    match x {
        Operand::Vector(x) => narrow(&bytemuck::cast_slice::<u8, f32>(x)[..out.len()], out),
        Operand::Scalar(slot) => out.fill(T::store(f32::of_slot(slot))),
    }
}
