//! `exp` and `exp_m1`: reduction by multiples of ln 2, then a polynomial.

use std::f64::consts::LOG2_E;

use super::coefficients::{Coefficients, by_width, exp2_int};
use super::{Bits, Real};

/// `eʳ` on |r| ≤ ½ ln 2, relative error: 2^-28.2, 2^-63.6.
const EXP: Coefficients = Coefficients {
    single: &[
        1.0,
        1.0,
        0.49999994039535522,
        0.16666516661643982,
        0.041668102145195007,
        0.0083691664040088654,
        0.0013838030863553286,
    ],
    double: &[
        1.0,
        1.0,
        0.5,
        0.16666666666666688,
        0.041666666666666824,
        0.0083333333333138852,
        0.001388888888877816,
        0.00019841269903396217,
        2.4801587557935884e-5,
        2.7557228652572413e-6,
        2.75570697662952e-7,
        2.5113943639741391e-8,
        2.0976800125460197e-9,
    ],
};

/// `(eʳ − 1 − r) / r²` on |r| ≤ ½ ln 2, error relative to `eʳ − 1`: 2^-31.0, 2^-64.7.
const EXP_M1: Coefficients = Coefficients {
    single: &[
        0.5,
        0.1666666567325592,
        0.041666466742753983,
        0.0083336429670453072,
        0.001393504673615098,
        0.00019664540013764054,
    ],
    double: &[
        0.5,
        0.16666666666666666,
        0.041666666666666699,
        0.0083333333333345215,
        0.0013888888888863595,
        0.00019841269836495126,
        2.4801587371290117e-5,
        2.7557327461153711e-6,
        2.7557231423209105e-7,
        2.5045707536640103e-8,
        2.0928373394701566e-9,
        1.7910258651837086e-10,
    ],
};

/// `x = n·ln 2 + r` with |r| ≤ ½ ln 2: `n` as an integer, and `r`.
///
/// ln 2 is split so that `n` times its high part is exact, with or without a fused product.
#[inline(always)]
fn reduce<F: Real>(x: F) -> (F::Bits, F) {
    let high = by_width::<F>(-0.693359375, -6.931_471_803_691_238e-1);
    let low = by_width::<F>(2.121_944_400_546_905_8e-4, -1.908_214_929_270_587_7e-10);
    let (n, n_int) = (x * F::constant(LOG2_E)).round_to_int();
    (n_int, n.fma(low, n.fma(high, x).keep()).keep())
}

/// `x · 2ⁿ` in two steps, since 2ⁿ itself may be out of range: |n| < 252 (single) or 2044 (double).
#[inline(always)]
pub(super) fn scale<F: Real>(x: F, n: F::Bits) -> F {
    let half = n.shr(1);
    (x * exp2_int(half)).keep() * exp2_int(n.sub(half))
}

/// `eˣ = 2ⁿ·eʳ`, `eʳ` by a polynomial.
#[inline(always)]
pub fn exp<F: Real>(x: F) -> F {
    let (n, r) = reduce(x.at_most(by_width(89.0, 710.0)).at_least(by_width(-104.0, -746.0)));
    scale(EXP.at(r), n)
}

/// `eˣ` for arguments whose result is a normal number: no clamp, one scaling.
#[inline(always)]
pub(super) fn exp_normal<F: Real>(x: F) -> F {
    let (n, r) = reduce(x);
    EXP.at(r) * exp2_int::<F>(n)
}

/// `eˣ − 1`, accurate near 0.
///
/// `x = n·ln 2 + r` with |r| ≤ ½ ln 2; `eˣ − 1 = 2·(2ⁿ⁻¹·(eʳ − 1) + (2ⁿ⁻¹ − ½))`. The halved scale keeps the largest
/// `n` in range. Tiny `x`, for which the result is `x`, keeps its sign and its subnormal bits.
#[inline(always)]
pub fn exp_m1<F: Real>(x: F) -> F {
    let (n, r) = reduce(x.at_most(by_width(89.0, 710.0)).at_least(by_width(-20.0, -40.0)));
    let p = EXP_M1.at(r).fma(r * r, r);
    let scale = exp2_int::<F>(n.sub(F::Bits::constant(1)));
    let half = scale.fma(p, scale - F::constant(0.5)).keep();
    let tiny = x.abs().lt(by_width(2f64.powi(-26), 2f64.powi(-55)));
    F::select(tiny, x, half + half)
}
