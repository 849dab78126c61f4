//! Arithmetic of f32 and f64.

use super::round::{self, Round, round_to};
use crate::fma;
use crate::program::{Fn32, Fn64};
use crate::types::{Row, Row64};

/// What every f32 result that is no number becomes.
pub(crate) const NAN32: u32 = 0x7fff_ffff;
pub(crate) const NAN64: u64 = 0x7fff_ffff_ffff_ffff;

/// A subnormal number becomes a zero of its sign.
#[inline(always)]
pub(crate) fn flush(x: f32) -> f32 {
    if x.abs() < f32::MIN_POSITIVE { f32::from_bits(x.to_bits() & 0x8000_0000) } else { x }
}

#[inline(always)]
pub(crate) fn saturate(x: f32) -> f32 {
    // NaN becomes +0, and so does -0.
    if x > 0.0 { x.min(1.0) } else { 0.0 }
}

#[inline(always)]
pub(crate) fn bits32(x: f32) -> u32 {
    if x.is_nan() { NAN32 } else { x.to_bits() }
}

#[inline(always)]
pub(crate) fn bits64(x: f64) -> u64 {
    if x.is_nan() { NAN64 } else { x.to_bits() }
}

#[inline(always)]
fn input<const FTZ: bool>(bits: u32) -> f32 {
    let x = f32::from_bits(bits);
    if FTZ { flush(x) } else { x }
}

#[inline(always)]
pub(crate) fn output<const FTZ: bool, const SAT: bool>(x: f32) -> u32 {
    let x = if FTZ { flush(x) } else { x };
    bits32(if SAT { saturate(x) } else { x })
}

/// Row functions of an f32 formula, for flushing and saturating or not.
macro_rules! f32_kernel {
    ($ftz:expr, $sat:expr, [$($x:ident $i:tt),*] $e:expr) => {{
        fn kernel<const FTZ: bool, const SAT: bool>(s: [&Row; 4], d: &mut Row) {
            for lane in 0..32 {
                $(let $x = input::<FTZ>(s[$i][lane]);)*
                d[lane] = output::<FTZ, SAT>($e);
            }
        }
        match ($ftz, $sat) {
            (false, false) => kernel::<false, false> as Fn32,
            (false, true) => kernel::<false, true>,
            (true, false) => kernel::<true, false>,
            (true, true) => kernel::<true, true>,
        }
    }};
}

fn fma_kernel<const FTZ: bool, const SAT: bool>(s: [&Row; 4], d: &mut Row) {
    if !FTZ && !SAT {
        return fma::rows(s[0], s[1], s[2], d);
    }
    let flushed = |row: &Row| row.map(|bits| input::<FTZ>(bits).to_bits());
    let (a, b, c) = (flushed(s[0]), flushed(s[1]), flushed(s[2]));
    let mut out = [0; 32];
    fma::rows(&a, &b, &c, &mut out);
    *d = out.map(|bits| output::<FTZ, SAT>(f32::from_bits(bits)));
}

/// Addition, subtraction, multiplication and fma to nearest.
pub(crate) fn nearest32(op: &str, ftz: bool, sat: bool) -> Fn32 {
    match op {
        "add" => f32_kernel!(ftz, sat, [a 0, b 1] a + b),
        "sub" => f32_kernel!(ftz, sat, [a 0, b 1] a - b),
        "mul" => f32_kernel!(ftz, sat, [a 0, b 1] a * b),
        _ => match (ftz, sat) {
            (false, false) => fma_kernel::<false, false>,
            (false, true) => fma_kernel::<false, true>,
            (true, false) => fma_kernel::<true, false>,
            (true, true) => fma_kernel::<true, true>,
        },
    }
}

