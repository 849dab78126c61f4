//! Normalisation over groups of elements, and its adjoint.
//!
//! The input is seen as [outer, groups, inner]: a group is `outer` runs of `inner` elements. Layer norm has outer = 1,
//! batch norm inner = the image. Moments are taken in f64 in one pass, relative to the group's first element, so that
//! neither large values nor a large mean cost accuracy.

use tensor_core::op::{Normalize, NormalizeGrad};
use tensor_core::{Meta, Result, Storages, Support, Tensor};

use super::dense::dense;
use super::number::{Arithmetic, Float, by_halves, for_float};
use crate::eval::Stored;
use crate::simd::{self, Kernel};
use crate::{Context, threads};

#[cfg(test)]
mod tests;

/// Running sums side by side, added up in a fixed order.
const SIDES: usize = 8;

/// How the groups lie.
#[derive(Clone, Copy, Debug)]
struct Groups {
    outer: usize,
    n: usize,
    inner: usize,
}

/// The groups of a set of axes, if they are what this kernel takes: all axes before some, or from some on, or all but
/// a run of axes between.
fn groups(dims: &[usize], axes: &[usize]) -> Option<Groups> {
    let rank = dims.len();
    let kept: Vec<usize> = (0..rank).filter(|a| !axes.contains(a)).collect();
    let (first, end) = match (kept.first(), kept.last()) {
        (Some(&first), Some(&last)) if last + 1 - first == kept.len() => (first, last + 1),
        (None, None) => (0, 0),
        _ => return None,
    };
    let product = |dims: &[usize]| dims.iter().product();
    Some(Groups { outer: product(&dims[..first]), n: product(&dims[first..end]), inner: product(&dims[end..]) })
}

/// Whether the axes are ones that this kernel takes; the others are decomposed.
pub(crate) fn support(dims: &[usize], axes: &[usize]) -> Support {
    if groups(dims, axes).is_some() { Support::Native } else { Support::Decompose }
}

impl Groups {
    fn len(&self) -> f64 {
        (self.outer * self.inner) as f64
    }

    /// The runs of group `g` in row-major elements.
    fn runs<'a, T>(&self, x: &'a [T], g: usize) -> impl Iterator<Item = &'a [T]> + use<'a, T> {
        let (n, inner) = (self.n, self.inner);
        (0..self.outer).map(move |o| &x[(o * n + g) * inner..][..inner])
    }

    /// For every group two sums over `pair(g, run index)`; spread over threads by group.
    fn sums(&self, sum: impl Fn(usize) -> [f64; 2] + Sync) -> Vec<[f64; 2]> {
        let mut sums = vec![[0f64; 2]; self.n];
        let elements = self.outer * self.inner;
        let per_piece = (8192 / elements.max(1)).max(1);
        let work_ns = self.n * elements;
        threads::for_each(work_ns, sums.chunks_mut(per_piece).enumerate(), |(i, piece)| {
            piece.iter_mut().enumerate().for_each(|(k, out)| *out = sum(i * per_piece + k));
        });
        sums
    }

    /// Calls `f` with each run of a row-major output, its group, and where it begins; spread over threads.
    fn each_run<T: Send>(&self, out: &mut [T], f: impl Fn(&mut [T], usize, usize) + Sync) {
        let inner = self.inner.max(1);
        let runs_per_piece = (8192 / inner).max(1);
        let work_ns = out.len();
        let n = self.n;
        threads::for_each(work_ns, out.chunks_mut(runs_per_piece * inner).enumerate(), |(i, piece)| {
            for (k, run) in piece.chunks_mut(inner).enumerate() {
                let index = i * runs_per_piece + k;
                f(run, index % n, index * inner);
            }
        });
    }
}

/// y, rstd and, with `center`, mean.
pub(crate) fn run(op: &Normalize, inputs: &[&Tensor], outputs: &[Meta], cx: &Context<'_>) -> Result<Storages> {
    let groups = groups(inputs[0].dims(), &op.axes).expect("invariant: core decomposes the axes this kernel declines");
    let mut buffers = outputs.iter().map(|meta| cx.output(meta)).collect::<Result<Vec<_>>>()?;
    for_float!(inputs[0].dtype(), T => {
        let x = dense::<T>(inputs[0], cx)?;
        let moments = moments::<T>(&groups, &x, op);
        let store = |v: f64| T::store(<T as Stored>::Lane::from_total(v));
        let (y, rest) = buffers.split_first_mut().expect("invariant: an output");
        normalize::<T>(&groups, &x, &moments, y.slice_mut());
        for (k, buffer) in rest.iter_mut().enumerate() {
            // rstd, then the mean.
            buffer.slice_mut::<T>().iter_mut().zip(&moments).for_each(|(out, m)| *out = store(m[1 - k]));
        }
    });
    Ok(buffers.into_iter().map(|buffer| buffer.into_storage()).collect())
}

