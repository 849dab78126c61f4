//! `cvt`: between any two types, in any rounding and saturation mode.

use super::float::{bits32, bits64, flush};
use super::half::{bf16_value, f16_value};
use super::int::extend;
use super::round::{self, BF16, E4M3, E5M2, F16, F32, Format, Round, TF32, directed, f8_bits, f8_value, round_to};
use crate::types::Ty;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Conversion {
    pub(crate) from: Ty,
    pub(crate) to: Ty,
    /// To a number of the target, or to an integer's value where the modifier ends in `i`.
    pub(crate) round: Round,
    pub(crate) integral: bool,
    pub(crate) ftz: bool,
    pub(crate) sat: bool,
    pub(crate) satfinite: bool,
    pub(crate) relu: bool,
    /// Bits of the destination register, which the result is extended to.
    pub(crate) width: u32,
}

/// A source as a number.
#[derive(Clone, Copy)]
enum Number {
    /// Sign and magnitude.
    Int(bool, u64),
    Float(f64),
}

fn read(ty: Ty, bits: u64) -> Number {
    match ty {
        Ty::F16 => Number::Float(f16_value(bits as u32 & 0xffff).into()),
        Ty::Bf16 => Number::Float(bf16_value(bits as u32 & 0xffff).into()),
        Ty::F32 | Ty::Tf32 => Number::Float(f32::from_bits(bits as u32).into()),
        Ty::F64 => Number::Float(f64::from_bits(bits)),
        Ty::E4m3 => Number::Float(f8_value(bits as u32 & 0xff, E4M3)),
        Ty::E5m2 => Number::Float(f8_value(bits as u32 & 0xff, E5M2)),
        _ if ty.is_signed() => {
            let value = extend(bits, ty.bits());
            Number::Int(value < 0, value.unsigned_abs())
        }
        _ => Number::Int(false, if ty.bits() == 64 { bits } else { bits & ((1 << ty.bits()) - 1) }),
    }
}

impl Conversion {
    /// The result, extended to the destination register. The second source is the low half of a pair.
    pub(crate) fn apply(&self, a: u64, b: u64) -> u64 {
        match (self.from, self.to) {
            (Ty::F32, Ty::F16x2) => self.pair(Ty::F16, 16, a, b),
            (Ty::F32, Ty::Bf16x2) => self.pair(Ty::Bf16, 16, a, b),
            (Ty::F32, Ty::E4m3x2) => self.pair(Ty::E4m3, 8, a, b),
            (Ty::F32, Ty::E5m2x2) => self.pair(Ty::E5m2, 8, a, b),
            (Ty::F16x2, Ty::E4m3x2) => self.unpair(Ty::F16, Ty::E4m3, 16, 8, a),
            (Ty::F16x2, Ty::E5m2x2) => self.unpair(Ty::F16, Ty::E5m2, 16, 8, a),
            (Ty::E4m3x2, Ty::F16x2) => self.unpair(Ty::E4m3, Ty::F16, 8, 16, a),
            (Ty::E5m2x2, Ty::F16x2) => self.unpair(Ty::E5m2, Ty::F16, 8, 16, a),
            _ => self.single(a),
        }
    }

    fn pair(&self, to: Ty, bits: u32, high: u64, low: u64) -> u64 {
        let one = Self { to, width: bits, ..*self };
        one.single(high) << bits | one.single(low)
    }

    fn unpair(&self, from: Ty, to: Ty, from_bits: u32, to_bits: u32, a: u64) -> u64 {
        let one = Self { from, to, width: to_bits, ..*self };
        let mask = (1 << from_bits) - 1;
        one.single(a >> from_bits & mask) << to_bits | one.single(a & mask)
    }

