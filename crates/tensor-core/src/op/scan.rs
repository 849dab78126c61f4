//! Running folds along an axis.

use super::{Contract, Keeps, Meta, Metas, NUMBERS, Record, axis_in, exactly, not_bool, one};
use crate::Result;

/// What is folded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ScanKind {
    /// Running sum.
    Sum,
    /// Running product.
    Prod,
    /// Running maximum; from a NaN on, NaN.
    Max,
}

/// y_i = fold of x_0 … x_i along `axis` (of x_i … x_n in reverse).
#[derive(Clone, Debug)]
pub struct Scan {
    /// The fold.
    pub kind: ScanKind,
    /// The resolved axis.
    pub axis: usize,
    /// From the end.
    pub reverse: bool,
}

impl Scan {
    fn op_name(&self) -> &'static str {
        match self.kind {
            ScanKind::Sum => "cumsum",
            ScanKind::Prod => "cumprod",
            ScanKind::Max => "cummax",
        }
    }
}

impl Record for Scan {
    fn name(&self) -> &str {
        self.op_name()
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Metas> {
        let [x] = exactly(inputs, self.op_name())?;
        axis_in(self.op_name(), self.axis, x.shape.rank())?;
        not_bool(self.op_name(), "input", x.dtype)?;
        one(x.shape.clone(), x.dtype)
    }

    fn contract(&self) -> Contract {
        match self.kind {
            ScanKind::Sum => Contract::sums(NUMBERS),
            ScanKind::Prod => Contract::products(NUMBERS),
            ScanKind::Max => Contract { dtypes: NUMBERS, ..Contract::exact() },
        }
    }

    fn keeps(&self) -> Keeps {
        match self.kind {
            ScanKind::Sum => Keeps::NOTHING,
            ScanKind::Prod => Keeps { inputs: 1, outputs: 0 },
            ScanKind::Max => Keeps { inputs: 1, outputs: 1 },
        }
    }
}
