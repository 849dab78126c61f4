//! Cross-entropy of logits against class indices.

use smallvec::smallvec;

use super::{Contract, Keeps, Meta, Metas, Record, Role, Tensors, exactly, float, index_dtype, one};
use crate::{Error, Result, Shape, Tensor};

/// Inputs: logits [.., C], target [..] of class indices; gives −log_softmax(logits)[.., target] per row, [..].
///
/// A target out of range is an error on the CPU.
#[derive(Clone, Debug, Default)]
pub struct CrossEntropy;

impl Record for CrossEntropy {
    fn name(&self) -> &str {
        "cross_entropy"
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Metas> {
        let [logits, target] = exactly(inputs, "cross_entropy")?;
        float("cross_entropy", "logits", logits.dtype)?;
        index_dtype("cross_entropy", target.dtype)?;
        let rank = logits.shape.rank();
        if rank == 0 || logits.shape[..rank - 1] != target.shape[..] {
            return Err(Error::shape(
                "cross_entropy",
                format!(
                    "target must have the logits' shape without its last axis: logits {}, target {}",
                    logits.shape, target.shape
                ),
            ));
        }
        one(Shape::new(&logits.shape[..rank - 1]), logits.dtype)
    }

    fn contract(&self) -> Contract {
        Contract { inputs: &[Role::Data, Role::Index], ..Contract::composite() }
    }

    fn keeps(&self) -> Keeps {
        Keeps { inputs: 0b11, outputs: 0 }
    }

    fn decompose(&self, inputs: &[&Tensor]) -> Option<Result<Tensors>> {
        Some((|| {
            let &[logits, target] = inputs else { unreachable!("invariant: two inputs") };
            let picked = logits.log_softmax(-1)?.gather(-1, &target.unsqueeze(-1)?)?;
            Ok(smallvec![picked.squeeze(-1)?.neg()?])
        })())
    }
}
