//! Approximate instructions: correctly rounded, or wrong by as much as the manual allows.

use super::float::{bits32, bits64, flush};
use super::half::{bf16_value, f16_value};
use super::round::{self, BF16, F16, F32, Round, exponent, round_to};
use crate::types::Ty;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Function {
    Exp2,
    Log2,
    Sin,
    Cos,
    Tanh,
    Reciprocal,
    ReciprocalRoot,
    Root,
    Divide,
    DivideFull,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Approx {
    pub(crate) function: Function,
    pub(crate) ty: Ty,
    pub(crate) ftz: bool,
}

/// How far a result may be from the exact one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Bound {
    Ulps(f64),
    Relative(f64),
    Absolute(f64),
}

impl Approx {
    /// What the manual documents for that operand.
    pub(crate) fn bound(&self, x: f64) -> Bound {
        let two = |power: f64| power.exp2();
        match (self.function, self.ty) {
            (Function::Tanh, Ty::F16 | Ty::F16x2) => Bound::Absolute(two(-10.987)),
            (Function::Tanh, Ty::Bf16 | Ty::Bf16x2) => Bound::Absolute(two(-8.0)),
            (Function::Exp2, Ty::F16 | Ty::F16x2) => Bound::Relative(two(-9.9)),
            (Function::Exp2, Ty::Bf16 | Ty::Bf16x2) => Bound::Relative(two(-7.0)),
            // Only the upper half of the operand is looked at, and of the result is right.
            (_, Ty::F64) => Bound::Relative(two(-20.0)),
            (Function::Exp2 | Function::Divide | Function::DivideFull, _) => Bound::Ulps(2.0),
            (Function::Reciprocal, _) => Bound::Ulps(1.0),
            (Function::Root, _) => Bound::Relative(two(-23.0)),
            (Function::ReciprocalRoot, _) => Bound::Relative(two(-22.9)),
            (Function::Log2, _) if x > 0.5 && x < 2.0 => Bound::Absolute(two(-22.0)),
            (Function::Log2, _) => Bound::Relative(two(-22.0)),
            (Function::Tanh, _) => Bound::Relative(two(-11.0)),
            (Function::Sin | Function::Cos, _) if x.abs() <= std::f64::consts::TAU => Bound::Absolute(two(-20.5)),
            (Function::Sin | Function::Cos, _) => Bound::Absolute(two(-14.7)),
        }
    }

    /// The result for one lane; a seed moves it within the bound.
    pub(crate) fn apply(&self, a: u64, b: u64, seed: Option<u64>) -> u64 {
        let half = |ty, bits: u64| Self { ty, ..*self }.apply(bits & 0xffff, 0, seed);
        match self.ty {
            Ty::F16x2 => half(Ty::F16, a) | half(Ty::F16, a >> 16) << 16,
            Ty::Bf16x2 => half(Ty::Bf16, a) | half(Ty::Bf16, a >> 16) << 16,
            Ty::F16 => {
                let y = self.value(f16_value(a as u32).into(), 1.0, seed.map(|seed| (seed, a)));
                round::f16_bits(round_to(y, F16, Round::Nearest)).into()
            }
            Ty::Bf16 => {
                let x = flush(bf16_value(a as u32));
                let y = self.value(x.into(), 1.0, seed.map(|seed| (seed, a)));
                let y = if self.ftz { flush(round_to(y, BF16, Round::Nearest) as f32).into() } else { y };
                round::bf16_bits(round_to(y, BF16, Round::Nearest)).into()
            }
            Ty::F64 => bits64(self.value(f64::from_bits(a), 1.0, seed.map(|seed| (seed, a)))),
            _ => {
                let input = |bits: u64| {
                    let x = f32::from_bits(bits as u32);
                    if self.ftz { flush(x) } else { x }
                };
                let y = self.value(input(a).into(), input(b).into(), seed.map(|seed| (seed, a ^ b.rotate_left(32))));
                let y = round_to(y, F32, Round::Nearest) as f32;
                bits32(if self.ftz { flush(y) } else { y }).into()
            }
        }
    }

    fn value(&self, x: f64, d: f64, seed: Option<(u64, u64)>) -> f64 {
        let exact = match self.function {
            Function::Exp2 => x.exp2(),
            Function::Log2 => x.log2(),
            Function::Sin => x.sin(),
            Function::Cos => x.cos(),
            Function::Tanh => x.tanh(),
            Function::Reciprocal => 1.0 / x,
            Function::ReciprocalRoot => 1.0 / x.sqrt(),
            Function::Root => x.sqrt(),
            Function::Divide if d.is_finite() && d.abs() > 126.0_f64.exp2() => {
                return if x.is_finite() { 0.0_f64.copysign(x) * d.signum() } else { f64::NAN };
            }
            Function::Divide | Function::DivideFull => x / d,
        };
        let special = exact == 0.0 || !exact.is_finite() || x == 0.0 || x.is_infinite();
        match seed {
            Some((seed, bits)) if !special => self.perturb(x, exact, hash(seed, self.function as u64, bits)),
            _ => exact,
        }
    }

    fn perturb(&self, x: f64, exact: f64, hash: u64) -> f64 {
        let unit = (hash >> 11) as f64 / (1_u64 << 52) as f64 - 1.0;
        let precision = match self.ty {
            Ty::F16 | Ty::F16x2 => F16,
            Ty::Bf16 | Ty::Bf16x2 => BF16,
            _ => F32,
        };
        let last = exponent(exact).max(precision.min_exponent) - (precision.precision as i32 - 1);
        // The rounding that follows takes half a unit of the bound.
        let half = (f64::from(last) - 1.0).exp2();
        let room = match self.bound(x) {
            Bound::Ulps(ulps) => (2.0 * ulps - 1.0) * half,
            Bound::Relative(bound) => (bound * exact.abs() - half).max(0.0),
            Bound::Absolute(bound) => (bound - half).max(0.0),
        };
        exact + unit * room
    }
}

/// The finaliser of SplitMix64 over three words.
pub(crate) fn hash(seed: u64, a: u64, b: u64) -> u64 {
    let mut z = seed ^ a.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ b.wrapping_mul(0xd1b5_4a32_d192_ed03);
    for _ in 0..2 {
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^= z >> 31;
    }
    z
}
