//! Softmax along an axis, or its logarithm: maximum, exponentials with their sum, scaling; a row stays in cache.

use tensor_core::op::Softmax;
use tensor_core::{Meta, Result, Storages, Tensor, math};

use super::dense::dense;
use super::lanes::Lanes;
use super::number::{Arithmetic, Float, by_halves, for_float};
use crate::eval::{Stored, narrow, widen};
use crate::simd::{self, Kernel};
use crate::{Context, threads};

#[cfg(test)]
mod tests;

/// Elements that one piece of spread work makes.
const PIECE: usize = 8192;
/// Running sums side by side, added up in a fixed order.
pub(super) const SIDES: usize = 16;

/// Each lane its softmax.
pub(crate) fn run(op: &Softmax, inputs: &[&Tensor], outputs: &[Meta], cx: &Context<'_>) -> Result<Storages> {
    let lanes = Lanes::new(inputs[0].dims(), op.axis);
    let mut out = cx.output(&outputs[0])?;
    for_float!(inputs[0].dtype(), T => {
        let x = dense::<T>(inputs[0], cx)?;
        let slice = lanes.slice().max(1);
        let per_piece = (PIECE / slice).max(1) * slice;
        let pieces = out.slice_mut::<T>().chunks_mut(per_piece).zip(x.chunks(per_piece));
        threads::for_each(x.len() * 2, pieces, |(out, x)| piece::<T>(&lanes, op.log, x, out));
    });
    Ok(out.into_storages())
}

/// Some outer slices.
fn piece<T: Stored>(lanes: &Lanes, log: bool, x: &[T], out: &mut [T])
where
    T::Lane: Float,
{
    if size_of::<T>() == size_of::<T::Lane>() {
        // The type is its own lane.
        simd::run(Slices { lanes, log, x: bytemuck::cast_slice::<T, T::Lane>(x), out: bytemuck::cast_slice_mut(out) });
        return;
    }
    let mut wide = vec![T::Lane::ZERO; x.len()];
    let mut result = wide.clone();
    widen(x, &mut wide);
    simd::run(Slices { lanes, log, x: &wide, out: &mut result });
    narrow(&result, out);
}

struct Slices<'a, L> {
    lanes: &'a Lanes,
    log: bool,
    x: &'a [L],
    out: &'a mut [L],
}

impl<L: Float> Kernel for Slices<'_, L> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let slice = self.lanes.slice().max(1);
        for (x, out) in self.x.chunks(slice).zip(self.out.chunks_mut(slice)) {
            if self.lanes.inner == 1 { row(x, out, self.log) } else { columns(x, out, self.lanes, self.log) }
        }
    }
}

/// The largest; NaN if any is.
#[inline(always)]
pub(super) fn max<L: Arithmetic>(x: &[L]) -> L {
    let mut sides = [L::LOWEST; SIDES];
    let (chunks, rest) = x.as_chunks::<SIDES>();
    for chunk in chunks {
        for (side, &v) in sides.iter_mut().zip(chunk) {
            *side = side.larger(v);
        }
    }
    sides.iter_mut().zip(rest).for_each(|(side, &v)| *side = side.larger(v));
    by_halves(sides, L::larger)
}

/// e^(x − shift). What vanishes, as behind a mask, is not computed: underflow takes processors a hundred times as long.
#[inline(always)]
pub(super) fn exponential<L: Float>(x: L, shift: L) -> L {
    let below = x - shift;
    let vanishes = below < L::constant(if size_of::<L>() == 4 { -104.0 } else { -746.0 });
    let e = math::exp(if vanishes { L::ZERO } else { below });
    if vanishes { L::ZERO } else { e }
}

/// Σ e^(x − shift), each term also put into `out`. Long sums are added up in f64.
#[inline(always)]
pub(super) fn exponentials<L: Float>(x: &[L], shift: L, out: &mut [L]) -> L {
    let mut sum = 0.0;
    for (x, out) in x.chunks(256 * SIDES).zip(out.chunks_mut(256 * SIDES)) {
        let mut sides = [L::ZERO; SIDES];
        let ((chunks, rest), (outs, out_rest)) = (x.as_chunks::<SIDES>(), out.as_chunks_mut::<SIDES>());
        for (chunk, out) in chunks.iter().zip(outs) {
            for ((side, out), &x) in sides.iter_mut().zip(out).zip(chunk) {
                *out = exponential(x, shift);
                *side = side.plus(*out);
            }
        }
        if !rest.is_empty() {
            // As many more as make a chunk: whole vectors are faster than single elements.
            let mut chunk = [shift; SIDES];
            chunk[..rest.len()].copy_from_slice(rest);
            chunk.iter_mut().for_each(|x| *x = exponential(*x, shift));
            out_rest.copy_from_slice(&chunk[..rest.len()]);
            sides.iter_mut().zip(&*out_rest).for_each(|(side, &e)| *side = side.plus(e));
        }
        sum += by_halves(sides, L::plus).to_total();
    }
    L::from_total(sum)
}

#[inline(always)]
fn row<L: Float>(x: &[L], out: &mut [L], log: bool) {
    let top = max(x);
    let sum = exponentials(x, top, out);
    if log {
        let ln = math::ln(sum);
        out.iter_mut().zip(x).for_each(|(out, &x)| *out = (x - top) - ln);
    } else {
        out.iter_mut().for_each(|out| *out = *out / sum);
    }
}

/// The lanes of one outer slice side by side.
#[inline(always)]
fn columns<L: Float>(x: &[L], out: &mut [L], lanes: &Lanes, log: bool) {
    let inner = lanes.inner;
    let mut top = vec![L::LOWEST; inner];
    for x in x.chunks_exact(inner) {
        top.iter_mut().zip(x).for_each(|(top, &v)| *top = top.larger(v));
    }
    // Long columns are added up in f64.
    let mut sum = vec![0f64; inner];
    for (x, out) in x.chunks_exact(inner).zip(out.chunks_exact_mut(inner)) {
        for (((out, &x), &top), sum) in out.iter_mut().zip(x).zip(&top).zip(&mut sum) {
            *out = exponential(x, top);
            *sum += out.to_total();
        }
    }
    let mut sum: Vec<L> = sum.into_iter().map(L::from_total).collect();
    if log {
        sum.iter_mut().for_each(|sum| *sum = math::ln(*sum));
        for (x, out) in x.chunks_exact(inner).zip(out.chunks_exact_mut(inner)) {
            for (((out, &x), &top), &ln) in out.iter_mut().zip(x).zip(&top).zip(&sum) {
                *out = (x - top) - ln;
            }
        }
    } else {
        for out in out.chunks_exact_mut(inner) {
            out.iter_mut().zip(&sum).for_each(|(out, &sum)| *out = *out / sum);
        }
    }
}
