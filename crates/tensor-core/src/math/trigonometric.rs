//! `sin`, `cos` and `tan`: reduction to |r| ≤ π/4, then one of two polynomials.

use super::coefficients::Coefficients;
use super::pair::fast_two_sum;
use super::reduction::{Angle, reduce};
use super::{Bits, Real};

/// `(sin r − r) / r³` over `r²` on |r| ≤ π/4, error relative to `sin r`: 2^-27.9, 2^-57.9.
const SIN: Coefficients = Coefficients {
    single: &[-0.16666655242443085, 0.008332189172506332, -0.0001951828453456983],
    double: &[
        -0.1666666666666663,
        0.00833333333332184,
        -0.00019841269829358493,
        2.7557313538481136e-6,
        -2.5050734380345843e-8,
        1.5895432554727747e-10,
    ],
};

/// `(cos r − 1 + ½r²) / r⁴` over `r²` on |r| ≤ π/4, error relative to `cos r`: 2^-33.0, 2^-63.9.
const COS: Coefficients = Coefficients {
    single: &[0.04166664555668831, -0.0013887309469282627, 2.4432327336398885e-5],
    double: &[
        0.041666666666666595,
        -0.001388888888887334,
        2.4801587288999538e-5,
        -2.7557314216012124e-7,
        2.0875705222421706e-9,
        -1.1358738725207535e-11,
    ],
};

/// `sin (high + low)` as an unevaluated sum: `r`, and `r³·P(r²) + low·(1 − ½r²)`.
#[inline(always)]
fn sin_reduced<F: Real>(high: F, low: F) -> (F, F) {
    let square = high * high;
    let low = low.fma(square * F::constant(-0.5), low);
    (high, (square * high).fma(SIN.at(square), low))
}

/// `cos (high + low)` as an unevaluated sum: `1 − ½r²`, and its rounding error `+ r⁴·P(r²) − r·low`.
#[inline(always)]
fn cos_reduced<F: Real>(high: F, low: F) -> (F, F) {
    let one = F::constant(1.0);
    let square = high * high;
    let half = square * F::constant(0.5);
    let head = (one - half).keep();
    let error = (one - head).keep() - half;
    (head, (square * square).fma(COS.at(square), (-high).fma(low, error)))
}

/// The sine and the cosine of an angle of quadrant 0 or 1, as unevaluated sums; the caller sees to the signs.
#[inline(always)]
fn sin_and_cos<F: Real>(angle: &Angle<F>) -> [(F, F); 2] {
    let sin = sin_reduced(angle.high, angle.low);
    let cos = cos_reduced(angle.high, angle.low);
    let is_odd = (angle.n & F::Bits::constant(1)).eq(F::Bits::constant(1));
    let choose = |odd: (F, F), even: (F, F)| (F::select(is_odd, odd.0, even.0), F::select(is_odd, odd.1, even.1));
    [choose(cos, sin), choose(sin, cos)]
}

/// Bit 1 of the quadrant `n` as a sign bit: set in the half turn where the sine is negative.
#[inline(always)]
fn half_turn<F: Real>(n: F::Bits) -> F::Bits {
    n.shl(F::FORMAT.width() - 2)
}

/// `y`, but NaN for the sine of an infinite or NaN `x`.
#[inline(always)]
fn nan_unless_finite<F: Real>(magnitude: F, y: F) -> F {
    F::select(magnitude.lt(F::constant(f64::INFINITY)), y, F::constant(f64::NAN))
}

/// The sine, of any finite `x`; NaN at ±inf, −0 at −0.
#[inline(always)]
pub fn sin<F: Real>(x: F) -> F {
    let magnitude = x.abs();
    let angle = reduce(magnitude);
    let [(head, tail), _] = sin_and_cos(&angle);
    let sign = F::from_bits(half_turn::<F>(angle.n) ^ x.to_bits());
    nan_unless_finite(magnitude, (head + tail).xor_sign(sign))
}

/// The cosine, of any finite `x`; NaN at ±inf.
#[inline(always)]
pub fn cos<F: Real>(x: F) -> F {
    let magnitude = x.abs();
    let angle = reduce(magnitude);
    let [_, (head, tail)] = sin_and_cos(&angle);
    // cos is the sine a quadrant further on: its sign changes in quadrants 1 and 2.
    let sign = F::from_bits(half_turn::<F>(angle.n.add(F::Bits::constant(1))));
    nan_unless_finite(magnitude, (head + tail).xor_sign(sign))
}

/// The tangent, of any finite `x`; NaN at ±inf, −0 at −0.
///
/// Sine over cosine, each with the part that rounding it would lose; the quotient is corrected by its residual.
#[inline(always)]
pub fn tan<F: Real>(x: F) -> F {
    let magnitude = x.abs();
    let angle = reduce(magnitude);
    let [(sin_head, sin_tail), (cos_head, cos_tail)] = sin_and_cos(&angle);
    let sin = fast_two_sum(sin_head, sin_tail);
    let cos = fast_two_sum(cos_head, cos_tail);
    let reciprocal = F::constant(1.0) / cos.high;
    let quotient = (sin.high * reciprocal).keep();
    let product = (quotient * cos.high).keep();
    let residual = (sin.high - product).keep() - quotient.mul_error(cos.high, product);
    let residual = residual + (-quotient).fma(cos.low, sin.low);
    let tan = residual.fma(reciprocal, quotient);
    // The signs of sine and cosine differ in odd quadrants.
    let sign = F::from_bits(angle.n.shl(F::FORMAT.width() - 1) ^ x.to_bits());
    nan_unless_finite(magnitude, tan.xor_sign(sign))
}
