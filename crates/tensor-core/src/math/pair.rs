//! Sums of two numbers that hold twice the bits of one (Dekker, Knuth).

use super::Real;

/// A number carried as an unevaluated sum, `high` rounded from it.
#[derive(Clone, Copy)]
pub(super) struct Pair<F> {
    pub(super) high: F,
    pub(super) low: F,
}

/// `high + low` of numbers with |high| ≥ |low|, exactly.
#[inline(always)]
pub(super) fn fast_two_sum<F: Real>(high: F, low: F) -> Pair<F> {
    let sum = (high + low).keep();
    Pair { high: sum, low: (low - (sum - high).keep()).keep() }
}

/// The product of two pairs.
#[inline(always)]
pub(super) fn mul_pair<F: Real>(lhs: Pair<F>, rhs: Pair<F>) -> Pair<F> {
    let high = (lhs.high * rhs.high).keep();
    let low = lhs.high.mul_error(rhs.high, high);
    Pair { high, low: lhs.high.fma(rhs.low, lhs.low.fma(rhs.high, low)) }
}
