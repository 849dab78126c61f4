//! Convolution and its input gradient: weights times shifted planes, tile by tile.

use std::borrow::Cow;
use std::ops::Range;

use smallvec::SmallVec;
use tensor_core::{Result, Tensor};

use super::Sizes;
use super::planes::{PerAxis, Planes, dot, indices, row_major};
use crate::eval::{Bound, Stored};
use crate::kernels::number::Float;
use crate::simd::{Lhs, Product, Rows};
use crate::{Context, threads};

/// A stretch of results: columns from `column` on go to `to`, `to + step`, … within a channel's plane.
#[derive(Clone, Copy, Debug)]
struct Run {
    column: usize,
    to: usize,
    len: usize,
    step: usize,
}

/// Results that read the same taps: all of a convolution's, or those of one remainder by the stride of its gradient's.
pub(super) struct Pass<'w, L: Clone> {
    /// [groups, rows, reads]: what every result of a group's channel multiplies.
    weights: Cow<'w, [L]>,
    /// What is read for the first column of a group, in order of the weights.
    reads: Rows,
    n_columns: usize,
    runs: Vec<Run>,
}

impl<'w, L: Clone> Pass<'w, L> {
    /// Results at `first[i] + j·step[i]` for j below `counts[i]` along each axis, in planes of `sizes`.
    pub(super) fn new(
        weights: Cow<'w, [L]>,
        reads: Rows,
        planes: &Planes,
        sizes: &[usize],
        first: &[usize],
        step: &[usize],
        counts: &[usize],
    ) -> Self {
        let last = counts.len() - 1;
        let n_columns = if counts.contains(&0) {
            0
        } else {
            counts.iter().zip(&planes.strides).map(|(&n, stride)| (n - 1) * stride).sum::<usize>() + 1
        };
        let strides = row_major(sizes.iter().copied());
        let runs = indices(&counts[..last]).map(|index| {
            let place: PerAxis = index.iter().zip(first).zip(step).map(|((j, first), step)| first + j * step).collect();
            Run {
                column: dot(&index, &planes.strides),
                to: dot(&place, &strides) + first[last],
                len: counts[last],
                step: step[last],
            }
        });
        let runs = if n_columns == 0 { Vec::new() } else { runs.collect() };
        Self { weights, reads, n_columns, runs }
    }
}

/// Everything about an op but its operands.
pub(super) struct Correlation<'w, L: Clone> {
    pub(super) planes: Planes,
    pub(super) passes: Vec<Pass<'w, L>>,
    pub(super) sizes: Sizes,
    /// Images that are taken together, so that small planes fill tiles.
    pub(super) n_together: usize,
}

/// Columns that make it worth to start a tile.
const ENOUGH_COLUMNS: usize = 192;

/// How many images to take together, for planes of so many elements.
pub(super) fn n_together(n_images: usize, plane: usize) -> usize {
    ENOUGH_COLUMNS.div_ceil(plane.max(1)).min(n_images / (2 * threads::n_threads())).max(1)
}

/// What one thread does: all channels of some images, or some channels of one.
struct Task<'a, T> {
    first_image: usize,
    n_images: usize,
    groups: Range<usize>,
    /// Results of each group.
    rows: Range<usize>,
    out: &'a mut [T],
}

