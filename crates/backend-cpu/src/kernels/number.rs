//! Arithmetic of the types that are computed in, and what long sums of them are kept in.

use tensor_core::math::Real;

use crate::eval::{Lane, Stored};

/// A lane with its arithmetic. Integers wrap.
pub(crate) trait Arithmetic: Lane + Stored<Lane = Self> {
    /// What long sums and products are kept in: f64 for floats, the type itself for integers.
    type Total: Arithmetic;
    const ZERO: Self;
    const ONE: Self;
    /// Not above any value (−∞ for floats).
    const LOWEST: Self;
    /// Not below any value (+∞ for floats).
    const HIGHEST: Self;

    fn plus(self, rhs: Self) -> Self;
    fn times(self, rhs: Self) -> Self;
    fn is_nan(self) -> bool;
    fn to_total(self) -> Self::Total;
    fn from_total(total: Self::Total) -> Self;

    /// The larger; NaN if either is.
    #[inline(always)]
    fn larger(self, rhs: Self) -> Self {
        if (rhs > self) | rhs.is_nan() { rhs } else { self }
    }

    /// The smaller; NaN if either is.
    #[inline(always)]
    fn smaller(self, rhs: Self) -> Self {
        if (rhs < self) | rhs.is_nan() { rhs } else { self }
    }
}

/// A float that is computed in.
pub(crate) trait Float: Arithmetic<Total = f64> + Real {}

impl Float for f32 {}
impl Float for f64 {}

/// Values that were folded side by side as one, by halves: a fixed order, in few steps that wait for each other.
#[inline(always)]
pub(crate) fn by_halves<const N: usize, T: Copy>(mut values: [T; N], fold: impl Fn(T, T) -> T) -> T {
    let mut half = N / 2;
    while half > 0 {
        for i in 0..half {
            values[i] = fold(values[i], values[i + half]);
        }
        half /= 2;
    }
    values[0]
}

/// Runs an expression with `$t` as the element type of a float dtype; core lets no other dtype through.
macro_rules! for_float {
    ($dtype:expr, $t:ident => $body:expr) => {
        match $dtype {
            ::tensor_core::DType::F64 => {
                type $t = f64;
                $body
            }
            ::tensor_core::DType::F32 => {
                type $t = f32;
                $body
            }
            ::tensor_core::DType::F16 => {
                type $t = ::half::f16;
                $body
            }
            ::tensor_core::DType::BF16 => {
                type $t = ::half::bf16;
                $body
            }
            other => unreachable!("invariant: core takes floats only here, not {other}"),
        }
    };
}
pub(crate) use for_float;

macro_rules! arithmetic {
    ($t:ty, $total:ty, $lowest:expr, $highest:expr, $plus:expr, $times:expr, $is_nan:expr) => {
        impl Arithmetic for $t {
            type Total = $total;
            const ZERO: Self = 0 as $t;
            const ONE: Self = 1 as $t;
            const LOWEST: Self = $lowest;
            const HIGHEST: Self = $highest;
            #[inline(always)]
            fn plus(self, rhs: Self) -> Self {
                $plus(self, rhs)
            }
            #[inline(always)]
            fn times(self, rhs: Self) -> Self {
                $times(self, rhs)
            }
            #[inline(always)]
            #[allow(clippy::redundant_closure_call)]
            fn is_nan(self) -> bool {
                $is_nan(self)
            }
            #[inline(always)]
            fn to_total(self) -> $total {
                self as $total
            }
            #[inline(always)]
            fn from_total(total: $total) -> Self {
                total as $t
            }
        }
    };
}

macro_rules! float {
    ($t:ty) => {
        arithmetic!($t, f64, -<$t>::INFINITY, <$t>::INFINITY, std::ops::Add::add, std::ops::Mul::mul, <$t>::is_nan);
    };
}
macro_rules! integer {
    ($t:ty) => {
        arithmetic!($t, $t, <$t>::MIN, <$t>::MAX, <$t>::wrapping_add, <$t>::wrapping_mul, |_| false);
    };
}
float!(f32);
float!(f64);
integer!(i64);
integer!(i32);
integer!(u8);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extrema_propagate_nan() {
        let nan = f32::NAN;
        for (a, b) in [(nan, 1.0), (1.0, nan), (nan, nan)] {
            assert!(Arithmetic::is_nan(a.larger(b)) && Arithmetic::is_nan(a.smaller(b)));
        }
        assert_eq!((2f32.larger(3.0), 2f32.smaller(3.0), 2.larger(3), 2.smaller(3)), (3.0, 2.0, 3, 2));
    }
}