/// [mean, rstd] of every group.
fn moments<T: Stored>(groups: &Groups, x: &[T], op: &Normalize) -> Vec<[f64; 2]>
where
    T::Lane: Float,
{
    let n = groups.len();
    let mut moments = if groups.inner == 1 {
        column_sums(groups, x, op.center)
    } else {
        groups.sums(|g| {
            let shift = if op.center {
                groups.runs(x, g).next().and_then(|run| run.first()).map_or(0.0, |v| v.load().to_total())
            } else {
                0.0
            };
            let [mut sum, mut square] = [0.0; 2];
            for run in groups.runs(x, g) {
                let part = simd::run(Moments { x: run, shift });
                sum += part[0];
                square += part[1];
            }
            finish([sum, square], shift, n, op.center)
        })
    };
    for moment in &mut moments {
        let [mean, mean_square] = *moment;
        *moment = [if op.center { mean } else { 0.0 }, 1.0 / (mean_square.max(0.0) + op.epsilon).sqrt()];
        if mean_square.is_nan() {
            moment[1] = f64::NAN;
        }
    }
    moments
}

/// [mean, mean square], about the mean if centered, from the sums of what lies above a shift and of its squares.
fn finish([sum, square]: [f64; 2], shift: f64, n: f64, center: bool) -> [f64; 2] {
    let mean = sum / n;
    [shift + mean, square / n - if center { mean * mean } else { 0.0 }]
}

struct Moments<'a, T> {
    x: &'a [T],
    shift: f64,
}

impl<T: Stored> Kernel for Moments<'_, T>
where
    T::Lane: Float,
{
    type Output = [f64; 2];

    #[inline(always)]
    fn run(self) -> [f64; 2] {
        let (mut sums, mut squares) = ([0f64; SIDES], [0f64; SIDES]);
        let mut add = |side: usize, v: &T| {
            let d = v.load().to_total() - self.shift;
            sums[side] += d;
            squares[side] += d * d;
        };
        let (chunks, rest) = self.x.as_chunks::<SIDES>();
        rest.iter().enumerate().for_each(|(side, v)| add(side, v));
        for chunk in chunks {
            (0..SIDES).for_each(|side| add(side, &chunk[side]));
        }
        [by_halves(sums, f64::plus), by_halves(squares, f64::plus)]
    }
}

/// [mean, mean square] where a group is a column: rows are added to all groups at once.
fn column_sums<T: Stored>(groups: &Groups, x: &[T], center: bool) -> Vec<[f64; 2]>
where
    T::Lane: Float,
{
    let row = |o: usize| &x[o * groups.n..][..groups.n];
    let shifts: Vec<f64> = if center && groups.outer > 0 {
        row(0).iter().map(|v| v.load().to_total()).collect()
    } else {
        vec![0.0; groups.n]
    };
    let (mut sums, mut squares) = (vec![0f64; groups.n], vec![0f64; groups.n]);
    for o in 0..groups.outer {
        simd::run(AddRow { x: row(o), shifts: &shifts, sums: &mut sums, squares: &mut squares });
    }
    let n = groups.len();
    let sums = sums.into_iter().zip(squares);
    shifts.iter().zip(sums).map(|(&shift, (sum, square))| finish([sum, square], shift, n, center)).collect()
}

struct AddRow<'a, T> {
    x: &'a [T],
    shifts: &'a [f64],
    sums: &'a mut [f64],
    squares: &'a mut [f64],
}

impl<T: Stored> Kernel for AddRow<'_, T>
where
    T::Lane: Float,
{
    type Output = ();

    #[inline(always)]
    fn run(self) {
        for (((v, &shift), sum), square) in self.x.iter().zip(self.shifts).zip(self.sums).zip(self.squares) {
            let d = v.load().to_total() - shift;
            *sum += d;
            *square += d * d;
        }
    }
}

