//! Pooling over windows of the spatial axes, plane by plane.

use tensor_core::op::{AvgPoolGrad, Pool, PoolKind, Window};
use tensor_core::{Meta, Result, Storages, Tensor};

use super::dense::dense;
use super::number::{Arithmetic, Float, for_float};
use crate::eval::Stored;
use crate::simd::{self, Kernel};
use crate::{Context, for_dtype, threads};

#[cfg(test)]
mod tests;

/// Maxima with their positions, or averages.
pub(crate) fn run(op: &Pool, inputs: &[&Tensor], outputs: &[Meta], cx: &Context<'_>) -> Result<Storages> {
    let x = inputs[0];
    let planes = Planes::new(&x.dims()[2..], &outputs[0].shape[2..]);
    let mut values = cx.output(&outputs[0])?;
    if let PoolKind::Avg { count_padding } = op.kind {
        let windows = Windows::new(op, &planes);
        for_float!(x.dtype(), T => {
            let x = dense::<T>(x, cx)?;
            let pieces = planes.pieces(values.slice_mut::<T>(), &x);
            threads::for_each(windows.work_ns(outputs[0].shape.len()), pieces, |(out, x)| {
                average::<T>(&windows, count_padding, x, out);
            });
        });
        return Ok(values.into_storages());
    }
    let mut positions = cx.output(&outputs[1])?;
    let windows = Windows::new(op, &planes);
    for_dtype!(x.dtype(), T => {
        let x = dense::<T>(x, cx)?;
        let pieces = planes.pieces(values.slice_mut::<T>(), &x).zip(positions.slice_mut::<i32>().chunks_mut(planes.out.max(1)));
        threads::for_each(windows.work_ns(outputs[0].shape.len()), pieces, |((out, x), positions)| {
            match windows.pairs {
                Some((rows, columns)) => simd::run(MaxPairs::<T> { x, columns, rows, out, positions }),
                None => maximum::<T>(&windows, x, out, positions),
            }
        });
    });
    Ok(Storages::from_iter([values.into_storage(), positions.into_storage()]))
}

/// Gradients spread evenly over their windows.
pub(crate) fn avg_pool_grad(
    op: &AvgPoolGrad,
    inputs: &[&Tensor],
    outputs: &[Meta],
    cx: &Context<'_>,
) -> Result<Storages> {
    let g = inputs[0];
    let planes = Planes::new(&op.spatial, &g.dims()[2..]);
    let windows = Windows::new(&op.pool, &planes);
    let count_padding = !matches!(op.pool.kind, PoolKind::Avg { count_padding: false });
    let mut out = cx.output(&outputs[0])?;
    for_float!(g.dtype(), T => {
        let g = dense::<T>(g, cx)?;
        let pieces = out.slice_mut::<T>().chunks_mut(planes.input.max(1)).zip(g.chunks(planes.out.max(1)));
        threads::for_each(windows.work_ns(g.len()), pieces, |(out, g)| spread::<T>(&windows, count_padding, g, out));
    });
    Ok(out.into_storages())
}

/// The sizes of one channel's plane before and after.
struct Planes<'a> {
    input_dims: &'a [usize],
    out_dims: &'a [usize],
    input: usize,
    out: usize,
}

impl<'a> Planes<'a> {
    fn new(input_dims: &'a [usize], out_dims: &'a [usize]) -> Self {
        Self { input_dims, out_dims, input: input_dims.iter().product(), out: out_dims.iter().product() }
    }

    /// Each output plane with its input plane.
    fn pieces<'b, T>(&self, out: &'b mut [T], x: &'b [T]) -> impl Iterator<Item = (&'b mut [T], &'b [T])> + use<'b, T> {
        out.chunks_mut(self.out.max(1)).zip(x.chunks(self.input.max(1)))
    }
}

/// Which elements of an input plane each output element looks at, worked out once for all planes.
struct Windows {
    /// For output element i, `taps[ends[i − 1]..ends[i]]`: positions in the plane, row-major.
    taps: Vec<u32>,
    ends: Vec<usize>,
    kernel: usize,
    /// Rows and columns of the output, where the windows are 2×2 squares side by side without padding.
    pairs: Option<(usize, usize)>,
}

impl Windows {
    fn new(op: &Pool, planes: &Planes<'_>) -> Self {
        let kernel = op.kernel.iter().product();
        let Window { stride, before, dilation, .. } = &op.window;
        let is_pairs =
            op.kernel[..] == [2, 2] && stride[..] == [2, 2] && before[..] == [0, 0] && dilation[..] == [1, 1];
        if is_pairs && op.kind == PoolKind::Max && planes.input_dims[1].is_multiple_of(2) {
            let pairs = Some((planes.out_dims[0], planes.out_dims[1]));
            return Self { taps: Vec::new(), ends: Vec::new(), kernel, pairs };
        }
        let (mut taps, mut ends) = (Vec::with_capacity(planes.out * kernel), Vec::with_capacity(planes.out));
        let mut at = vec![0usize; planes.out_dims.len()];
        for _ in 0..planes.out {
            push_taps(op, &at, planes.input_dims, 0, 0, &mut taps);
            ends.push(taps.len());
            for a in (0..at.len()).rev() {
                at[a] += 1;
                if at[a] < planes.out_dims[a] {
                    break;
                }
                at[a] = 0;
            }
        }
        Self { taps, ends, kernel, pairs: None }
    }

