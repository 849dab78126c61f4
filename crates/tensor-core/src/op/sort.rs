//! Stable sort along an axis.

use smallvec::smallvec;

use super::{Contract, Keeps, Meta, Metas, Record, axis_in, exactly};
use crate::{DType, Result};

/// Two outputs: the values in order along `axis`, and their i64 positions before. Stable; NaN last in either direction.
#[derive(Clone, Debug)]
pub struct Sort {
    /// The resolved axis.
    pub axis: usize,
    /// Largest first.
    pub descending: bool,
}

impl Record for Sort {
    fn name(&self) -> &str {
        "sort"
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Metas> {
        let [x] = exactly(inputs, "sort")?;
        axis_in("sort", self.axis, x.shape.rank())?;
        Ok(smallvec![x.clone(), Meta::new(x.shape.clone(), DType::I64)])
    }

    fn contract(&self) -> Contract {
        Contract::exact()
    }

    fn keeps(&self) -> Keeps {
        Keeps { inputs: 0, outputs: 0b10 }
    }
}
