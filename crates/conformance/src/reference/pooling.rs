//! Pooling as the definition says it.

use tensor_core::expr::{Algebra, Binary, Bounded, Bounds, Value};
use tensor_core::op::{AvgPoolGrad, Pool, PoolKind};
use tensor_core::{DType, Meta};

use super::array::{Array, Cell, indices};
use super::convolution::source;
use super::fold::sum;
use super::real;

/// The input positions of a window that are not padding, in row-major order.
fn window(op: &Pool, output: &[usize], input: &[usize]) -> Vec<Vec<usize>> {
    indices(&op.kernel).filter_map(|tap| source(&op.window, output, &tap, input)).collect()
}

fn divisor(op: &Pool, n_taps: usize) -> f64 {
    match op.kind {
        PoolKind::Avg { count_padding: false } => n_taps as f64,
        PoolKind::Avg { count_padding: true } | PoolKind::Max => op.kernel.iter().product::<usize>() as f64,
    }
}

fn divided(bounds: &Bounds, x: Bounded, divisor: f64, dtype: DType) -> Bounded {
    // A backend may multiply by the reciprocal: one more rounding.
    let quotient = bounds.binary(Binary::Div, x, Bounds::exact(divisor), dtype.compute());
    bounds.rounded(quotient, 0.5, dtype.compute())
}

/// Values, and for the maximum their positions in the plane.
pub(super) fn pool(bounds: &Bounds, op: &Pool, x: &Array, outputs: &[Meta]) -> Vec<Array> {
    let spatial = &x.dims[2..];
    let at = |index: &[usize], position: &[usize]| -> Cell {
        let full: Vec<usize> = index[..2].iter().chain(position).copied().collect();
        x.at(&full)
    };
    if let PoolKind::Avg { .. } = op.kind {
        return vec![Array::from_fn(&outputs[0].shape, x.dtype, |index| {
            let taps = window(op, &index[2..], spatial);
            let terms: Vec<Bounded> = taps.iter().map(|p| real(at(&index, p))).collect();
            Value::Real(divided(bounds, sum(&terms, x.dtype), divisor(op, taps.len()), x.dtype))
        })];
    }
    let best: Vec<(Cell, i64)> = indices(&outputs[0].shape)
        .map(|index| {
            let mut best: Option<(Cell, i64)> = None;
            for position in window(op, &index[2..], spatial) {
                let cell = at(&index, &position);
                let flat = position.iter().zip(spatial).fold(0, |flat, (&i, &n)| flat * n + i);
                if best.is_none_or(|(top, _)| is_above(cell, top)) {
                    best = Some((cell, flat as i64));
                }
            }
            best.expect("invariant: padding is at most half the kernel")
        })
        .collect();
    let array = |meta: &Meta, cells| Array { dims: meta.shape.to_vec(), dtype: meta.dtype, cells };
    vec![
        array(&outputs[0], best.iter().map(|b| b.0).collect()),
        array(&outputs[1], best.iter().map(|b| Value::Int(b.1)).collect()),
    ]
}

fn is_above(a: Cell, b: Cell) -> bool {
    match (a, b) {
        (Value::Int(a), Value::Int(b)) => a > b,
        _ => {
            let (a, b) = (real(a).value, real(b).value);
            a > b || (a.is_nan() && !b.is_nan())
        }
    }
}

/// Each gradient spread evenly over its window.
pub(super) fn avg_pool_grad(bounds: &Bounds, op: &AvgPoolGrad, g: &Array, meta: &Meta) -> Array {
    let mut terms: Vec<Vec<Bounded>> = vec![Vec::new(); meta.shape.len()];
    let shape = Array::from_fn(&meta.shape, meta.dtype, |_| super::exact(0.0));
    for index in indices(&g.dims) {
        let taps = window(&op.pool, &index[2..], &op.spatial);
        let share = divided(bounds, real(g.at(&index)), divisor(&op.pool, taps.len()), g.dtype);
        for position in taps {
            let full: Vec<usize> = index[..2].iter().chain(&position).copied().collect();
            terms[shape.position(&full)].push(share);
        }
    }
    let cells = terms.iter().map(|terms| Value::Real(sum(terms, meta.dtype))).collect();
    Array { cells, ..shape }
}
