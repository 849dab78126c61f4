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
        let slice = lanes.slice().max(1);
        let per_piece = (16_384 / slice).max(1) * slice;
        threads::for_each(x.len() * 2, out.slice_mut::<T>().chunks_mut(per_piece).enumerate(), |(i, out)| {
            let x = &x[i * per_piece..][..out.len()];
            for (x, out) in x.chunks(slice).zip(out.chunks_mut(slice)) {
                scan_slice::<T>(op, &lanes, x, out);
            }
        });
    });
    Ok(out.into_storages())
}

/// The lanes of one outer slice side by side.
fn scan_slice<T: Stored>(op: &Scan, lanes: &Lanes, x: &[T], out: &mut [T])
where
    T::Lane: Arithmetic,
{
    type Total<T> = <<T as Stored>::Lane as Arithmetic>::Total;
    let first = match op.kind {
        ScanKind::Sum => Total::<T>::ZERO,
        ScanKind::Prod => Total::<T>::ONE,
        ScanKind::Max => Total::<T>::LOWEST,
    };
    let mut totals = vec![first; lanes.inner];
    for k in 0..lanes.n {
        let k = if op.reverse { lanes.n - 1 - k } else { k };
        let rows = k * lanes.inner..(k + 1) * lanes.inner;
        for ((total, &v), out) in totals.iter_mut().zip(&x[rows.clone()]).zip(&mut out[rows]) {
            let v = v.load().to_total();
            *total = match op.kind {
                ScanKind::Sum => total.plus(v),
                ScanKind::Prod => total.times(v),
                ScanKind::Max => total.larger(v),
            };
            *out = T::store(T::Lane::from_total(*total));
        }
    }
}
