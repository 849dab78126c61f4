//! Matrix products.

use smallvec::SmallVec;

use super::first;
use crate::op::MatMul;
use crate::{Error, Expr, Op, Result, Tensor, execute};

impl Tensor {
    /// The matrix product [.., M, K] × [.., K, N] → [.., M, N]; batch axes broadcast.
    ///
    /// A vector on the left is a row, one on the right a column, and its axis leaves the result.
    ///
    /// # Errors
    /// If an operand is a scalar, the inner dimensions differ, the batch axes do not broadcast, or the dtypes differ.
    pub fn matmul(&self, rhs: &Tensor) -> Result<Tensor> {
        if self.rank() >= 2 && rhs.rank() >= 2 {
            return first(execute(&Op::MatMul(MatMul::default()), &[self, rhs]));
        }
        if self.rank() == 0 || rhs.rank() == 0 {
            return Err(Error::shape(
                "matmul",
                format!(
                    "operands need one axis or more: lhs {}, rhs {}; use mul for a scalar",
                    self.shape(),
                    rhs.shape()
                ),
            ));
        }
        let inner = (self.dims()[self.rank() - 1], rhs.dims()[rhs.rank().saturating_sub(2)]);
        if inner.0 != inner.1 {
            return Err(Error::shape(
                "matmul",
                format!(
                    "inner dimensions differ: lhs {} has K = {}, rhs {} has K = {}",
                    self.shape(),
                    inner.0,
                    rhs.shape(),
                    inner.1
                ),
            ));
        }
        let row = if self.rank() == 1 { self.unsqueeze(0)? } else { self.clone() };
        let column = if rhs.rank() == 1 { rhs.unsqueeze(1)? } else { rhs.clone() };
        let mut y = first(execute(&Op::MatMul(MatMul::default()), &[&row, &column]))?;
        if rhs.rank() == 1 {
            y = y.squeeze(-1)?;
        }
        if self.rank() == 1 {
            y = y.squeeze(if rhs.rank() == 1 { -1 } else { -2 })?;
        }
        Ok(y)
    }

    /// epilogue(self · rhs, extra…), the epilogue in the same pass: an expression over the product and the further
    /// inputs, which broadcast to it. Operands have two axes or more.
    ///
    /// # Errors
    /// As [`Tensor::matmul`], and if a further input does not broadcast to the product.
    ///
    /// # Example
    /// `x.matmul_with(&w, &expr::build(|[y, b]| (y + b).relu()), &[&bias])`
    pub fn matmul_with(&self, rhs: &Tensor, epilogue: &Expr, extra: &[&Tensor]) -> Result<Tensor> {
        let inputs: SmallVec<[&Tensor; 4]> = [self, rhs].into_iter().chain(extra.iter().copied()).collect();
        first(execute(&Op::MatMul(MatMul { epilogue: epilogue.clone() }), &inputs))
    }
}
