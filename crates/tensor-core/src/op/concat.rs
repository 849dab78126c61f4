//! Joining along an axis.

use super::{Contract, Meta, Metas, Record, axis_in, one, same_dtype};
use crate::{Error, Result};

/// The inputs one after another along `axis`; their other sizes are equal.
#[derive(Clone, Debug)]
pub struct Concat {
    /// The resolved axis.
    pub axis: usize,
}

impl Record for Concat {
    fn name(&self) -> &str {
        "cat"
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Metas> {
        let Some(first) = inputs.first() else {
            return Err(Error::shape("cat", "needs at least one tensor: got none"));
        };
        axis_in("cat", self.axis, first.shape.rank())?;
        let mut len = 0usize;
        for (i, x) in inputs.iter().enumerate() {
            same_dtype("cat", ("tensor 0", first.dtype), (&format!("tensor {i}"), x.dtype))?;
            let fits = x.shape.rank() == first.shape.rank()
                && (0..x.shape.rank()).all(|a| a == self.axis || x.shape[a] == first.shape[a]);
            if !fits {
                return Err(Error::shape(
                    "cat",
                    format!("sizes differ off axis {}: tensor 0 {}, tensor {i} {}", self.axis, first.shape, x.shape),
                ));
            }
            // Too long a result is found when its elements are counted.
            len = len.saturating_add(x.shape[self.axis]);
        }
        let shape = first.shape.iter().enumerate().map(|(a, &n)| if a == self.axis { len } else { n }).collect();
        one(shape, first.dtype)
    }

    fn contract(&self) -> Contract {
        Contract::exact()
    }
}
