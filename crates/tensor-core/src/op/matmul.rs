//! The batched matrix product with an elementwise epilogue.

use smallvec::SmallVec;

use super::{Contract, Keeps, Map, Meta, Metas, NUMBERS, Op, Record, Tensors, not_bool, one, same_dtype};
use crate::{DType, Error, Expr, Result, Shape, Tensor, execute};

/// y = epilogue(lhs · rhs, extra…): [.., M, K] × [.., K, N] → [.., M, N], batch axes broadcast, any strides.
///
/// Inputs: lhs and rhs of rank ≥ 2, then the epilogue's further inputs, which broadcast to the result.
/// 16-bit floats accumulate in f32; integers wrap.
#[derive(Clone, Debug)]
pub struct MatMul {
    /// Over the product (input 0) and the further inputs; the identity by default.
    pub epilogue: Expr,
}

impl Default for MatMul {
    fn default() -> Self {
        Self { epilogue: Expr::identity() }
    }
}

/// Shape and dtype after an epilogue over `result` and further inputs, which must not widen the result.
pub(super) fn with_epilogue(op: &'static str, epilogue: &Expr, result: Meta, extra: &[Meta]) -> Result<Metas> {
    if epilogue.is_identity() && extra.is_empty() {
        return one(result.shape, result.dtype);
    }
    for meta in extra {
        if result.shape.broadcast(&meta.shape).as_ref() != Some(&result.shape) {
            return Err(Error::shape(
                op,
                format!(
                    "an epilogue input must broadcast to the result: input {}, result {}",
                    meta.shape, result.shape
                ),
            ));
        }
    }
    let dtypes: SmallVec<[DType; 4]> = std::iter::once(result.dtype).chain(extra.iter().map(|m| m.dtype)).collect();
    one(result.shape, epilogue.code.result(op, &dtypes)?)
}

/// Splits `op` without its epilogue from the epilogue as a map.
pub(super) fn split_epilogue(plain: Op, name: &'static str, epilogue: &Expr, inputs: &[&Tensor]) -> Result<Tensors> {
    let result = execute(&plain, &inputs[..2])?;
    let operands: SmallVec<[&Tensor; 4]> = std::iter::once(&result[0]).chain(inputs[2..].iter().copied()).collect();
    execute(&Op::Map(Map::new(name, epilogue.clone())), &operands)
}

/// What an epilogue op keeps: both operands, and what the epilogue's derivative reads of the further inputs.
/// The tape splits the op when that derivative reads the product itself.
pub(super) fn keeps(epilogue: &Expr) -> Keeps {
    let extra = Map::new("epilogue", epilogue.clone()).keeps().inputs;
    Keeps { inputs: 0b11 | (extra >> 1) << 2, outputs: 0 }
}

impl Record for MatMul {
    fn name(&self) -> &str {
        "matmul"
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Metas> {
        let [lhs, rhs, extra @ ..] = inputs else {
            return Err(Error::shape("matmul", format!("takes at least 2 inputs: got {}", inputs.len())));
        };
        let (a, b) = (&lhs.shape, &rhs.shape);
        same_dtype("matmul", ("lhs", lhs.dtype), ("rhs", rhs.dtype))?;
        not_bool("matmul", "lhs", lhs.dtype)?;
        if a.rank() < 2 || b.rank() < 2 {
            return Err(Error::shape("matmul", format!("operands need two axes or more: lhs {a}, rhs {b}")));
        }
        let (m, k) = (a[a.rank() - 2], a[a.rank() - 1]);
        let (k_rhs, n) = (b[b.rank() - 2], b[b.rank() - 1]);
        if k != k_rhs {
            return Err(Error::shape(
                "matmul",
                format!("inner dimensions differ: lhs {a} has K = {k}, rhs {b} has K = {k_rhs}"),
            ));
        }
        let batch = Shape::new(&a[..a.rank() - 2])
            .broadcast(&Shape::new(&b[..b.rank() - 2]))
            .ok_or_else(|| Error::shape("matmul", format!("batch axes do not broadcast: lhs {a}, rhs {b}")))?;
        let shape = batch.iter().copied().chain([m, n]).collect();
        with_epilogue("matmul", &self.epilogue, Meta::new(shape, lhs.dtype), extra)
    }

    fn contract(&self) -> Contract {
        Contract::sums(NUMBERS)
    }

    fn keeps(&self) -> Keeps {
        keeps(&self.epilogue)
    }

    fn decompose(&self, inputs: &[&Tensor]) -> Option<Result<Tensors>> {
        (!self.epilogue.is_identity())
            .then(|| split_epilogue(Op::MatMul(Self::default()), "matmul", &self.epilogue, inputs))
    }
}
