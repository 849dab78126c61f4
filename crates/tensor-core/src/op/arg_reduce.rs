//! The index of the largest or smallest element along an axis.

use super::{Contract, Meta, Metas, NUMBERS, Record, axis_in, exactly, not_bool, one};
use crate::{DType, Error, Result};

/// y = the position along `axis` of the maximum (minimum): of equals the first, and NaN counts as the extremum.
#[derive(Clone, Debug)]
pub struct ArgReduce {
    /// Maximum, or else minimum.
    pub max: bool,
    /// The resolved axis.
    pub axis: usize,
    /// Whether the axis stays with size 1.
    pub keepdim: bool,
}

impl Record for ArgReduce {
    fn name(&self) -> &str {
        self.op_name()
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Metas> {
        let [x] = exactly(inputs, self.op_name())?;
        axis_in(self.op_name(), self.axis, x.shape.rank())?;
        not_bool(self.op_name(), "input", x.dtype)?;
        let out = x.shape.reduced(&[self.axis], self.keepdim);
        if x.shape[self.axis] == 0 && !out.is_empty() {
            return Err(Error::shape(
                self.op_name(),
                format!("has no value over no elements: input {}, axis {}", x.shape, self.axis),
            ));
        }
        one(out, DType::I64)
    }

    fn contract(&self) -> Contract {
        Contract { dtypes: NUMBERS, ..Contract::exact() }
    }
}

impl ArgReduce {
    fn op_name(&self) -> &'static str {
        if self.max { "argmax" } else { "argmin" }
    }
}
