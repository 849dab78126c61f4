//! Running folds along an axis. Floats are carried in f64, so that long runs stay accurate; integers wrap.

use tensor_core::op::{Scan, ScanKind};
use tensor_core::{Meta, Result, Storages, Tensor};

use super::dense::dense;
use super::lanes::Lanes;
use super::number::Arithmetic;
use crate::eval::Stored;
use crate::{Context, for_dtype, threads};

#[cfg(test)]
mod tests;

/// The fold of everything up to each element.
pub(crate) fn run(op: &Scan, inputs: &[&Tensor], outputs: &[Meta], cx: &Context<'_>) -> Result<Storages> {
    let lanes = Lanes::new(inputs[0].dims(), op.axis);
    let mut out = cx.output(&outputs[0])?;
    for_dtype!(inputs[0].dtype(), T => {
        let x = dense::<T>(inputs[0], cx)?;
        match op.kind {
            ScanKind::Sum => scan::<T>(op, &lanes, &x, out.slice_mut(), Arithmetic::ZERO, Arithmetic::plus),
            ScanKind::Prod => scan::<T>(op, &lanes, &x, out.slice_mut(), Arithmetic::ONE, Arithmetic::times),
            ScanKind::Max => scan::<T>(op, &lanes, &x, out.slice_mut(), Arithmetic::LOWEST, Arithmetic::larger),
        }
    });
    Ok(out.into_storages())
}

type Total<T> = <<T as Stored>::Lane as Arithmetic>::Total;

fn scan<T: Stored>(
    op: &Scan,
    lanes: &Lanes,
    x: &[T],
    out: &mut [T],
    first: Total<T>,
    fold: impl Fn(Total<T>, Total<T>) -> Total<T> + Sync,
) where
    T::Lane: Arithmetic,
{
    if x.is_empty() {
        return;
    }
    let slice = lanes.slice();
    let per_piece = (16_384 / slice).max(1) * slice;
    threads::for_each(x.len() * 2, out.chunks_mut(per_piece).enumerate(), |(i, out)| {
        let x = &x[i * per_piece..][..out.len()];
        if lanes.inner == 1 {
            let rows = x.chunks(ROWS * slice).zip(out.chunks_mut(ROWS * slice));
            rows.for_each(|(x, out)| scan_rows(op.reverse, slice, x, out, first, &fold));
        } else {
            let slices = x.chunks(slice).zip(out.chunks_mut(slice));
            slices.for_each(|(x, out)| scan_columns(op.reverse, lanes, x, out, first, &fold));
        }
    });
}

/// Rows that are walked together: one alone would wait for each addition to end.
const ROWS: usize = 8;

fn scan_rows<T: Stored>(
    reverse: bool,
    n: usize,
    x: &[T],
    out: &mut [T],
    first: Total<T>,
    fold: impl Fn(Total<T>, Total<T>) -> Total<T>,
) where
    T::Lane: Arithmetic,
{
    let mut totals = [first; ROWS];
    let totals = &mut totals[..x.len() / n];
    for k in 0..n {
        let k = if reverse { n - 1 - k } else { k };
        for (row, total) in totals.iter_mut().enumerate() {
            *total = fold(*total, x[row * n + k].load().to_total());
            out[row * n + k] = T::store(T::Lane::from_total(*total));
        }
    }
}

/// The lanes of one outer slice side by side.
fn scan_columns<T: Stored>(
    reverse: bool,
    lanes: &Lanes,
    x: &[T],
    out: &mut [T],
    first: Total<T>,
    fold: impl Fn(Total<T>, Total<T>) -> Total<T>,
) where
    T::Lane: Arithmetic,
{
    let mut totals = vec![first; lanes.inner];
    for k in 0..lanes.n {
        let k = if reverse { lanes.n - 1 - k } else { k };
        let row = k * lanes.inner..(k + 1) * lanes.inner;
        for ((total, &v), out) in totals.iter_mut().zip(&x[row.clone()]).zip(&mut out[row]) {
            *total = fold(*total, v.load().to_total());
            *out = T::store(T::Lane::from_total(*total));
        }
    }
}
