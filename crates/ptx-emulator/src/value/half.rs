//! Arithmetic of f16, bf16 and their pairs: exact in f64 or rounded to odd there, then rounded once.

use super::float;
use super::kernel::{Kernel, n};
use super::round::{self, Round, round_to};

/// The value of an f16.
#[inline(always)]
pub(crate) fn f16_value(bits: u32) -> f32 {
    // The fraction and exponent moved into place, then the bias mended by a product that is exact.
    let magnitude = f32::from_bits((bits & 0x7fff) << 13) * f32::from_bits(0x7780_0000);
    let special = bits & 0x7c00 == 0x7c00;
    let magnitude = if special { f32::from_bits(0x7f80_0000 | (bits & 0x3ff) << 13) } else { magnitude };
    f32::from_bits(magnitude.to_bits() | (bits & 0x8000) << 16)
}

#[inline(always)]
pub(crate) fn bf16_value(bits: u32) -> f32 {
    f32::from_bits(bits << 16)
}

/// The f16 nearest to a number that f32 holds exactly or rounded to odd.
#[inline(always)]
pub(crate) fn f16_nearest(x: f32) -> u32 {
    if x.is_nan() { 0x7fff } else { half::f16::from_f32(x).to_bits().into() }
}

#[inline(always)]
pub(crate) fn bf16_nearest(x: f32) -> u32 {
    if x.is_nan() {
        return 0x7fff;
    }
    let bits = x.to_bits();
    (bits + 0x7fff + (bits >> 16 & 1)) >> 16
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Half {
    F16,
    Bf16,
}

impl Half {
    #[inline(always)]
    pub(crate) fn value(self, bits: u32) -> f32 {
        match self {
            Self::F16 => f16_value(bits),
            Self::Bf16 => bf16_value(bits),
        }
    }

    #[inline(always)]
    fn round(self, x: f64) -> u32 {
        match self {
            Self::F16 => round::f16_bits(round_to(x, round::F16, Round::Nearest)),
            Self::Bf16 => round::bf16_bits(round_to(x, round::BF16, Round::Nearest)),
        }
    }

    fn is_subnormal(self, bits: u32) -> bool {
        bits & if self == Self::F16 { 0x7c00 } else { 0x7f80 } == 0
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HalfMode {
    pub(crate) half: Half,
    pub(crate) ftz: bool,
    pub(crate) sat: bool,
    pub(crate) relu: bool,
    pub(crate) nan: bool,
    pub(crate) xorsign: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HalfOp {
    Add,
    Sub,
    Mul,
    Fma,
    Neg,
    Abs,
    Min,
    Max,
}

/// One operation on one element.
pub(crate) fn apply(op: HalfOp, mode: HalfMode, a: u32, b: u32, c: u32) -> u32 {
    let half = mode.half;
    let flush = |bits: u32| if mode.ftz && half.is_subnormal(bits) { bits & 0x8000 } else { bits };
    let (a, b, c) = (flush(a), flush(b), flush(c));
    let (x, y, z) = (half.value(a), half.value(b), half.value(c));
    let (dx, dy, dz) = (f64::from(x), f64::from(y), f64::from(z));
    let result = match op {
        HalfOp::Neg => return a ^ 0x8000,
        HalfOp::Abs => return a & 0x7fff,
        HalfOp::Add => half.round(round::add_odd(dx, dy)),
        HalfOp::Sub => half.round(round::add_odd(dx, -dy)),
        HalfOp::Mul => half.round(dx * dy),
        HalfOp::Fma => half.round(round::add_odd(dx * dy, dz)),
        HalfOp::Min | HalfOp::Max => {
            let (p, q) = if mode.xorsign { (x.abs(), y.abs()) } else { (x, y) };
            let picked = if op == HalfOp::Min { float::min(p, q) } else { float::max(p, q) };
            let picked = if mode.nan { float::propagate(p, q, picked) } else { picked };
            let bits = half.round(picked.into());
            if mode.xorsign { bits & 0x7fff | (a ^ b) & 0x8000 } else { bits }
        }
    };
    let result = flush(result);
    let value = half.value(result);
    if mode.sat {
        half.round(float::saturate(value).into())
    } else if mode.relu && !value.is_nan() && value.is_sign_negative() {
        0
    } else {
        result
    }
}

/// The same, to nearest, through the f32 unit where that rounds only once.
fn quick(op: HalfOp, half: Half, a: u32, b: u32) -> u32 {
    let (x, y) = (half.value(a), half.value(b));
    match (op, half) {
        // f32 has more than twice the precision, so rounding twice is harmless. A product of bf16 can be subnormal in
        // f32 as well, where that fails: it is not done here.
        (HalfOp::Add, Half::F16) => f16_nearest(x + y),
        (HalfOp::Sub, Half::F16) => f16_nearest(x - y),
        (_, Half::F16) => f16_nearest(x * y),
        (HalfOp::Add, Half::Bf16) => bf16_nearest(x + y),
        (_, Half::Bf16) => bf16_nearest(x - y),
    }
}

macro_rules! modes {
    ($op:ident, $mode:expr, $packed:expr; $($half:ident $ftz:literal $sat:literal $relu:literal $nan:literal $xor:literal),*) => {{
        $(if $mode == (HalfMode { half: Half::$half, ftz: $ftz, sat: $sat, relu: $relu, nan: $nan, xorsign: $xor }) {
            const MODE: HalfMode =
                HalfMode { half: Half::$half, ftz: $ftz, sat: $sat, relu: $relu, nan: $nan, xorsign: $xor };
            return Some(if $packed {
                n!(a, b, c => apply(HalfOp::$op, MODE, a & 0xffff, b & 0xffff, c & 0xffff)
                    | apply(HalfOp::$op, MODE, a >> 16, b >> 16, c >> 16) << 16)
            } else {
                n!(a, b, c => apply(HalfOp::$op, MODE, a & 0xffff, b & 0xffff, c & 0xffff))
            });
        })*
    }};
}

macro_rules! plain {
    ($op:ident, $half:ident, $packed:expr) => {
        if $packed {
            n!(a, b => quick(HalfOp::$op, Half::$half, a & 0xffff, b & 0xffff)
                | quick(HalfOp::$op, Half::$half, a >> 16, b >> 16) << 16)
        } else {
            n!(a, b => quick(HalfOp::$op, Half::$half, a & 0xffff, b & 0xffff))
        }
    };
}

/// The row function of an operation, if its modifiers exist together.
pub(crate) fn kernel(op: HalfOp, mode: HalfMode, packed: bool) -> Option<Kernel> {
    let none = HalfMode { half: mode.half, ftz: false, sat: false, relu: false, nan: false, xorsign: false };
    if mode == none {
        match (op, mode.half) {
            (HalfOp::Add, Half::F16) => return Some(plain!(Add, F16, packed)),
            (HalfOp::Sub, Half::F16) => return Some(plain!(Sub, F16, packed)),
            (HalfOp::Mul, Half::F16) => return Some(plain!(Mul, F16, packed)),
            (HalfOp::Add, Half::Bf16) => return Some(plain!(Add, Bf16, packed)),
            (HalfOp::Sub, Half::Bf16) => return Some(plain!(Sub, Bf16, packed)),
            _ => {}
        }
    }
    match op {
        HalfOp::Add => modes!(Add, mode, packed; F16 true false false false false, F16 false true false false false,
            F16 true true false false false),
        HalfOp::Sub => modes!(Sub, mode, packed; F16 true false false false false, F16 false true false false false,
            F16 true true false false false),
        HalfOp::Mul => modes!(Mul, mode, packed; F16 true false false false false, F16 false true false false false,
            F16 true true false false false, Bf16 false false false false false),
        HalfOp::Fma => modes!(Fma, mode, packed; F16 false false false false false, F16 true false false false false,
            F16 false true false false false, F16 true true false false false, F16 false false true false false,
            F16 true false true false false, Bf16 false false false false false, Bf16 false false true false false),
        HalfOp::Neg => modes!(Neg, mode, packed; F16 false false false false false, F16 true false false false false,
            Bf16 false false false false false),
        HalfOp::Abs => modes!(Abs, mode, packed; F16 false false false false false, F16 true false false false false,
            Bf16 false false false false false),
        HalfOp::Min => modes!(Min, mode, packed; F16 false false false false false, F16 true false false false false,
            F16 false false false true false, F16 true false false true false, F16 false false false false true,
            F16 true false false false true, F16 false false false true true, F16 true false false true true,
            Bf16 false false false false false, Bf16 false false false true false, Bf16 false false false false true,
            Bf16 false false false true true),
        HalfOp::Max => modes!(Max, mode, packed; F16 false false false false false, F16 true false false false false,
            F16 false false false true false, F16 true false false true false, F16 false false false false true,
            F16 true false false false true, F16 false false false true true, F16 true false false true true,
            Bf16 false false false false false, Bf16 false false false true false, Bf16 false false false false true,
            Bf16 false false false true true),
    }
    None
}
