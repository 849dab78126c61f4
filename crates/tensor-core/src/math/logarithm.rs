//! `ln` and `ln_1p`: the exponent times ln 2, plus a polynomial on [√½, √2].

use std::f64::consts::FRAC_1_SQRT_2;

use super::coefficients::{Coefficients, by_width, exp2_int};
use super::{Bits, Real};

/// `(ln(1 + f) − f + ½f²) / f³` on √½ ≤ 1 + f ≤ √2, error relative to `ln(1 + f)`: 2^-27.3, 2^-58.8.
const LN: Coefficients = Coefficients {
    single: &[
        0.3333333134651184,
        -0.2500082552433014,
        0.20001265406608582,
        -0.16623210906982422,
        0.14200671017169952,
        -0.13160613179206848,
        0.12770047783851624,
        -0.07644090056419373,
    ],
    double: &[
        0.33333333333333454,
        -0.24999999999998923,
        0.19999999999945636,
        -0.1666666666691307,
        0.14285714293904483,
        -0.12499999982212902,
        0.11111110512259552,
        -0.10000000370882836,
        0.09090933630177103,
        -0.0833334616425426,
        0.07691712041450473,
        -0.07141992110099933,
        0.06675176069750938,
        -0.062699018412681,
        0.05817628388999646,
        -0.05326031209443926,
        0.05415964632729233,
        -0.06277387801101553,
        0.05699436053606138,
        -0.024282030868924775,
    ],
};

/// `(m, k)` with `x = m · 2ᵏ` and √½ ≤ m < √2, for normal positive `x`.
#[inline(always)]
pub(super) fn split_exponent<F: Real>(x: F) -> (F, F::Bits) {
    let mantissa_bits = F::FORMAT.mantissa_bits();
    let bits = x.to_bits();
    let sqrt_half = F::constant(FRAC_1_SQRT_2).to_bits();
    let k = bits.sub(sqrt_half).shr(mantissa_bits);
    (F::from_bits(bits.sub(k.shl(mantissa_bits))), k)
}

/// A subnormal positive `x` scaled up into the normal numbers, and the exponent of the scale, 0 for a normal `x`.
#[inline(always)]
pub(super) fn lift_subnormal<F: Real>(x: F) -> (F, F) {
    let bits = F::FORMAT.mantissa_bits() as i32;
    let is_subnormal = x.lt(by_width(f32::MIN_POSITIVE as f64, f64::MIN_POSITIVE));
    let lifted = x * F::constant(2f64.powi(bits));
    (F::select(is_subnormal, lifted, x), F::select(is_subnormal, F::constant(-bits as f64), F::constant(0.0)))
}

/// `ln(1 + f + low) + k·ln 2`, where `low` is the rounding error of `f`.
#[inline(always)]
fn ln_reduced<F: Real>(f: F, low: Option<F>, k: F) -> F {
    let ln_2_high = by_width::<F>(0.693359375, 6.931_471_803_691_238e-1);
    let ln_2_low = by_width::<F>(-2.121_944_400_546_905_8e-4, 1.908_214_929_270_587_7e-10);
    let tail = match low {
        Some(low) => k.fma(ln_2_low, low),
        None => k * ln_2_low,
    };
    let square = f * f;
    let tail = (square * f).fma(LN.at(f), tail);
    let sum = f + square.fma(F::constant(-0.5), tail);
    k.fma(ln_2_high, sum.keep())
}

/// The natural logarithm: −inf at ±0, NaN below 0.
///
/// `x = 2ᵏ(1 + f)` with √½ ≤ 1 + f < √2; `ln x = k·ln 2 + f − ½f² + f³·P(f)`. No division.
#[inline(always)]
pub fn ln<F: Real>(x: F) -> F {
    let (normal, lift) = lift_subnormal(x);
    let (m, k) = split_exponent(normal);
    let y = ln_reduced(m - F::constant(1.0), None, F::from_int(k) + lift);
    let y = F::select(x.lt(F::constant(f64::INFINITY)), y, x);
    let not_positive = F::select(x.lt(F::constant(0.0)), F::constant(f64::NAN), F::constant(f64::NEG_INFINITY));
    F::select(x.le(F::constant(0.0)), not_positive, y)
}

/// `ln(1 + x)`, accurate near 0: −inf at −1, NaN below.
///
/// As [`ln`] of `u = 1 + x`, whose rounding error `c` joins the reduced argument: `f = (m − 1) + c·2⁻ᵏ`.
#[inline(always)]
pub fn ln_1p<F: Real>(x: F) -> F {
    let zero = F::constant(0.0);
    let one = F::constant(1.0);
    let u = (one + x).keep();
    let error = F::select(x.lt(one), x - (u - one).keep(), one - (u - x).keep());
    let (m, k) = split_exponent(u);
    // For large x the error no longer counts, and 2⁻ᵏ may not be a normal number.
    let scaled = error * exp2_int(F::Bits::constant(0).sub(k));
    let correction = F::select(x.lt(F::constant(2f64.powi(60))), scaled, zero);
    let head = m - one;
    let f = (head + correction).keep();
    let low = correction - (f - head).keep();
    let y = ln_reduced(f, Some(low), F::from_int(k));

    let tiny = x.abs().lt(by_width(2f64.powi(-26), 2f64.powi(-55)));
    let is_own_result = tiny | !x.lt(F::constant(f64::INFINITY));
    let y = F::select(is_own_result, x, y);
    let not_above = F::select(x.lt(-one), F::constant(f64::NAN), F::constant(f64::NEG_INFINITY));
    F::select(x.le(-one), not_above, y)
}
