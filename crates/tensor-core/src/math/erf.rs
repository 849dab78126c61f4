//! `erf`.

use super::Real;
use super::coefficients::{Coefficients, by_width};
use super::exponential::exp_normal;

/// `erf x / x − 1` over `x²` on |x| ≤ 0.93 (single) or 1 (double), relative error: 2^-30.1, 2^-56.0.
const NEAR_ZERO: Coefficients = Coefficients {
    single: &[
        0.12837916612625122,
        -0.37612628936767578,
        0.11283625662326813,
        -0.026855731382966042,
        0.0051924050785601139,
        -0.00080497696762904525,
        7.9966492194216698e-5,
    ],
    double: &[
        0.12837916709551256,
        -0.37612638903183343,
        0.11283791670936949,
        -0.026866170641958492,
        0.0052239775967247758,
        -0.00085483254840374671,
        0.00012055280449059165,
        -1.4924464226924169e-5,
        1.6444124989560672e-6,
        -1.6183716425091237e-7,
        1.3615096923336109e-8,
        -7.6039158006096166e-10,
    ],
};

/// `ln(erfc x) / x` above, error relative to `erf x`: 2^-30.3, 2^-57.9.
const LN_ERFC: Coefficients = Coefficients {
    single: &[
        -1.1286485195159912,
        -0.635151207447052,
        -0.10623703151941299,
        0.023762162774801254,
        -0.0036424857098609209,
        0.0003228041750844568,
        -1.1230618838453665e-5,
    ],
    double: &[
        -1.1283791116032893,
        -0.63662024587910926,
        -0.10277085588449665,
        0.019125039886575029,
        0.00021190090565133398,
        -0.001692429109674343,
        0.00057447980469083006,
        1.1134906929277896e-6,
        -9.5570834830302728e-5,
        5.6078941856301014e-5,
        -2.0366646332508132e-5,
        5.3897729787005035e-6,
        -1.0791669278942266e-6,
        1.6320417928641638e-7,
        -1.8153596179278297e-8,
        1.4044169670053859e-9,
        -6.7554689096674202e-11,
        1.5215128896859691e-12,
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
