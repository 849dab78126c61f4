//! The matrix product as the definition says it.

use tensor_core::expr::{Algebra, Binary, Bounded, Bounds, Value, int_binary};
use tensor_core::op::MatMul;
use tensor_core::{DType, Meta, Result};

use super::array::{Array, Cell};
use super::elementwise::epilogue;
use super::fold::sum;
use super::real;

/// Σ of products of factors, rounded once per product and summed in any order.
pub(super) fn dot(bounds: &Bounds, pairs: &[(Cell, Cell)], dtype: DType) -> Cell {
    if dtype.is_int() {
        let int = |cell: Cell| if let Value::Int(v) = cell { v } else { 0 };
        let product = |&(a, b): &(Cell, Cell)| int_binary(Binary::Mul, int(a), int(b), dtype);
        return Value::Int(pairs.iter().map(product).fold(0, |acc, p| int_binary(Binary::Add, acc, p, dtype)));
    }
    let product = |&(a, b): &(Cell, Cell)| {
        let ((a, lost_a), (b, lost_b)) = (factor(bounds, a, dtype), factor(bounds, b, dtype));
        let product = bounds.binary(Binary::Mul, a, b, dtype.compute());
        // What became infinite may give anything, by 0 too.
        if lost_a || lost_b { Bounded { error: f64::INFINITY, ..product } } else { product }
    };
    let products: Vec<Bounded> = pairs.iter().map(product).collect();
    Value::Real(sum(&products, dtype))
}

/// A factor as it is multiplied, and whether a finite one may have become infinite.
fn factor(bounds: &Bounds, x: Cell, dtype: DType) -> (Bounded, bool) {
    let (own, taken) = (real(x), bounds.factor(real(x), dtype));
    (taken, taken.error.is_infinite() && own.error.is_finite())
}

/// Every element a dot product, then the epilogue.
pub(super) fn matmul(bounds: &Bounds, op: &MatMul, inputs: &[Array], meta: &Meta) -> Result<Array> {
    let (a, b) = (&inputs[0], &inputs[1]);
    let rank = meta.shape.rank();
    let k = a.dims[a.dims.len() - 1];
    let batch_at = |x: &Array, batch: &[usize], row: usize, column: usize| {
        let lead = batch.len() - (x.dims.len() - 2);
        let mut index: Vec<usize> =
            batch[lead..].iter().zip(&x.dims).map(|(&i, &n)| if n == 1 { 0 } else { i }).collect();
        index.extend([row, column]);
        x.at(&index)
    };
    let product = Array::from_fn(&meta.shape, a.dtype, |index| {
        let (batch, row, column) = (&index[..rank - 2], index[rank - 2], index[rank - 1]);
        let pairs: Vec<(Cell, Cell)> =
            (0..k).map(|i| (batch_at(a, batch, row, i), batch_at(b, batch, i, column))).collect();
        dot(bounds, &pairs, a.dtype)
    });
    epilogue(bounds, "matmul", &op.epilogue, product, &inputs[2..], meta)
}
