//! The error bounds that this library promises, as data.

/// The largest error of a function, in units in the last place of the true result.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bound {
    /// The function's name in this module.
    pub name: &'static str,
    /// The bound in single precision.
    pub f32_ulps: f64,
    /// The bound in double precision.
    pub f64_ulps: f64,
}

const fn row(name: &'static str, f32_ulps: f64, f64_ulps: f64) -> Bound {
    Bound { name, f32_ulps, f64_ulps }
}

/// Every function's bound: the largest error measured, rounded up to the next quarter.
///
/// They hold where fused products round once, division and square root are rounded to nearest and subnormals are kept:
/// natively and in PTX. WGSL promises less of its primitives, and its backend raises these.
pub const BOUNDS: &[Bound] = &[
    row("abs", 0.0, 0.0),
    row("ceil", 0.0, 0.0),
    row("cos", 1.0, 1.0),
    row("erf", 1.25, 1.25),
    row("exp", 1.0, 1.0),
    row("exp_m1", 1.5, 1.5),
    row("floor", 0.0, 0.0),
    row("ln", 1.0, 1.0),
    row("ln_1p", 1.0, 1.0),
    row("max", 0.0, 0.0),
    row("min", 0.0, 0.0),
    row("pow", 1.0, 1.0),
    row("recip", 0.5, 0.5),
    row("rem", 0.5, 0.5),
    row("round", 0.0, 0.0),
    row("rsqrt", 1.5, 1.5),
    row("sign", 0.0, 0.0),
    row("sin", 1.0, 1.0),
    row("sqrt", 0.5, 0.5),
    row("tan", 1.0, 1.0),
    row("tanh", 1.5, 1.5),
];

/// The bound of the function `name`, or `None` if this module has no such function.
pub fn bound(name: &str) -> Option<Bound> {
    BOUNDS.iter().copied().find(|bound| bound.name == name)
}