impl<L: Float + Product> Correlation<'_, L> {
    pub(super) fn run<T: Stored<Lane = L>>(
        &self,
        x: &Tensor,
        out: &mut [T],
        epilogue: Option<&Bound<'_>>,
        cx: &Context<'_>,
    ) -> Result<()> {
        let Sizes { n_images, groups, rows, plane, .. } = self.sizes;
        if out.is_empty() {
            return Ok(());
        }
        let work: usize = self.passes.iter().map(|pass| pass.n_columns * (pass.reads.len() + 16)).sum();
        let work = n_images * groups * rows * work * size_of::<L>() / 300;
        let n_together = self.n_together;
        // Few images: their channels are shared out, each thread copying the planes that it needs.
        let n_units = if groups > 1 { groups } else { rows.div_ceil(L::tile().rows) };
        let wanted = if threads::is_worthwhile(work) { 2 * threads::n_threads() } else { 1 };
        let n_parts = if n_together > 1 { 1 } else { wanted.div_ceil(n_images).min(n_units) };
        let mut tasks = Vec::with_capacity(n_images.div_ceil(n_together) * n_parts);
        for (i, mut out) in out.chunks_mut(n_together * groups * rows * plane).enumerate() {
            let n_images = out.len() / (groups * rows * plane);
            for part in 0..n_parts {
                let share = |n: usize| n * part / n_parts..n * (part + 1) / n_parts;
                let (groups, rows) = if groups > 1 { (share(groups), 0..rows) } else { (0..1, share(rows)) };
                let (head, tail) = out.split_at_mut(n_images * groups.len() * rows.len() * plane);
                tasks.push(Task { first_image: i * n_together, n_images, groups, rows, out: head });
                out = tail;
            }
        }
        threads::try_for_each(work, tasks.into_iter(), |task| self.images(x, task, epilogue, cx))
    }

    fn images<T: Stored<Lane = L>>(
        &self,
        x: &Tensor,
        task: Task<'_, T>,
        epilogue: Option<&Bound<'_>>,
        cx: &Context<'_>,
    ) -> Result<()> {
        let Task { first_image, n_images, ref groups, ref rows, out } = task;
        let Sizes { channels, plane, .. } = self.sizes;
        let planes = &self.planes;
        // [channel, phase, image, plane]; tiles read a little past the end, and start within even where there is no channel.
        let apart = self.n_together * planes.size;
        let per_channel = planes.n_phases * apart;
        let mut packed = cx.take::<L>((groups.len() * channels).max(1) * per_channel + L::tile().cols)?;
        let packed: &mut [L] = packed.slice_mut();
        for channel in 0..groups.len() * channels {
            for image in 0..n_images {
                let to = &mut packed[channel * per_channel + image * planes.size..];
                planes.pack::<T>(x, first_image + image, groups.start * channels + channel, apart, to);
            }
        }
        let per_image = groups.len() * rows.len() * plane;
        for (g, group) in groups.clone().enumerate() {
            let packed = &packed[g * channels * per_channel..];
            let out = &mut out[g * rows.len() * plane..];
            for pass in &self.passes {
                self.tiles(pass, group, rows.clone(), n_images, packed, per_image, out);
            }
        }
        if let Some(epilogue) = epilogue {
            let first_row =
                first_image * self.sizes.groups * self.sizes.rows + groups.start * self.sizes.rows + rows.start;
            epilogue.worker().fill(first_row * plane, out);
        }
        Ok(())
    }

    /// One group's results of one pass.
    fn tiles<T: Stored<Lane = L>>(
        &self,
        pass: &Pass<'_, L>,
        group: usize,
        rows: Range<usize>,
        n_images: usize,
        packed: &[L],
        per_image: usize,
        out: &mut [T],
    ) {
        let tile = L::tile();
        let (n_reads, plane) = (pass.reads.len(), self.sizes.plane);
        let n_columns = if pass.n_columns == 0 { 0 } else { (n_images - 1) * self.planes.size + pass.n_columns };
        let mut results = [L::ZERO; 8 * 48];
        let n_panels = rows.len().div_ceil(tile.rows);
        for panel in 0..n_panels {
            let first_row = rows.len() * panel / n_panels;
            let m = rows.len() * (panel + 1) / n_panels - first_row;
            let weights = &pass.weights[(group * self.sizes.rows + rows.start + first_row) * n_reads..];
            let lhs = Lhs { data: weights, row: n_reads, step: 1 };
            let mut runs = Runs { pass, plane_size: self.planes.size, per_image, image: 0, next: 0 };
            for column in (0..n_columns).step_by(tile.cols) {
                let width = tile.cols.min(n_columns - column);
                let padded = width.next_multiple_of(tile.lanes);
                L::product(m, padded, lhs, &pass.reads, &packed[column..], &mut results, padded, false);
                runs.within(column, width, n_images, |run, skip, len| {
                    for (row, results) in results.chunks_exact(padded).take(m).enumerate() {
                        let from = &results[skip..skip + len];
                        let to = &mut out[(first_row + row) * plane + run.to..];
                        if run.step == 1 {
                            to[..len].iter_mut().zip(from).for_each(|(to, &from)| *to = T::store(from));
                        } else {
                            to.iter_mut().step_by(run.step).zip(from).for_each(|(to, &from)| *to = T::store(from));
                        }
                    }
                });
            }
        }
    }
}

/// Walks the runs of all images of a task alongside the columns.
struct Runs<'a, L: Clone> {
    pass: &'a Pass<'a, L>,
    plane_size: usize,
    per_image: usize,
    image: usize,
    next: usize,
}

impl<L: Clone> Runs<'_, L> {
    /// Calls `f` with every part of a run in columns `first..first + n`: where it goes, its first column of these, its
    /// length.
    fn within(&mut self, first: usize, n: usize, n_images: usize, mut f: impl FnMut(Run, usize, usize)) {
        while self.image < n_images {
            let run = self.pass.runs[self.next];
            let column = self.image * self.plane_size + run.column;
            let (start, end) = (column.max(first), (column + run.len).min(first + n));
            if start < end {
                let to = self.image * self.per_image + run.to + (start - column) * run.step;
                f(Run { to, ..run }, start - first, end - start);
            }
            if column + run.len > first + n {
                return;
            }
            self.next += 1;
            if self.next == self.pass.runs.len() {
                self.next = 0;
                self.image += 1;
            }
        }
    }
}

/// Row-major weights [groups · n_out, n_in, taps] with the two channel axes exchanged within each group, for some of
/// the taps: [groups, n_in, n_out · taps].
pub(super) fn exchanged<L: Float>(
    w: &[L],
    groups: usize,
    n_out: usize,
    n_in: usize,
    n_taps: usize,
    taps: &[usize],
) -> Vec<L> {
    let mut exchanged = Vec::with_capacity(groups * n_in * n_out * taps.len());
    for group in 0..groups {
        for i in 0..n_in {
            for o in 0..n_out {
                let from = &w[((group * n_out + o) * n_in + i) * n_taps..][..n_taps];
                exchanged.extend(taps.iter().map(|&tap| from[tap]));
            }
        }
    }
    exchanged
}

/// Offsets of all reads: those of the taps in the planes of every channel.
pub(super) fn reads(channels: usize, per_channel: usize, taps: &[usize]) -> Rows {
    let offsets: SmallVec<[usize; 32]> = taps.into();
    Rows::new((0..channels).flat_map(|channel| offsets.iter().map(move |at| channel * per_channel + at)).collect())
}