/// An operation of f32 in any mode: the exact result rounded once.
pub(crate) fn exact32(op: Arith, a: f32, b: f32, c: f32, mode: Round) -> f32 {
    let (x, y, z) = (f64::from(a), f64::from(b), f64::from(c));
    let odd = match op {
        Arith::Add => round::add_odd(x, y),
        Arith::Sub => round::add_odd(x, -y),
        Arith::Mul => x * y,
        Arith::Fma => round::add_odd(x * y, z),
        Arith::Div => round::div_odd(x, y),
        Arith::Sqrt => round::sqrt_odd(x),
    };
    let result = round_to(odd, round::F32, mode) as f32;
    let cancels = result == 0.0 && odd == 0.0;
    match op {
        Arith::Add | Arith::Sub | Arith::Fma if cancels && mode == Round::Down => {
            let (p, q) = match op {
                Arith::Add => (x, y),
                Arith::Sub => (x, -y),
                _ => (x * y, z),
            };
            let both_positive_zeros = p == 0.0 && q == 0.0 && p.is_sign_positive() && q.is_sign_positive();
            if both_positive_zeros { 0.0 } else { -0.0 }
        }
        _ => result,
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arith {
    Add,
    Sub,
    Mul,
    Fma,
    Div,
    Sqrt,
}

macro_rules! directed_kernels {
    ($op:expr, $mode:expr, $ftz:expr, $sat:expr; $($arith:ident $round:ident),*) => {
        match ($op, $mode) {
            $((Arith::$arith, Round::$round) => f32_kernel!($ftz, $sat, [a 0, b 1, c 2]
                exact32(Arith::$arith, a, b, c, Round::$round)),)*
            _ => f32_kernel!($ftz, $sat, [a 0, b 1, c 2] { let _ = (b, c); a }),
        }
    };
}

/// An operation of f32 rounded in that mode.
pub(crate) fn rounded32(op: Arith, mode: Round, ftz: bool, sat: bool) -> Fn32 {
    match (op, mode) {
        (Arith::Add, Round::Nearest) => return nearest32("add", ftz, sat),
        (Arith::Sub, Round::Nearest) => return nearest32("sub", ftz, sat),
        (Arith::Mul, Round::Nearest) => return nearest32("mul", ftz, sat),
        (Arith::Fma, Round::Nearest) => return nearest32("fma", ftz, sat),
        (Arith::Div, Round::Nearest) => return f32_kernel!(ftz, sat, [a 0, b 1] a / b),
        (Arith::Sqrt, Round::Nearest) => return f32_kernel!(ftz, sat, [a 0] a.sqrt()),
        _ => {}
    }
    directed_kernels!(op, mode, ftz, sat;
        Add Zero, Add Down, Add Up, Sub Zero, Sub Down, Sub Up, Mul Zero, Mul Down, Mul Up,
        Fma Zero, Fma Down, Fma Up, Div Zero, Div Down, Div Up, Sqrt Zero, Sqrt Down, Sqrt Up)
}

/// abs, neg, min and max of f32. `xorsign` gives the result the product of the signs.
pub(crate) fn simple32(op: &str, ftz: bool, nan: bool, xorsign: bool) -> Fn32 {
    match (op, nan, xorsign) {
        ("abs", ..) => f32_kernel!(ftz, false, [a 0] a.abs()),
        ("neg", ..) => f32_kernel!(ftz, false, [a 0] -a),
        ("min", false, false) => f32_kernel!(ftz, false, [a 0, b 1] min(a, b)),
        ("max", false, false) => f32_kernel!(ftz, false, [a 0, b 1] max(a, b)),
        ("min", true, false) => f32_kernel!(ftz, false, [a 0, b 1] propagate(a, b, min(a, b))),
        ("max", true, false) => f32_kernel!(ftz, false, [a 0, b 1] propagate(a, b, max(a, b))),
        ("min", false, true) => f32_kernel!(ftz, false, [a 0, b 1] xor_sign(a, b, min(a.abs(), b.abs()))),
        ("max", false, true) => f32_kernel!(ftz, false, [a 0, b 1] xor_sign(a, b, max(a.abs(), b.abs()))),
        ("min", ..) => f32_kernel!(ftz, false, [a 0, b 1] xor_sign(a, b, propagate(a, b, min(a.abs(), b.abs())))),
        _ => f32_kernel!(ftz, false, [a 0, b 1] xor_sign(a, b, propagate(a, b, max(a.abs(), b.abs())))),
    }
}

/// The smaller one, or the one that is a number; −0 is smaller than +0.
#[inline(always)]
pub(crate) fn min(a: f32, b: f32) -> f32 {
    if b.is_nan() || a < b || (a == b && a.is_sign_negative()) { a } else { b }
}

#[inline(always)]
pub(crate) fn max(a: f32, b: f32) -> f32 {
    if b.is_nan() || a > b || (a == b && a.is_sign_positive()) { a } else { b }
}

#[inline(always)]
pub(crate) fn propagate(a: f32, b: f32, otherwise: f32) -> f32 {
    if a.is_nan() || b.is_nan() { f32::NAN } else { otherwise }
}

fn xor_sign(a: f32, b: f32, magnitude: f32) -> f32 {
    f32::from_bits(magnitude.to_bits() & 0x7fff_ffff | (a.to_bits() ^ b.to_bits()) & 0x8000_0000)
}

macro_rules! f64_kernel {
    ([$($x:ident $i:tt),*] $e:expr) => {{
        fn kernel(s: [&Row64; 4], d: &mut Row64) {
            for lane in 0..32 {
                $(let $x = f64::from_bits(s[$i][lane]);)*
                d[lane] = bits64($e);
            }
        }
        kernel as Fn64
    }};
}

macro_rules! rounded64 {
    ($op:expr, $mode:expr; $($round:ident)*) => {
        match ($op, $mode) {
            $(
                (Arith::Add, Round::$round) => f64_kernel!([a 0, b 1] round::add64(a, b, Round::$round)),
                (Arith::Sub, Round::$round) => f64_kernel!([a 0, b 1] round::add64(a, -b, Round::$round)),
                (Arith::Mul, Round::$round) => f64_kernel!([a 0, b 1] mul64(a, b, Round::$round)),
                (Arith::Fma, Round::$round) => f64_kernel!([a 0, b 1, c 2] round::fma64(a, b, c, Round::$round)),
                (Arith::Div, Round::$round) => f64_kernel!([a 0, b 1] round::div64(a, b, Round::$round)),
                (Arith::Sqrt, Round::$round) => f64_kernel!([a 0] round::sqrt64(a, Round::$round)),
            )*
            (_, Round::Away) => f64_kernel!([a 0] a),
        }
    };
}

fn mul64(a: f64, b: f64, mode: Round) -> f64 {
    if mode == Round::Nearest || a == 0.0 || b == 0.0 {
        return a * b;
    }
    // A zero of the product's sign, so that an underflow keeps it.
    let zero = if a.is_sign_negative() == b.is_sign_negative() { 0.0 } else { -0.0 };
    round::fma64(a, b, zero, mode)
}

/// An operation of f64 rounded in that mode.
pub(crate) fn rounded64(op: Arith, mode: Round) -> Fn64 {
    rounded64!(op, mode; Nearest Zero Down Up)
}

pub(crate) fn simple64(op: &str) -> Fn64 {
    match op {
        "abs" => f64_kernel!([a 0] a.abs()),
        "neg" => f64_kernel!([a 0] -a),
        "min" => f64_kernel!([a 0, b 1] if b.is_nan() || a < b || (a == b && a.is_sign_negative()) { a } else { b }),
        _ => f64_kernel!([a 0, b 1] if b.is_nan() || a > b || (a == b && a.is_sign_positive()) { a } else { b }),
    }
}
