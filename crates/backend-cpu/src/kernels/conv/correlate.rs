//! Convolution and its input gradient: weights times shifted planes, tile by tile.

use std::ops::Range;

use tensor_core::{Result, Tensor};

use super::planes::{PerAxis, Planes, dot, indices, row_major};
use super::{Sizes, direct};
use crate::eval::{Bound, Stored};
use crate::kernels::gemm::{MAX_ROWS, columns, panels};
use crate::kernels::number::Float;
use crate::simd::{Lhs, Offsets, Product, Rhs};
use crate::{Context, threads};

/// A stretch of results: columns from `column` on go to `to`, `to + step`, … within a channel's plane.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    pub(super) column: usize,
    pub(super) to: usize,
    pub(super) len: usize,
    pub(super) step: usize,
}

/// Taps of some channels: where the weights have them, and where the planes.
pub(super) struct Reads {
    weights: Offsets,
    pub(super) planes: Offsets,
}

/// Reads that are summed before the sums go to memory.
const MAX_DEPTH: usize = 1280;

/// The reads of all channels: `weights` and `planes` are a channel's, the next one's lie these strides on.
pub(super) fn reads(n_channels: usize, weights: (&[usize], usize), planes: (&[usize], usize)) -> Vec<Reads> {
    let per_block = (MAX_DEPTH / weights.0.len().max(1)).max(1);
    let blocks = (0..n_channels.max(1)).step_by(per_block).map(|first| {
        let channels = first..n_channels.min(first + per_block);
        let all = |(taps, stride): (&[usize], usize)| {
            Offsets::new(channels.clone().flat_map(|c| taps.iter().map(move |at| c * stride + at)).collect())
        };
        Reads { weights: all(weights), planes: all(planes) }
    });
    blocks.collect()
}

/// Results that read the same taps: all of a convolution's, or those of one remainder by the stride of its gradient's.
pub(super) struct Pass {
    /// What every result multiplies, in blocks.
    pub(super) reads: Vec<Reads>,
    pub(super) n_columns: usize,
    pub(super) runs: Vec<Run>,
}

impl Pass {
    /// Results at `first[i] + j·step[i]` for j below `counts[i]` along each axis, in planes of `sizes`.
    pub(super) fn new(
        reads: Vec<Reads>,
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
        Self { reads, n_columns, runs }
    }

    fn n_reads(&self) -> usize {
        self.reads.iter().map(|reads| reads.planes.len()).sum()
    }
}

