//! Scaled dot-product attention.

use smallvec::smallvec;

use super::{Contract, Keeps, Meta, Metas, Record, Role, Tensors, float, one, same_dtype};
use crate::{DType, Error, Result, Tensor};

/// Inputs: query [.., T, D], key [.., S, D], value [.., S, E] and, optionally, a bool mask that broadcasts to
/// [.., T, S] (true: may attend); gives softmax(scale·q·kᵀ)·v, [.., T, E].
///
/// `causal`: position t attends to s ≤ t + S − T. A row that may attend to nothing gives NaN, as softmax of −∞ does.
#[derive(Clone, Debug)]
pub struct Attention {
    /// Usually 1/√D.
    pub scale: f64,
    /// Whether a position sees only itself and those before it.
    pub causal: bool,
}

impl Record for Attention {
    fn name(&self) -> &str {
        "attention"
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Metas> {
        let (q, k, v, mask) = match inputs {
            [q, k, v] => (q, k, v, None),
            [q, k, v, mask] => (q, k, v, Some(mask)),
            _ => return Err(Error::shape("attention", format!("takes 3 or 4 inputs: got {}", inputs.len()))),
        };
        same_dtype("attention", ("query", q.dtype), ("key", k.dtype))?;
        same_dtype("attention", ("query", q.dtype), ("value", v.dtype))?;
        float("attention", "query", q.dtype)?;
        let rank = q.shape.rank();
        let fits = rank >= 2
            && k.shape.rank() == rank
            && v.shape.rank() == rank
            && q.shape[..rank - 2] == k.shape[..rank - 2]
            && q.shape[..rank - 2] == v.shape[..rank - 2]
            && q.shape[rank - 1] == k.shape[rank - 1]
            && k.shape[rank - 2] == v.shape[rank - 2];
        if !fits {
            return Err(Error::shape(
                "attention",
                format!(
                    "query must be [.., T, D], key [.., S, D], value [.., S, E] with equal leading axes: query {}, key {}, value {}",
                    q.shape, k.shape, v.shape
                ),
            ));
        }
        let scores = q.shape[..rank - 1].iter().copied().chain([k.shape[rank - 2]]).collect::<crate::Shape>();
        if let Some(mask) = mask
            && (mask.dtype != DType::Bool || scores.broadcast(&mask.shape).as_ref() != Some(&scores))
        {
            return Err(Error::shape(
                "attention",
                format!("mask must be bool and broadcast to {scores}: mask {} {}", mask.dtype, mask.shape),
            ));
        }
        one(q.shape[..rank - 1].iter().copied().chain([v.shape[rank - 1]]).collect(), q.dtype)
    }

    fn contract(&self) -> Contract {
        Contract { inputs: &[Role::Data, Role::Data, Role::Data, Role::Mask], ..Contract::composite() }
    }

    fn keeps(&self) -> Keeps {
        Keeps { inputs: 0b1111, outputs: 0 }
    }

    fn decompose(&self, inputs: &[&Tensor]) -> Option<Result<Tensors>> {
        Some((|| {
            let (q, k, v) = (inputs[0], inputs[1], inputs[2]);
            let mut scores = q.mul(self.scale)?.matmul(&k.transpose(-2, -1)?)?;
            let (t, s) = (q.dims()[q.rank() - 2], k.dims()[k.rank() - 2]);
            if self.causal {
                let device = q.device();
                let rows = Tensor::arange(0, t as i64, 1, (&device, DType::I64))?.unsqueeze(-1)?;
                let columns = Tensor::arange(0, s as i64, 1, (&device, DType::I64))?;
                let future = columns.gt(&rows.add(s as i64 - t as i64)?)?;
                scores = scores.masked_fill(&future, f64::NEG_INFINITY)?;
            }
            if let Some(mask) = inputs.get(3) {
                scores = scores.masked_fill(&mask.logical_not()?, f64::NEG_INFINITY)?;
            }
            Ok(smallvec![scores.softmax(-1)?.matmul(v)?])
        })())
    }
}
