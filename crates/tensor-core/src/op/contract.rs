//! What parity asks of an op besides shapes and errors: its dtypes, what to draw its inputs from, and how far a
//! backend's result may be from the reference's.

use crate::DType;
use crate::expr::{largest, smallest_normal, ulp};

/// An op's contract with every backend.
#[derive(Clone, Debug, PartialEq)]
pub struct Contract {
    /// The element types of its data inputs; of the output where it has no input.
    pub dtypes: &'static [DType],
    /// What each input holds; the last entry stands for all further inputs.
    pub inputs: &'static [Role],
    /// Where data is drawn from.
    pub domain: (f64, f64),
    /// Which special values are strewn into float data.
    pub edges: &'static [Edge],
    /// How far from the reference a result may be.
    pub tolerance: Tolerance,
}

/// What an input holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Numbers of the op's dtype.
    Data,
    /// Numbers of the type that the op's dtype is computed in.
    Wide,
    /// Positions along an axis, i64 or i32.
    Index,
    /// Truth values.
    Mask,
}

/// A special value of a float type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edge {
    /// 0 or −0.
    Zero,
    /// Half the smallest normal number.
    Subnormal,
    /// The largest finite number.
    Huge,
    /// ∞ or −∞.
    Infinite,
    /// Not a number.
    NaN,
}

impl Edge {
    /// Its values in a float type.
    pub fn values(self, dtype: DType) -> Vec<f64> {
        match self {
            Self::Zero => vec![0.0, -0.0],
            Self::Subnormal => vec![0.5 * smallest_normal(dtype), -0.5 * smallest_normal(dtype), ulp(0.0, dtype)],
            Self::Huge => vec![largest(dtype), -largest(dtype)],
            Self::Infinite => vec![f64::INFINITY, f64::NEG_INFINITY],
            Self::NaN => vec![f64::NAN],
        }
    }
}

/// How |got − reference| is bounded. ε is the distance from 1 to the next number of the type that is computed in
/// ([`DType::compute`]); where a result is stored in fewer bits, half a unit of those is added. NaN must meet NaN, and
/// infinity the same infinity. Integer results are exact.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Tolerance {
    /// The same bits, but for the sign of a zero and the payload of a NaN.
    Exact,
    /// The running error bound of the expression ([`crate::expr::Bounds`]).
    Elementwise,
    /// scale · K · ε · Σ|terms|, K terms; a term that an expression computes adds its own bound.
    Sum {
        /// 1 for the bound of any order of summation.
        scale: f64,
    },
    /// scale · K · ε · |product|, K factors; a factor that an expression computes adds its own bound.
    Product {
        /// 1 for the bound of any order.
        scale: f64,
    },
    /// So many units in the last place.
    Ulps(f64),
    /// So many ε, whatever the value.
    Absolute {
        /// Multiples of ε.
        epsilons: f64,
    },
    /// The bound that follows for the decomposition from those of its parts, times a scale.
    Decomposed {
        /// How much worse a native kernel may be.
        scale: f64,
    },
    /// A user's own op states none.
    Unstated,
}

/// Integers and floats.
pub const NUMBERS: &[DType] = &[DType::F64, DType::F32, DType::F16, DType::BF16, DType::I64, DType::I32, DType::U8];

/// Every special value.
pub const ALL_EDGES: &[Edge] = &[Edge::Zero, Edge::Subnormal, Edge::Huge, Edge::Infinite, Edge::NaN];

/// Special values that a sum takes in any order: huge ones may overflow on the way.
pub const SUM_EDGES: &[Edge] = &[Edge::Zero, Edge::Subnormal, Edge::Infinite, Edge::NaN];

impl Contract {
    /// Elements are moved or compared, never computed with: every dtype, every value, exact.
    pub(super) const fn exact() -> Self {
        Self {
            dtypes: &DType::ALL,
            inputs: &[Role::Data],
            domain: (-4.0, 4.0),
            edges: ALL_EDGES,
            tolerance: Tolerance::Exact,
        }
    }

    /// Sums of terms or of products.
    pub(super) const fn sums(dtypes: &'static [DType]) -> Self {
        Self { dtypes, edges: SUM_EDGES, tolerance: Tolerance::Sum { scale: 1.0 }, ..Self::exact() }
    }

    /// Sums of products with zeros around and between them, which a backend may multiply or leave out: infinity and NaN
    /// against them is either NaN or nothing.
    pub(super) const fn padded_sums(dtypes: &'static [DType]) -> Self {
        Self { edges: &[Edge::Zero, Edge::Subnormal], ..Self::sums(dtypes) }
    }

    /// A product of many factors, which are drawn near 1.
    pub(super) const fn products(dtypes: &'static [DType]) -> Self {
        Self {
            dtypes,
            domain: (0.7, 1.4),
            edges: SUM_EDGES,
            tolerance: Tolerance::Product { scale: 1.0 },
            ..Self::exact()
        }
    }

    /// A composite op over floats.
    pub(super) const fn composite() -> Self {
        Self {
            dtypes: &DType::FLOATS,
            domain: (-8.0, 8.0),
            edges: &[Edge::Zero, Edge::Subnormal, Edge::NaN],
            tolerance: Tolerance::Decomposed { scale: 2.0 },
            ..Self::exact()
        }
    }
}