    fn single(&self, a: u64) -> u64 {
        let number = match read(self.from, a) {
            Number::Float(x) if self.ftz && self.from == Ty::F32 => Number::Float(flush(x as f32).into()),
            number => number,
        };
        let bits = match self.to {
            Ty::F16 => self.to_float(number, Some(F16)),
            Ty::Bf16 => self.to_float(number, Some(BF16)),
            Ty::Tf32 => self.to_float(number, Some(TF32)),
            Ty::F32 => self.to_float(number, Some(F32)),
            Ty::E4m3 => self.to_float(number, Some(E4M3)),
            Ty::E5m2 => self.to_float(number, Some(E5M2)),
            Ty::F64 => self.to_float(number, None),
            _ => self.to_int(number),
        };
        if self.width >= 64 { bits } else { bits & ((1 << self.width) - 1) }
    }

    fn to_int(self, number: Number) -> u64 {
        let (bits, signed) = (self.to.bits(), self.to.is_signed());
        let (low, high) =
            if signed { (-(1_i128 << (bits - 1)), (1_i128 << (bits - 1)) - 1) } else { (0, (1 << bits) - 1) };
        match number {
            Number::Int(negative, magnitude) => {
                let value = if negative { -i128::from(magnitude) } else { magnitude.into() };
                let value = if self.sat { value.clamp(low, high) } else { value };
                if signed { extend(value as u64, bits) as u64 } else { value as u64 & high as u64 }
            }
            Number::Float(x) if x.is_nan() => {
                let narrow = self.from != Ty::F64 && bits < 64;
                if narrow { 0 } else { 1 << (bits - 1) }
            }
            Number::Float(x) => {
                let value = integral(x, self.round).clamp(-1e20, 1e20) as i128;
                value.clamp(low, high) as u64
            }
        }
    }

    /// To a format, or to f64.
    fn to_float(self, number: Number, format: Option<Format>) -> u64 {
        let Some(format) = format else {
            return match number {
                Number::Int(negative, magnitude) => int_to_f64(negative, magnitude, self.round).to_bits(),
                Number::Float(x) => bits64(self.limit(if self.integral { integral(x, self.round) } else { x })),
            };
        };
        let (x, mode) = match number {
            Number::Int(negative, magnitude) => (int_to_odd(negative, magnitude), self.round),
            Number::Float(x) if self.integral => (integral(x, self.round), Round::Nearest),
            Number::Float(x) => (x, self.round),
        };
        let mut value = self.limit(round_to(x, format, mode));
        if self.satfinite && value.abs() > format.max {
            value = format.max.copysign(value);
        }
        let bits = match self.to {
            Ty::F16 => round::f16_bits(value),
            Ty::Bf16 => round::bf16_bits(value),
            Ty::E4m3 | Ty::E5m2 => f8_bits(value, format),
            _ => {
                let value = value as f32;
                bits32(if self.ftz { flush(value) } else { value })
            }
        };
        bits.into()
    }

    /// `.sat` to [0, 1], and `.relu`.
    fn limit(&self, x: f64) -> f64 {
        if self.sat {
            return if x > 0.0 { x.min(1.0) } else { 0.0 };
        }
        if self.relu && x <= 0.0 { 0.0 } else { x }
    }
}

/// The nearest integer in that mode.
fn integral(x: f64, mode: Round) -> f64 {
    match mode {
        Round::Nearest => x.round_ties_even(),
        Round::Away => x.round(),
        Round::Zero => x.trunc(),
        Round::Down => x.floor(),
        Round::Up => x.ceil(),
    }
}

fn int_to_f64(negative: bool, magnitude: u64, mode: Round) -> f64 {
    let nearest = magnitude as f64;
    let error = i128::from(magnitude) - nearest as i128;
    let (nearest, error) = if negative { (-nearest, -error) } else { (nearest, error) };
    directed(nearest, error as f64, mode)
}

/// Rounded to odd, for a narrower format to round again.
fn int_to_odd(negative: bool, magnitude: u64) -> f64 {
    let truncated = int_to_f64(false, magnitude, Round::Zero);
    let odd = if truncated as u64 == magnitude { truncated } else { f64::from_bits(truncated.to_bits() | 1) };
    if negative { -odd } else { odd }
}
