//! Coefficients that differ by width, and the evaluation of polynomials.

use super::{Bits, Format, Real};

/// The coefficients of a polynomial for either width, the constant term first.
///
/// They are minimax coefficients (Remez's exchange, each rounded to the width and the rest fitted again); their
/// comments give log2 of the largest relative error against the function they stand for.
pub(super) struct Coefficients {
    pub(super) single: &'static [f64],
    pub(super) double: &'static [f64],
}

impl Coefficients {
    /// The polynomial at `x`, by Horner's rule.
    #[inline(always)]
    pub(super) fn at<F: Real>(&self, x: F) -> F {
        horner(
            x,
            match F::FORMAT {
                Format::Single => self.single,
                Format::Double => self.double,
            },
        )
    }
}

/// `Σ coefficients[i] · xⁱ`.
#[inline(always)]
pub(super) fn horner<F: Real>(x: F, coefficients: &[f64]) -> F {
    let (last, rest) = coefficients.split_last().expect("invariant: a polynomial has a coefficient");
    let mut sum = F::constant(*last);
    for &coefficient in rest.iter().rev() {
        sum = sum.fma(x, F::constant(coefficient));
    }
    sum
}

/// `single` or `double`, after the width of `F`.
#[inline(always)]
pub(super) fn by_width<F: Real>(single: f64, double: f64) -> F {
    F::constant(match F::FORMAT {
        Format::Single => single,
        Format::Double => double,
    })
}

/// `2^n` for `n` within the exponents of normal numbers.
#[inline(always)]
pub(super) fn exp2_int<F: Real>(n: F::Bits) -> F {
    F::from_bits(n.add(F::Bits::constant(F::FORMAT.exponent_bias())).shl(F::FORMAT.mantissa_bits()))
}
