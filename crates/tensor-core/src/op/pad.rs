//! Surrounding with a value, and spreading elements apart.

use super::{Contract, Meta, Metas, Record, exactly, one};
use crate::{Dims, Error, Number, Result};

/// Per axis: `before` values, the elements with `interior` values between neighbours, `after` values.
///
/// Also the adjoint of a slice with a step.
#[derive(Clone, Debug)]
pub struct Pad {
    /// Values before the first element.
    pub before: Dims,
    /// Values after the last element.
    pub after: Dims,
    /// Values between two neighbours.
    pub interior: Dims,
    /// The value.
    pub value: Number,
}

impl Record for Pad {
    fn name(&self) -> &str {
        "pad"
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Metas> {
        let [x] = exactly(inputs, "pad")?;
        let rank = x.shape.rank();
        if [&self.before, &self.after, &self.interior].iter().any(|v| v.len() != rank) {
            return Err(Error::shape(
                "pad",
                format!("needs one (before, after) pair per axis: input {}, pairs {}", x.shape, self.before.len()),
            ));
        }
        if !self.value.fits(x.dtype) {
            return Err(Error::dtype(
                "pad",
                format!(
                    "a float number needs a float tensor: number {}, tensor {}; cast it with .cast(..)",
                    self.value, x.dtype
                ),
            ));
        }
        let shape = (0..rank)
            .map(|a| self.before[a] + x.shape[a] + x.shape[a].saturating_sub(1) * self.interior[a] + self.after[a])
            .collect();
        one(shape, x.dtype)
    }

    fn contract(&self) -> Contract {
        Contract::exact()
    }
}
