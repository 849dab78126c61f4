//! Rounding, sign, remainder, extrema: functions that are exact, or nearly one primitive.

use super::Real;
use super::coefficients::by_width;

/// `|x|`: clears the sign bit.
#[inline(always)]
pub fn abs<F: Real>(x: F) -> F {
    x.abs()
}

/// `√x`; NaN below 0, −0 at −0.
#[inline(always)]
pub fn sqrt<F: Real>(x: F) -> F {
    x.sqrt()
}

/// The largest integer not above `x`; keeps the sign of zero.
#[inline(always)]
pub fn floor<F: Real>(x: F) -> F {
    x.floor()
}

/// The smallest integer not below `x`; keeps the sign of zero.
#[inline(always)]
pub fn ceil<F: Real>(x: F) -> F {
    x.ceil()
}

/// The nearest integer, ties to even; keeps the sign of zero.
#[inline(always)]
pub fn round<F: Real>(x: F) -> F {
    x.round_even()
}

/// −1, 0 or 1 after the sign of `x`; ±0 and NaN are kept.
#[inline(always)]
pub fn sign<F: Real>(x: F) -> F {
    let zero = F::constant(0.0);
    let one = F::constant(1.0);
    F::select(x.gt(zero), one, F::select(x.lt(zero), -one, x))
}

/// The larger of two numbers; NaN if either is NaN. The sign of zero is free.
#[inline(always)]
pub fn max<F: Real>(x: F, y: F) -> F {
    F::select(x.gt(y) | x.is_nan(), x, y)
}

/// The smaller of two numbers; NaN if either is NaN. The sign of zero is free.
#[inline(always)]
pub fn min<F: Real>(x: F, y: F) -> F {
    F::select(x.lt(y) | x.is_nan(), x, y)
}

/// The remainder `x − y·⌊x/y⌋`: between 0 and `y`, with the sign of `y`.
///
/// Exact, up to one rounding where `x` and `y` differ in sign, for |x/y| < 2^22 (single) or 2^51 (double). A larger
/// quotient's last bits are beyond the number format; the result is then some number between 0 and `y`.
/// NaN for `y = 0` and for infinite `x`; for infinite `y`, `x` if the signs agree and `y` if not.
#[inline(always)]
pub fn rem<F: Real>(x: F, y: F) -> F {
    let zero = F::constant(0.0);
    let magnitude = y.abs();
    // With the quotient truncated towards 0 the remainder of the magnitudes is exact.
    let dividend = x.abs();
    let quotient = (dividend / magnitude).floor();
    let product = (quotient * magnitude).keep();
    let error = quotient.mul_error(magnitude, product);
    let mut r = ((dividend - product).keep() - error).keep();
    // The division may have rounded up to an integer (or down past one, where it is not exact).
    r = F::select(r.lt(zero), r + magnitude, r);
    r = F::select(r.ge(magnitude), r - magnitude, r);
    // Beyond the promised quotients: stay in range.
    let in_range = r.ge(zero) & r.lt(magnitude);
    let quotient_is_large = quotient.ge(by_width(2f64.powi(22), 2f64.powi(51)));
    r = F::select(quotient_is_large & !in_range, zero, r);
    // An infinite divisor leaves the dividend; an infinite dividend, a divisor of 0 and NaN leave nothing.
    let infinity = F::constant(f64::INFINITY);
    r = F::select(magnitude.eq(infinity), dividend, r);
    r = F::select(dividend.lt(infinity) & magnitude.gt(zero), r, F::constant(f64::NAN));
    // From the truncating to the flooring remainder.
    let differ = F::from_bits(x.to_bits() ^ y.to_bits());
    let negative = F::constant(1.0).xor_sign(differ).lt(zero);
    r = F::select(negative & r.gt(zero), magnitude - r, r);
    r.xor_sign(y)
}
