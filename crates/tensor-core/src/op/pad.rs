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
        let size = |a: usize| {
            let spread = x.shape[a].saturating_sub(1).checked_mul(self.interior[a])?.checked_add(x.shape[a])?;
            spread.checked_add(self.before[a])?.checked_add(self.after[a])
        };
        let shape = (0..rank).map(size).collect::<Option<Dims>>().ok_or_else(|| {
            let pairs: Vec<_> = self.before.iter().zip(&self.after).collect();
            Error::shape("pad", format!("the sizes overflow: input {}, pairs {pairs:?}", x.shape))
        })?;
        one(shape.into(), x.dtype)
    }

    fn contract(&self) -> Contract {
        Contract::exact()
    }
}
