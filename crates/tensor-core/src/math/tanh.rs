//! `tanh`.

use super::Real;
use super::coefficients::Coefficients;
use super::exponential::exp_normal;

/// `(tanh x − x) / x³` over `x²` on |x| ≤ 0.56, error relative to `tanh x`: 2^-29.4, 2^-60.0.
const NEAR_ZERO: Coefficients = Coefficients {
    single: &[
        -0.3333331346511841,
        0.13332436978816986,
        -0.053835757076740265,
        0.021000375971198082,
        -0.00616961345076561,
    ],
    double: &[
        -0.3333333333333328,
        0.13333333333323746,
        -0.053968253962076405,
        0.02186948833723168,
        -0.008863231798285003,
        0.003592083856354985,
        -0.0014554898457692397,
        0.0005882250400755414,
        -0.00023281998998213842,
        8.250739142016408e-5,
        -1.8992942766827422e-5,
    ],
};

/// The hyperbolic tangent; never beyond ±1.
///
/// `x + x³·P(x²)` for |x| < 0.55, else `1 − 2/(e^{2|x|} + 1)`, in which an error of the division weighs half or less.
/// (A single rational function takes half the instructions, and errs by four ulps near 1.)
#[inline(always)]
pub fn tanh<F: Real>(x: F) -> F {
    let one = F::constant(1.0);
    let magnitude = x.abs();
    let square = x * x;
    let near = magnitude.fma(square * NEAR_ZERO.at(square), magnitude);
    let doubled = (magnitude + magnitude).at_most(F::constant(50.0));
    let far = one - F::constant(2.0) / (exp_normal(doubled) + one);
    F::select(magnitude.lt(F::constant(0.55)), near, far).xor_sign(x)
}
