//! `exp` and `exp_m1`: reduction by multiples of ln 2, then a polynomial.

use std::f64::consts::LOG2_E;

use super::coefficients::{Coefficients, by_width, exp2_int};
use super::{Bits, Real};

/// `eʳ` on |r| ≤ ½ ln 2, relative error: 2^-28.2, 2^-63.6.
const EXP: Coefficients = Coefficients {
    single: &[
        1.0,
        1.0,
        0.4999999403953552,
        0.16666516661643982,
        0.04166810214519501,
        0.008369166404008865,
        0.0013838030863553286,
    ],
    double: &[
        1.0,
        1.0,
        0.5,
        0.16666666666666688,
        0.041666666666666824,
        0.008333333333313885,
        0.001388888888877816,
        0.00019841269903396217,
        2.4801587557935884e-5,
        2.7557228652572413e-6,
        2.75570697662952e-7,
        2.511394363974139e-8,
        2.0976800125460197e-9,
    ],
};

/// `(eʳ − 1 − r) / r²` on ln ¾ ≤ r ≤ ln 1½, error relative to `eʳ − 1`: 2^-31.2, 2^-61.2.
const EXP_M1: Coefficients = Coefficients {
    single: &[
        0.5,
        0.16666670143604279,
        0.04166657477617264,
        0.008331970311701298,
        0.0013918731128796935,
        0.00020993681391701102,
    ],
    double: &[
        0.5,
        0.16666666666666663,
        0.04166666666666757,
        0.008333333333338164,
        0.0013888888888122146,
        0.00019841269826624677,
        2.4801589537085804e-5,
        2.755732671532414e-6,
        2.755456910933465e-7,
        2.5070012970532226e-8,
        2.2107214223055005e-9,
    ],
};

/// `x = n·ln 2 + r` with `n` the integer nearest to `quotient`: `n` as an integer, and `r`.
///
/// ln 2 is split so that `n` times its high part is exact, with or without a fused product.
#[inline(always)]
fn reduce<F: Real>(x: F, quotient: F) -> (F::Bits, F) {
    let high = by_width::<F>(-0.693359375, -6.931_471_803_691_238e-1);
    let low = by_width::<F>(2.121_944_400_546_905_8e-4, -1.908_214_929_270_587_7e-10);
    let (n, n_int) = quotient.round_to_int();
    (n_int, n.fma(low, n.fma(high, x).keep()).keep())
}

/// `x · 2ⁿ` in two steps, since 2ⁿ itself may be out of range: |n| < 252 (single) or 2044 (double).
#[inline(always)]
pub(super) fn scale<F: Real>(x: F, n: F::Bits) -> F {
    let half = n.shr(1);
    (x * exp2_int(half)).keep() * exp2_int(n.sub(half))
}

/// `eˣ = 2ⁿ·eʳ` with |r| ≤ ½ ln 2, `eʳ` by a polynomial.
#[inline(always)]
pub fn exp<F: Real>(x: F) -> F {
    let x = x.at_most(by_width(89.0, 710.0)).at_least(by_width(-104.0, -746.0));
    let (n, r) = reduce(x, x * F::constant(LOG2_E));
    scale(EXP.at(r), n)
}

/// `eˣ` for arguments whose result is a normal number: no clamp, one scaling.
#[inline(always)]
pub(super) fn exp_normal<F: Real>(x: F) -> F {
    let (n, r) = reduce(x, x * F::constant(LOG2_E));
    EXP.at(r) * exp2_int::<F>(n)
}

/// `eˣ − 1`, accurate near 0.
///
/// `x = n·ln 2 + r`; `eˣ − 1 = 2·(2ⁿ⁻¹·(eʳ − 1) + (2ⁿ⁻¹ − ½))`. The quotient is rounded so that `r` lies in
/// [ln ¾, ln 1½], where no scaling magnifies the error of `eʳ − 1` in the sum. The halved scale keeps the largest `n` in
/// range. Tiny `x`, for which the result is `x`, keeps its sign and its subnormal bits.
#[inline(always)]
pub fn exp_m1<F: Real>(x: F) -> F {
    let clamped = x.at_most(by_width(89.0, 710.0)).at_least(by_width(-20.0, -40.0));
    let (n, r) = reduce(clamped, clamped.fma(F::constant(LOG2_E), F::constant(-0.085)));
    let p = EXP_M1.at(r).fma(r * r, r);
    let scale = exp2_int::<F>(n.sub(F::Bits::constant(1)));
    let half = scale.fma(p, scale - F::constant(0.5)).keep();
    let tiny = x.abs().lt(by_width(2f64.powi(-26), 2f64.powi(-55)));
    F::select(tiny, x, half + half)
}
