//! The error bounds that this library promises, as data.

/// The largest error of a function, in units in the last place of the true result.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bound {
    /// The function's name in this module.
    pub name: &'static str,
    /// In single precision, natively and in PTX: all primitives are rounded to nearest.
    pub f32_ulps: f64,
    /// In single precision on a target that promises what WGSL does: a fused product may round twice, division is good
    /// to 2.5 ulp, the square root to 4.5. Where subnormals are flushed, they are off by more.
    pub f32_loose_ulps: f64,
    /// In double precision, natively and in PTX.
    pub f64_ulps: f64,
}

const fn row(name: &'static str, f32_ulps: f64, f32_loose_ulps: f64, f64_ulps: f64) -> Bound {
    Bound { name, f32_ulps, f32_loose_ulps, f64_ulps }
}

/// Every function's bounds: the largest error measured, rounded up to a quarter.
///
/// Measured over all `f32` (over random pairs for `pow`), and for double precision over 10⁵ points a function.
/// `rem`'s hold for the quotients it promises.
pub const BOUNDS: &[Bound] = &[
    row("abs", 0.0, 0.0, 0.0),
    row("ceil", 0.0, 0.0, 0.0),
    row("cos", 1.0, 1.0, 1.0),
    row("erf", 1.25, 1.25, 1.25),
    row("exp", 1.0, 1.25, 1.0),
    row("exp_m1", 1.5, 1.5, 1.5),
    row("floor", 0.0, 0.0, 0.0),
    row("ln", 1.0, 1.0, 1.0),
    row("ln_1p", 1.0, 1.25, 1.0),
    row("max", 0.0, 0.0, 0.0),
    row("min", 0.0, 0.0, 0.0),
    row("pow", 1.0, 1.5, 1.5),
    row("recip", 0.5, 2.5, 0.5),
    row("rem", 0.5, 0.5, 0.5),
    row("round", 0.0, 0.0, 0.0),
    row("rsqrt", 1.5, 11.5, 1.5),
    row("sign", 0.0, 0.0, 0.0),
    row("sin", 1.0, 1.0, 1.0),
    row("sqrt", 0.5, 4.5, 0.5),
    row("tan", 1.25, 1.5, 1.25),
    row("tanh", 1.75, 2.5, 1.75),
];

/// The bounds of the function `name`, or `None` if this module has no such function.
pub fn bound(name: &str) -> Option<Bound> {
    BOUNDS.iter().copied().find(|bound| bound.name == name)
}