    fn of(&self, i: usize) -> &[u32] {
        let start = if i == 0 { 0 } else { self.ends[i - 1] };
        &self.taps[start..self.ends[i]]
    }

    fn divisor(&self, i: usize, count_padding: bool) -> usize {
        if count_padding { self.kernel } else { self.of(i).len() }
    }

    fn work_ns(&self, n_outputs: usize) -> usize {
        if self.pairs.is_some() { n_outputs } else { n_outputs * self.kernel }
    }
}

/// The taps of the window at `at` from `axis` inward, `base` the position so far.
fn push_taps(op: &Pool, at: &[usize], dims: &[usize], axis: usize, base: usize, taps: &mut Vec<u32>) {
    if axis == dims.len() {
        taps.push(base as u32);
        return;
    }
    let (start, before) = (at[axis] * op.window.stride[axis], op.window.before[axis]);
    let dilation = op.window.dilation[axis];
    // The first tap behind the padding before, and the first one past the input: kernels may be far larger than it.
    let first = before.saturating_sub(start).div_ceil(dilation);
    let end = (before + dims[axis]).saturating_sub(start).div_ceil(dilation).min(op.kernel[axis]);
    for tap in first..end {
        push_taps(op, at, dims, axis + 1, base * dims[axis] + start + tap * dilation - before, taps);
    }
}

fn maximum<T: Stored>(windows: &Windows, x: &[T], out: &mut [T], positions: &mut [i32])
where
    T::Lane: Arithmetic,
{
    for (i, (out, position)) in out.iter_mut().zip(positions).enumerate() {
        let taps = windows.of(i);
        let mut best = taps[0];
        for &tap in &taps[1..] {
            let (v, top) = (x[tap as usize].load(), x[best as usize].load());
            if v > top || (v.is_nan() && !top.is_nan()) {
                best = tap;
            }
        }
        (*out, *position) = (x[best as usize], best as i32);
    }
}

/// 2×2 windows side by side: the commonest pool.
struct MaxPairs<'a, T> {
    x: &'a [T],
    rows: usize,
    columns: usize,
    out: &'a mut [T],
    positions: &'a mut [i32],
}

impl<T: Stored> Kernel for MaxPairs<'_, T>
where
    T::Lane: Arithmetic,
{
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Self { x, rows, columns, out, positions } = self;
        let width = 2 * columns;
        // Whole vectors, and what they leave over as one more that overlaps them.
        let rest = if columns % REST == 0 { columns } else { columns.saturating_sub(REST) };
        for part in [0..columns - columns % REST, rest..columns] {
            for r in 0..rows {
                let (upper, lower) = x[2 * r * width..2 * (r + 1) * width].split_at(width);
                let taps = 2 * part.start..2 * part.end;
                let to = r * columns + part.start..r * columns + part.end;
                let first = 2 * (r * width + part.start);
                let (out, positions) = (&mut out[to.clone()], &mut positions[to]);
                max_pairs(&upper[taps.clone()], &lower[taps], (first as i32, width as i32), out, positions);
            }
        }
    }
}

/// Outputs that a vector of any level has.
const REST: usize = 4;

/// A row of maxima; `upper` begins at position `first` of the plane, `lower` a `width` further on.
#[inline(always)]
fn max_pairs<T: Stored>(upper: &[T], lower: &[T], (first, width): (i32, i32), out: &mut [T], positions: &mut [i32])
where
    T::Lane: Arithmetic,
{
    let better = |a: (T, i32), b: (T, i32)| {
        // Greater, or the first that is not a number.
        let wins = !(b.0.load() <= a.0.load()) & !a.0.load().is_nan();
        (if wins { b.0 } else { a.0 }, if wins { b.1 } else { a.1 })
    };
    let quads = upper.chunks_exact(2).zip(lower.chunks_exact(2));
    for (i, ((upper, lower), (out, position))) in (0..).zip(quads.zip(out.iter_mut().zip(positions))) {
        let upper = better((upper[0], 0), (upper[1], 1));
        let lower = better((lower[0], width), (lower[1], width + 1));
        let (value, offset) = better(upper, lower);
        (*out, *position) = (value, first + 2 * i + offset);
    }
}

fn average<T: Stored>(windows: &Windows, count_padding: bool, x: &[T], out: &mut [T])
where
    T::Lane: Float,
{
    for (i, out) in out.iter_mut().enumerate() {
        let sum = windows.of(i).iter().fold(0.0, |sum, &tap| sum + x[tap as usize].load().to_total());
        *out = T::store(T::Lane::from_total(sum / windows.divisor(i, count_padding) as f64));
    }
}

fn spread<T: Stored>(windows: &Windows, count_padding: bool, g: &[T], out: &mut [T])
where
    T::Lane: Float,
{
    let mut sums = vec![0f64; out.len()];
    for (i, g) in g.iter().enumerate() {
        let share = g.load().to_total() / windows.divisor(i, count_padding) as f64;
        windows.of(i).iter().for_each(|&tap| sums[tap as usize] += share);
    }
    out.iter_mut().zip(sums).for_each(|(out, sum)| *out = T::store(T::Lane::from_total(sum)));
}