fn normalize<T: Stored>(groups: &Groups, x: &[T], moments: &[[f64; 2]], y: &mut [T])
where
    T::Lane: Float,
{
    let lane = |v: f64| T::Lane::from_total(v);
    if groups.inner == 1 {
        let means: Vec<T::Lane> = moments.iter().map(|m| lane(m[0])).collect();
        let rstds: Vec<T::Lane> = moments.iter().map(|m| lane(m[1])).collect();
        for (x, y) in x.chunks_exact(groups.n.max(1)).zip(y.chunks_exact_mut(groups.n.max(1))) {
            for (((y, x), &mean), &rstd) in y.iter_mut().zip(x).zip(&means).zip(&rstds) {
                *y = T::store((x.load() - mean) * rstd);
            }
        }
        return;
    }
    groups.each_run(y, |y, g, start| {
        let [mean, rstd] = moments[g].map(lane);
        simd::run(Scale::<T> { x: &x[start..][..y.len()], mean, rstd, y });
    });
}

struct Scale<'a, T: Stored> {
    x: &'a [T],
    mean: T::Lane,
    rstd: T::Lane,
    y: &'a mut [T],
}

impl<T: Stored> Kernel for Scale<'_, T>
where
    T::Lane: Float,
{
    type Output = ();

    #[inline(always)]
    fn run(self) {
        self.y.iter_mut().zip(self.x).for_each(|(y, x)| *y = T::store((x.load() - self.mean) * self.rstd));
    }
}

/// rstd·(g − mean(g) − y·mean(g·y)).
pub(crate) fn grad(op: &NormalizeGrad, inputs: &[&Tensor], outputs: &[Meta], cx: &Context<'_>) -> Result<Storages> {
    let groups = groups(inputs[0].dims(), &op.axes).expect("invariant: core decomposes the axes this kernel declines");
    let mut out = cx.output(&outputs[0])?;
    for_float!(inputs[0].dtype(), T => {
        let (g, y, rstd) = (dense::<T>(inputs[0], cx)?, dense::<T>(inputs[1], cx)?, dense::<T>(inputs[2], cx)?);
        let n = groups.len();
        let means = groups.sums(|group| {
            let mut sums = [0.0; 2];
            for (g, y) in groups.runs(&g, group).zip(groups.runs(&y, group)) {
                let part = simd::run(Products { g, y });
                sums = [sums[0] + part[0], sums[1] + part[1]];
            }
            [if op.center { sums[0] / n } else { 0.0 }, sums[1] / n]
        });
        groups.each_run(out.slice_mut::<T>(), |dx, group, start| {
            let [mean, slope] = means[group].map(<T as Stored>::Lane::from_total);
            let range = start..start + dx.len();
            simd::run(Adjoint::<T> { g: &g[range.clone()], y: &y[range], mean, slope, rstd: rstd[group].load(), dx });
        });
    });
    Ok(out.into_storages())
}

/// Σ g and Σ g·y of a run: in lanes over blocks, and the blocks in f64.
struct Products<'a, T> {
    g: &'a [T],
    y: &'a [T],
}

impl<T: Stored> Kernel for Products<'_, T>
where
    T::Lane: Float,
{
    type Output = [f64; 2];

    #[inline(always)]
    fn run(self) -> [f64; 2] {
        const BLOCK: usize = 2048;
        let mut totals = [0f64; 2];
        for (g, y) in self.g.chunks(BLOCK).zip(self.y.chunks(BLOCK)) {
            let mut lanes = [[T::Lane::ZERO; 2 * SIDES]; 2];
            let [sums, products] = &mut lanes;
            let ((g, g_rest), (y, y_rest)) = (g.as_chunks::<{ 2 * SIDES }>(), y.as_chunks::<{ 2 * SIDES }>());
            for (g, y) in g.iter().zip(y) {
                for (((sum, product), g), y) in sums.iter_mut().zip(&mut *products).zip(g).zip(y) {
                    *sum = sum.plus(g.load());
                    *product = product.plus(g.load().times(y.load()));
                }
            }
            for (((sum, product), g), y) in sums.iter_mut().zip(&mut *products).zip(g_rest).zip(y_rest) {
                *sum = sum.plus(g.load());
                *product = product.plus(g.load().times(y.load()));
            }
            for (total, lanes) in totals.iter_mut().zip(lanes) {
                *total += by_halves(lanes.map(Arithmetic::to_total), f64::plus);
            }
        }
        totals
    }
}

struct Adjoint<'a, T: Stored> {
    g: &'a [T],
    y: &'a [T],
    mean: T::Lane,
    slope: T::Lane,
    rstd: T::Lane,
    dx: &'a mut [T],
}

impl<T: Stored> Kernel for Adjoint<'_, T>
where
    T::Lane: Float,
{
    type Output = ();

    #[inline(always)]
    fn run(self) {
        for ((dx, g), y) in self.dx.iter_mut().zip(self.g).zip(self.y) {
            *dx = T::store(self.rstd * (g.load() - self.mean - y.load() * self.slope));
        }
    }
}
