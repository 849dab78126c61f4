//! The position of the extremum along an axis: of equals the first, NaN above all.

use tensor_core::op::ArgReduce;
use tensor_core::{Meta, Result, Storages, Tensor};

use super::dense::dense;
use super::lanes::Lanes;
use super::number::Arithmetic;
use crate::eval::Stored;
use crate::{Context, for_dtype, threads};

#[cfg(test)]
mod tests;

/// One position per lane.
pub(crate) fn run(op: &ArgReduce, inputs: &[&Tensor], outputs: &[Meta], cx: &Context<'_>) -> Result<Storages> {
    let lanes = Lanes::new(inputs[0].dims(), op.axis);
    let mut out = cx.output(&outputs[0])?;
    for_dtype!(inputs[0].dtype(), T => {
        let x = dense::<T>(inputs[0], cx)?;
        let rows_per_piece = (16_384 / lanes.slice().max(1)).max(1);
        let pieces = out.slice_mut::<i64>().chunks_mut(rows_per_piece * lanes.inner.max(1)).enumerate();
        threads::for_each(x.len(), pieces, |(i, piece)| {
            let x = &x[i * rows_per_piece * lanes.slice()..];
            for (row, out) in piece.chunks_mut(lanes.inner.max(1)).enumerate() {
                arg_rows::<T>(&x[row * lanes.slice()..][..lanes.slice()], &lanes, op.max, out);
            }
        });
    });
    Ok(out.into_storages())
}

/// The lanes of one outer slice side by side.
fn arg_rows<T: Stored>(x: &[T], lanes: &Lanes, max: bool, out: &mut [i64])
where
    T::Lane: Arithmetic,
{
    let beats = |a: T::Lane, b: T::Lane| {
        if a.is_nan() {
            !b.is_nan()
        } else if max {
            a > b
        } else {
            a < b
        }
    };
    let mut best: Vec<T::Lane> = x[..lanes.inner].iter().map(|&v| v.load()).collect();
    out.fill(0);
    for k in 1..lanes.n {
        let row = &x[k * lanes.inner..][..lanes.inner];
        for ((best, out), &v) in best.iter_mut().zip(&mut *out).zip(row) {
            let v = v.load();
            if beats(v, *best) {
                (*best, *out) = (v, k as i64);
            }
        }
    }
}
