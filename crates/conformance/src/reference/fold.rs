//! Folds: reductions, their argument forms, running folds, and the sum that all others are bounded by.

use tensor_core::expr::{Algebra, Binary, Bounded, Bounds, Value, int_binary};
use tensor_core::op::{ArgReduce, Reduce, ReduceKind, Scan, ScanKind};
use tensor_core::{DType, Meta, Result, Shape};

use super::array::{Array, Cell, indices};
use super::elementwise::{Formula, perhaps_stored};
use super::real;

/// Σ of reals: the compensated sum; a backend may add in any order, in the type the dtype is computed in:
/// |got − sum| ≤ Σ errors + K·ε·Σ|x|.
pub(super) fn sum(terms: &[Bounded], dtype: DType) -> Bounded {
    let (mut value, mut low, mut magnitude, mut error) = (0.0f64, 0.0f64, 0.0f64, 0.0f64);
    for term in terms {
        let next = value + term.value;
        // Neumaier: what the addition lost.
        let lost =
            if value.abs() >= term.value.abs() { (value - next) + term.value } else { (term.value - next) + value };
        value = next;
        low += lost;
        magnitude += term.value.abs();
        error += term.error;
    }
    let total = if value.is_finite() { value + low } else { value };
    let epsilon = dtype.compute().epsilon();
    // A partial sum of another order may overflow where this one does not.
    let bound = error + terms.len() as f64 * epsilon * magnitude;
    let overflows = magnitude + bound >= tensor_core::expr::largest(dtype.compute());
    if !total.is_finite() || !bound.is_finite() {
        let certain = total.is_infinite() && terms.iter().all(|t| t.value != -total) || total.is_nan();
        return Bounded { value: total, error: if certain && error == 0.0 { 0.0 } else { f64::INFINITY } };
    }
    Bounded { value: total, error: if overflows { f64::INFINITY } else { bound } }
}

/// Folds cells in order.
pub(super) fn fold(bounds: &Bounds, kind: ReduceKind, cells: &[Cell], dtype: DType) -> Cell {
    if dtype.is_int() {
        let op = match kind {
            ReduceKind::Sum => Binary::Add,
            ReduceKind::Prod => Binary::Mul,
            ReduceKind::Max => Binary::Max,
            ReduceKind::Min => Binary::Min,
        };
        let int = |cell: &Cell| if let Value::Int(v) = cell { *v } else { 0 };
        let neutral = i64::from(kind == ReduceKind::Prod);
        let folded = match kind {
            ReduceKind::Sum | ReduceKind::Prod => {
                cells.iter().fold(neutral, |acc, cell| int_binary(op, acc, int(cell), dtype))
            }
            ReduceKind::Max | ReduceKind::Min => {
                cells.iter().map(int).reduce(|a, b| int_binary(op, a, b, dtype)).unwrap_or(neutral)
            }
        };
        return Value::Int(folded);
    }
    let reals: Vec<Bounded> = cells.iter().map(|&c| real(c)).collect();
    Value::Real(match kind {
        ReduceKind::Sum => sum(&reals, dtype),
        ReduceKind::Prod => {
            reals.iter().fold(Bounds::exact(1.0), |acc, &x| bounds.binary(Binary::Mul, acc, x, dtype.compute()))
        }
        ReduceKind::Max => extremum(bounds, Binary::Max, &reals, dtype),
        ReduceKind::Min => extremum(bounds, Binary::Min, &reals, dtype),
    })
}

fn extremum(bounds: &Bounds, op: Binary, reals: &[Bounded], dtype: DType) -> Bounded {
    // Bool: any and all, of nothing false and true.
    let nothing = Bounds::exact(f64::from(op == Binary::Min));
    reals.iter().copied().reduce(|a, b| bounds.binary(op, a, b, dtype)).unwrap_or(nothing)
}

/// For each index of the result the cells that are folded into it, in row-major order.
fn groups(dims: &[usize], axes: &[usize], keepdim: bool, mut cell: impl FnMut(&[usize]) -> Cell) -> Vec<Vec<Cell>> {
    let reduced = Shape::new(dims).reduced(axes, true);
    let _ = keepdim;
    let mut groups = vec![Vec::new(); reduced.len()];
    for index in indices(dims) {
        let position =
            index.iter().zip(reduced.iter()).fold(0, |position, (&i, &n)| position * n + if n == 1 { 0 } else { i });
        groups[position].push(cell(&index));
    }
    groups
}

/// The fold over the axes of the producer's values.
pub(super) fn reduce(bounds: &Bounds, op: &Reduce, inputs: &[Array], meta: &Meta) -> Result<Array> {
    let shape = inputs.iter().fold(Shape::default(), |shape, x| {
        shape.broadcast(&Shape::new(&x.dims)).expect("invariant: core checked the broadcast")
    });
    let dtypes: Vec<DType> = inputs.iter().map(|x| x.dtype).collect();
    let formula = Formula::new(op.name, &op.producer, &dtypes)?;
    let groups = groups(&shape, &op.axes, op.keepdim, |index| {
        let operands: Vec<Cell> = inputs.iter().map(|x| x.broadcast_at(index)).collect();
        perhaps_stored(bounds, formula.value(bounds, &operands), meta.dtype, &op.producer)
    });
    let cells = groups.iter().map(|group| fold(bounds, op.kind, group, meta.dtype)).collect();
    Ok(Array { dims: meta.shape.to_vec(), dtype: meta.dtype, cells })
}

/// Whether `a` comes before `b` as the extremum: NaN first, then the larger (smaller).
fn beats(a: Cell, b: Cell, max: bool) -> bool {
    match (a, b) {
        (Value::Int(a), Value::Int(b)) => {
            if max {
                a > b
            } else {
                a < b
            }
        }
        _ => {
            let (a, b) = (real(a).value, real(b).value);
            if a.is_nan() || b.is_nan() {
                a.is_nan() && !b.is_nan()
            } else if max {
                a > b
            } else {
                a < b
            }
        }
    }
}

/// The first position of the extremum.
pub(super) fn arg_reduce(op: &ArgReduce, x: &Array, meta: &Meta) -> Array {
    let groups = groups(&x.dims, &[op.axis], op.keepdim, |index| x.at(index));
    let cells = groups
        .iter()
        .map(|group| {
            let mut best = 0;
            for (i, &cell) in group.iter().enumerate() {
                if beats(cell, group[best], op.max) {
                    best = i;
                }
            }
            Value::Int(best as i64)
        })
        .collect();
    Array { dims: meta.shape.to_vec(), dtype: meta.dtype, cells }
}

/// The fold of everything up to each position.
pub(super) fn scan(bounds: &Bounds, op: &Scan, x: &Array, meta: &Meta) -> Array {
    let kind = match op.kind {
        ScanKind::Sum => ReduceKind::Sum,
        ScanKind::Prod => ReduceKind::Prod,
        ScanKind::Max => ReduceKind::Max,
    };
    Array::from_fn(&x.dims, meta.dtype, |index| {
        let n = x.dims[op.axis];
        let range: Vec<usize> =
            if op.reverse { (index[op.axis]..n).rev().collect() } else { (0..=index[op.axis]).collect() };
        let cells: Vec<Cell> = range
            .into_iter()
            .map(|i| {
                let mut at = index.clone();
                at[op.axis] = i;
                x.at(&at)
            })
            .collect();
        fold(bounds, kind, &cells, meta.dtype)
    })
}