/// Everything about an op but its operands.
pub(super) struct Correlation<'w, L> {
    pub(super) planes: Planes,
    pub(super) passes: Vec<Pass>,
    pub(super) sizes: Sizes,
    pub(super) weights: &'w [L],
    /// From the weights of a group, or of a result, to the next one's.
    pub(super) weight_strides: (usize, usize),
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
        let work: usize = self.passes.iter().map(|pass| pass.n_columns * (pass.n_reads() + 16)).sum();
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
        // Elements that are computed in as they are stored, one image at a time, in sums that wait for nothing.
        let is_plain = size_of::<T>() == size_of::<L>() && n_together == 1;
        let direct = match &self.passes[..] {
            [pass] if is_plain && pass.reads.len() == 1 => direct::tiles::<L>(pass),
            _ => None,
        };
        threads::try_for_each(work, tasks.into_iter(), |task| self.images(x, task, direct.as_deref(), epilogue, cx))
    }

    fn images<T: Stored<Lane = L>>(
        &self,
        x: &Tensor,
        task: Task<'_, T>,
        direct: Option<&[direct::Tile]>,
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
        // Sums of more reads than one block wait for the next.
        let waiting = self.passes.iter().filter(|pass| pass.reads.len() > 1).map(|pass| pass.n_columns).max();
        let waiting = waiting.map_or(0, |n| rows.len() * ((n_images - 1) * planes.size + n + 2 * L::tile().lanes));
        let mut waiting = cx.take::<L>(waiting)?;
        let place = Place { group: 0, rows: rows.clone(), n_images, per_image: groups.len() * rows.len() * plane };
        for (g, group) in groups.clone().enumerate() {
            let packed = &packed[g * channels * per_channel..];
            let out = &mut out[g * rows.len() * plane..];
            let place = Place { group, ..place.clone() };
            for pass in &self.passes {
                match direct {
                    Some(tiles) => self.direct(pass, tiles, &place, packed, bytemuck::cast_slice_mut(out)),
                    None => self.tiles(pass, &place, packed, waiting.slice_mut(), out),
                }
            }
        }
        if let Some(epilogue) = epilogue {
            let first_row =
                first_image * self.sizes.groups * self.sizes.rows + groups.start * self.sizes.rows + rows.start;
            epilogue.worker().fill(first_row * plane, out);
        }
        Ok(())
    }

    /// Where the weights of a place's results begin, from `first` on.
    pub(super) fn weight_rows(&self, place: &Place, first: usize) -> [usize; MAX_ROWS] {
        let (group_stride, row_stride) = self.weight_strides;
        std::array::from_fn(|i| place.group * group_stride + (place.rows.start + first + i) * row_stride)
    }

    pub(super) fn lhs<'a>(&'a self, reads: &'a Reads, rows: &'a [usize]) -> Lhs<'a, L> {
        Lhs { data: self.weights, rows, steps: &reads.weights }
    }

    /// One group's results of one pass.
    fn tiles<T: Stored<Lane = L>>(&self, pass: &Pass, place: &Place, packed: &[L], waiting: &mut [L], out: &mut [T]) {
        let tile = L::tile();
        let plane = self.sizes.plane;
        let n_columns = if pass.n_columns == 0 { 0 } else { (place.n_images - 1) * self.planes.size + pass.n_columns };
        let is_waiting = pass.reads.len() > 1;
        let waiting_row = n_columns.next_multiple_of(tile.lanes);
        let mut results = [L::ZERO; MAX_ROWS * MAX_COLS + CHUNK];
        for (block, reads) in pass.reads.iter().enumerate() {
            let is_last = block + 1 == pass.reads.len();
            for panel in panels(place.rows.len(), tile.rows) {
                let starts = self.weight_rows(place, panel.start);
                let a = self.lhs(reads, &starts[..panel.len()]);
                let mut runs = Runs { pass, plane_size: self.planes.size, image: 0, next: 0 };
                for columns in columns::<L>(n_columns) {
                    let width = columns.len().next_multiple_of(tile.lanes);
                    let b = Rhs { data: &packed[columns.start..], rows: &reads.planes };
                    let (results, row) = match is_waiting {
                        true => (&mut waiting[panel.start * waiting_row + columns.start..], waiting_row),
                        false => (&mut results[..], width),
                    };
                    L::product(width, a, b, results, row, block > 0);
                    if !is_last {
                        continue;
                    }
                    runs.within(columns, place.n_images, |image, run, skip, len| {
                        for i in 0..panel.len() {
                            let from = &results[i * row + skip..];
                            let start = image * place.per_image + (panel.start + i) * plane;
                            let to = &mut out[start + run.to..start + plane];
                            match run.step {
                                // Another pass may have written what follows.
                                1 if self.passes.len() == 1 => write(from, to, len),
                                step => {
                                    let from = &from[..len];
                                    to.iter_mut().step_by(step).zip(from).for_each(|(to, &from)| *to = T::store(from));
                                }
                            }
                        }
                    });
                }
            }
        }
    }
}

/// Which results of a task: where they are in the weights and in its output.
#[derive(Clone)]
pub(super) struct Place {
    group: usize,
    pub(super) rows: Range<usize>,
    n_images: usize,
    /// Elements of the output from an image to the next.
    per_image: usize,
}

/// Columns of the widest tile.
pub(super) const MAX_COLS: usize = 48;
/// Elements that [`write`] moves at a time.
const CHUNK: usize = 16;

/// Writes the first `len` elements, and after them whatever fills a chunk where there is room: what follows in a plane
/// is written later.
#[inline(always)]
fn write<T: Stored>(from: &[T::Lane], to: &mut [T], len: usize) {
    for i in (0..len).step_by(CHUNK) {
        let (from, to) = (&from[i..], &mut to[i..]);
        match (from.first_chunk::<CHUNK>(), to.first_chunk_mut::<CHUNK>()) {
            (Some(from), Some(to)) => to.iter_mut().zip(from).for_each(|(to, &from)| *to = T::store(from)),
            _ => to.iter_mut().zip(&from[..len - i]).for_each(|(to, &from)| *to = T::store(from)),
        }
    }
}

/// Walks the runs of all images of a task alongside the columns.
struct Runs<'a> {
    pass: &'a Pass,
    plane_size: usize,
    image: usize,
    next: usize,
}

impl Runs<'_> {
    /// Calls `f` with every part of a run in these columns: its image, where it goes, its first column of these, its
    /// length.
    #[inline(always)]
    fn within(&mut self, columns: Range<usize>, n_images: usize, mut f: impl FnMut(usize, Run, usize, usize)) {
        while self.image < n_images {
            let run = self.pass.runs[self.next];
            let column = self.image * self.plane_size + run.column;
            let (start, end) = (column.max(columns.start), (column + run.len).min(columns.end));
            if start < end {
                let to = run.to + (start - column) * run.step;
                f(self.image, Run { to, ..run }, start - columns.start, end - start);
            }
            if column + run.len > columns.end {
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
