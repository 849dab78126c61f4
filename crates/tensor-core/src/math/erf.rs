//! `erf`.

use super::Real;
use super::coefficients::{Coefficients, by_width};
use super::exponential::exp_normal;

/// `erf x / x − 1` over `x²` on |x| ≤ 0.93 (single) or 1 (double), relative error: 2^-30.1, 2^-56.0.
const NEAR_ZERO: Coefficients = Coefficients {
    single: &[
        0.12837916612625122,
        -0.3761262893676758,
        0.11283625662326813,
        -0.02685573138296604,
        0.005192405078560114,
        -0.0008049769676290452,
        7.99664921942167e-5,
    ],
    double: &[
        0.12837916709551256,
        -0.37612638903183343,
        0.11283791670936949,
        -0.02686617064195849,
        0.005223977596724776,
        -0.0008548325484037467,
        0.00012055280449059165,
        -1.492446422692417e-5,
        1.6444124989560672e-6,
        -1.6183716425091237e-7,
        1.361509692333611e-8,
        -7.603915800609617e-10,
    ],
};

/// `ln(erfc x) / x` above, error relative to `erf x`: 2^-30.3, 2^-57.9.
const LN_ERFC: Coefficients = Coefficients {
    single: &[
        -1.1286485195159912,
        -0.635151207447052,
        -0.106237031519413,
        0.023762162774801254,
        -0.003642485709860921,
        0.0003228041750844568,
        -1.1230618838453665e-5,
    ],
    double: &[
        -1.1283791116032893,
        -0.6366202458791093,
        -0.10277085588449665,
        0.01912503988657503,
        0.00021190090565133398,
        -0.001692429109674343,
        0.0005744798046908301,
        1.1134906929277896e-6,
        -9.557083483030273e-5,
        5.6078941856301014e-5,
        -2.036664633250813e-5,
        5.3897729787005035e-6,
        -1.0791669278942266e-6,
        1.6320417928641638e-7,
        -1.8153596179278297e-8,
        1.4044169670053859e-9,
        -6.75546890966742e-11,
        1.521512889685969e-12,
    ],
};

/// The error function `2/√π · ∫₀ˣ e^{−t²} dt`.
///
/// Near 0, `x + x·P(x²)`; farther out, `1 − e^{|x|·Q(|x|)}` with `Q` a fit of `ln(erfc x) / x` (the idea is Norbert
/// Juffa's). No division.
#[inline(always)]
pub fn erf<F: Real>(x: F) -> F {
    let magnitude = x.abs();
    let square = x * x;
    let near = magnitude.fma(NEAR_ZERO.at(square), magnitude);
    let clamped = magnitude.at_most(by_width(3.95, 6.0));
    let far = F::constant(1.0) - exp_normal(clamped * LN_ERFC.at(clamped));
    F::select(magnitude.lt(by_width(0.925, 1.0)), near, far).xor_sign(x)
}
