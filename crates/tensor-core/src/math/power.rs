//! `pow`, `recip` and `rsqrt`.

use super::coefficients::{Coefficients, by_width};
use super::exponential::scale;
use super::logarithm::{lift_subnormal, split_exponent};
use super::pair::{Pair, fast_two_sum, mul_pair};
use super::{Bits, Real};

/// `(3·atanh(s)/s − 3 − s²) / s⁴` over `s²` on |s| ≤ 0.172, error relative to 3: 2^-36.8, 2^-73.5.
const ATANH: Coefficients = Coefficients {
    single: &[0.6000022888183594, 0.4282061755657196, 0.3513021171092987],
    double: &[
        0.5999999999999996,
        0.428571428571688,
        0.3333333332602945,
        0.27272728339206054,
        0.2307683300769734,
        0.20004564469586542,
        0.17510436503680224,
        0.1799842121447443,
    ],
};

/// `(2ᶠ − 1) / f` on |f| ≤ ½, error relative to `2ᶠ`: 2^-27.5, 2^-59.7.
const EXP2: Coefficients = Coefficients {
    single: &[
        0.6931472420692444,
        0.24022655189037323,
        0.05550272762775421,
        0.009617065079510212,
        0.0013417755253612995,
        0.00015823646390344948,
    ],
    double: &[
        std::f64::consts::LN_2,
        0.2402265069591007,
        0.05550410866482338,
        0.009618129107630236,
        0.0013333558146032625,
        0.00015403530388884013,
        1.5252734168992086e-5,
        1.3215491301373626e-6,
        1.0177930952507216e-7,
        7.052976308870541e-9,
        4.473564260974984e-10,
        2.8669820628608765e-11,
    ],
};

/// `1 / x`.
#[inline(always)]
pub fn recip<F: Real>(x: F) -> F {
    F::constant(1.0) / x
}

/// `1 / √x`: NaN below 0, ±inf at ±0.
#[inline(always)]
pub fn rsqrt<F: Real>(x: F) -> F {
    F::constant(1.0) / x.sqrt()
}

/// `log₂ x` for finite positive `x`, to about 10 bits more than the format holds.
///
/// `x = 2ᵏm` with √½ ≤ m < √2 and `s = (m − 1)/(m + 1)`:
/// `log₂ x = k + 2/(3 ln 2) · s·(3 + s² + s⁴·P(s²))`, all but `P` in pairs (the scheme of fdlibm's `e_pow.c`).
#[inline(always)]
fn log2_pair<F: Real>(x: F) -> Pair<F> {
    let one = F::constant(1.0);
    let (normal, lift) = lift_subnormal(x);
    let (m, k) = split_exponent(normal);
    let k = F::from_int(k) + lift;

    let numerator = m - one;
    let denominator = (m + one).keep();
    let denominator_low = m - (denominator - one).keep();
    let reciprocal = one / denominator;
    let s_high = (numerator * reciprocal).keep();
    let product = (s_high * denominator).keep();
    let residual = (numerator - product).keep() - s_high.mul_error(denominator, product);
    let s = Pair { high: s_high, low: (residual - s_high * denominator_low) * reciprocal };

    let square = mul_pair(s, s);
    let tail = (square.high * square.high).fma(ATANH.at(square.high), square.low);
    let sum = fast_two_sum(F::constant(3.0), square.high);
    let cubic = mul_pair(s, Pair { high: sum.high, low: sum.low + tail });
    let two_thirds_log2_e = Pair {
        high: by_width(0.961_796_700_954_437_3, 0.961_796_693_925_975_6),
        low: by_width(-7.028_461_812_552_678e-9, 5.057_761_664_812_590_7e-17),
    };
    let log2_m = mul_pair(cubic, two_thirds_log2_e);
    let sum = fast_two_sum(k, log2_m.high);
    fast_two_sum(sum.high, sum.low + log2_m.low)
}

/// `x` to the power `y`, with the special values of IEEE 754 `pow`.
///
/// `2^{y·log₂|x|}`, the exponent carried as a pair. `pow(x, ±0) = 1` and `pow(1, y) = 1` even for NaN; a negative `x`
/// needs an integral `y`, else NaN; `pow(−1, ±inf) = 1`.
#[inline(always)]
pub fn pow<F: Real>(x: F, y: F) -> F {
    let zero = F::constant(0.0);
    let one = F::constant(1.0);
    let infinity = F::constant(f64::INFINITY);
    let magnitude = x.abs();

    let log2 = log2_pair(magnitude);
    // Far beyond what overflows for the x next to 1, and far from overflowing here.
    let limit = by_width::<F>(2f64.powi(33), 2f64.powi(64));
    let exponent = y.at_most(limit).at_least(-limit);
    let high = (exponent * log2.high).keep();
    let low = exponent.fma(log2.low, exponent.mul_error(log2.high, high));
    let saturates = by_width::<F>(160.0, 1100.0);
    let low = F::select(high.abs().lt(saturates), low, zero);
    let high = high.at_most(saturates).at_least(-saturates);
    let (n, n_int) = high.round_to_int();
    let f = (high - n).keep() + low;
    let p = EXP2.at(f).fma(f, one);
    let power = scale(p, n_int);

    // |x| of 0 or inf: itself, or its reciprocal for negative y. The bits of 0 and inf are each other's complement
    // in the bits of inf.
    let infinity_bits = infinity.to_bits();
    let inverse = F::from_bits(infinity_bits.sub(magnitude.to_bits()));
    let edge = F::select(y.lt(zero), inverse, magnitude);
    let power = F::select(magnitude.eq(zero) | magnitude.eq(infinity), edge, power);

    let is_integer = y.floor().eq(y);
    let half_y = y * F::constant(0.5);
    let is_odd = is_integer & !half_y.floor().eq(half_y);
    let signed = F::select(is_odd, power.xor_sign(x), power);
    let no_real_power = x.lt(zero) & magnitude.lt(infinity) & !is_integer;
    let result = F::select(no_real_power, F::constant(f64::NAN), signed);
    let result = F::select(x.is_nan() | y.is_nan(), x + y, result);
    F::select(x.eq(one) | y.eq(zero), one, result)
}
