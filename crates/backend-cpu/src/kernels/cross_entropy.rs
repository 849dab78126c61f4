//! Cross-entropy of logits against class indices: −log_softmax at the target, one row at a time.

use tensor_core::{DType, Error, Meta, Result, Storages, Tensor, math};

use super::dense::dense;
use super::number::{Arithmetic, Float, for_float};
use super::softmax::{exponentials, max};
use crate::eval::{Stored, narrow, widen};
use crate::simd::{self, Kernel};
use crate::{Context, threads};

#[cfg(test)]
mod tests;

/// The loss of each row.
pub(crate) fn run(inputs: &[&Tensor], outputs: &[Meta], cx: &Context<'_>) -> Result<Storages> {
    let (logits, target) = (inputs[0], inputs[1]);
    let n_classes = logits.dims()[logits.rank() - 1];
    let targets = targets(target, n_classes, cx)?;
    let mut out = cx.output(&outputs[0])?;
    for_float!(logits.dtype(), T => {
        let x = dense::<T>(logits, cx)?;
        let rows_per_piece = (8192 / n_classes.max(1)).max(1);
        let pieces = out.slice_mut::<T>().chunks_mut(rows_per_piece).zip(targets.chunks(rows_per_piece)).enumerate();
        threads::for_each(x.len() * 2, pieces, |(i, (out, targets))| {
            rows::<T>(&x[i * rows_per_piece * n_classes..], targets, n_classes, out);
        });
    });
    Ok(out.into_storages())
}

fn targets(target: &Tensor, n_classes: usize, cx: &Context<'_>) -> Result<Vec<usize>> {
    let check = |i: i64| {
        usize::try_from(i).ok().filter(|&i| i < n_classes).ok_or_else(|| {
            Error::index(
                "cross_entropy",
                format!("target is out of range: target {i}, classes {n_classes}; classes count from 0"),
            )
        })
    };
    match target.dtype() {
        DType::I32 => dense::<i32>(target, cx)?.iter().map(|&i| check(i.into())).collect(),
        _ => dense::<i64>(target, cx)?.iter().map(|&i| check(i)).collect(),
    }
}

fn rows<T: Stored>(x: &[T], targets: &[usize], n: usize, out: &mut [T])
where
    T::Lane: Float,
{
    let x = &x[..targets.len() * n];
    let mut scratch = vec![T::Lane::ZERO; n + targets.len()];
    let (exps, losses) = scratch.split_at_mut(n);
    if size_of::<T>() == size_of::<T::Lane>() {
        simd::run(Losses { x: bytemuck::cast_slice::<T, T::Lane>(x), targets, exps, losses });
    } else {
        let mut wide = vec![T::Lane::ZERO; x.len()];
        widen(x, &mut wide);
        simd::run(Losses { x: &wide, targets, exps, losses });
    }
    narrow(losses, out);
}

struct Losses<'a, L> {
    x: &'a [L],
    targets: &'a [usize],
    /// Room for a row.
    exps: &'a mut [L],
    losses: &'a mut [L],
}

impl<L: Float> Kernel for Losses<'_, L> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let n = self.exps.len();
        for ((x, &target), loss) in self.x.chunks_exact(n).zip(self.targets).zip(self.losses) {
            let top = max(x);
            let sum = exponentials(x, top, self.exps);
            *loss = math::ln(sum) - (x[target] - top);
        }
    }
}
