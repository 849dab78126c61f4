//! The weight gradient: for every tap, the output's gradient times the input, over all positions of all images.
//!
//! Tiles sum over positions, so their right-hand side needs neighbouring channels, or taps, side by side: the planes of
//! many channels are turned over once per image and read for every tap; of few channels, all taps are laid out.

use tensor_core::op::ConvWeightGrad;
use tensor_core::{Result, Tensor};

use super::planes::{Planes, dot, indices};
use super::{Sizes, in_lanes, strided_planes, tap_offsets};
use crate::eval::Stored;
use crate::kernels::dense::dense;
use crate::kernels::gemm::turn;
use crate::kernels::number::{Arithmetic, Float};
use crate::simd::{Lhs, Product, Rows};
use crate::{Context, threads};

/// Positions that are summed at a time.
const DEPTH: usize = 512;
/// Blocks of images at most, each with sums of its own.
const MAX_BLOCKS: usize = 16;
/// Elements that the sums of all blocks may take.
const MAX_SUMS: usize = 1 << 22;

/// How the right-hand side is laid out.
enum Form {
    /// [phase, position of the plane, channel]: a tap begins where its shift says.
    ByTap { starts: Vec<usize> },
    /// [position of the output, channel and tap].
    Patches { reads: Vec<usize> },
}

struct Plan<'a> {
    x: &'a Tensor,
    sizes: Sizes,
    planes: Planes,
    form: Form,
    n_taps: usize,
    /// Elements of a row of the right-hand side, whole vectors.
    width: usize,
    /// Of these, those that are used.
    n_used: usize,
    /// Where the right-hand side of every output position begins, in parts of `DEPTH`.
    positions: Vec<Rows>,
    /// Each row of outputs: where it begins in the plane.
    runs: Vec<usize>,
    run_len: usize,
}

pub(super) fn run<T: Stored>(op: &ConvWeightGrad, inputs: &[&Tensor], out: &mut [T], cx: &Context<'_>) -> Result<()>
where
    T::Lane: Float + Product,
{
    let (x, g, groups) = (inputs[0], inputs[1], op.conv.groups);
    let spatial = &g.dims()[2..];
    let sizes = Sizes {
        n_images: x.dims()[0],
        groups,
        channels: x.dims()[1] / groups,
        rows: g.dims()[1] / groups,
        plane: spatial.iter().product(),
    };
    if out.is_empty() {
        return Ok(());
    }
    let planes = strided_planes(&op.conv.window, &x.dims()[2..], &op.kernel, spatial);
    let lanes = <T::Lane as Product>::tile().lanes;
    let taps = tap_offsets(&op.conv.window, &op.kernel, &planes, planes.size);
    let n_taps = taps.len();
    let starts: Vec<usize> = indices(spatial).map(|index| dot(&index, &planes.strides)).collect();
    let is_by_tap = sizes.channels >= lanes;
    let n_used = if is_by_tap { sizes.channels } else { sizes.channels * n_taps };
    let width = n_used.next_multiple_of(lanes);
    let form = match is_by_tap {
        true => Form::ByTap { starts: taps.iter().map(|at| at * width).collect() },
        false => {
            let per_channel = planes.n_phases * planes.size;
            let reads = (0..sizes.channels).flat_map(|c| taps.iter().map(move |at| c * per_channel + at));
            Form::Patches { reads: reads.collect() }
        }
    };
    let positions = (0..sizes.plane).step_by(DEPTH).map(|first| {
        let part = first..sizes.plane.min(first + DEPTH);
        Rows::new(match is_by_tap {
            true => starts[part].iter().map(|at| at * width).collect(),
            false => part.map(|i| i * width).collect(),
        })
    });
    let run_len = spatial.last().copied().unwrap_or(1);
    let runs = starts.iter().copied().step_by(run_len.max(1)).collect();
    let positions = positions.collect();
    let plan = Plan { x, sizes, planes, form, n_taps, width, n_used, positions, runs, run_len };
    plan.run::<T>(g, out, cx)
}

/// What one thread sums: some rows, or groups, over a block of images.
struct Task<'a, L> {
    images: std::ops::Range<usize>,
    groups: std::ops::Range<usize>,
    rows: std::ops::Range<usize>,
    sums: &'a mut [L],
}

impl Plan<'_> {
    /// Rows of the right-hand side that a row of sums is made of.
    fn n_blocks_of_columns(&self) -> usize {
        match self.form {
            Form::ByTap { .. } => self.n_taps,
            Form::Patches { .. } => 1,
        }
    }

    fn run<T: Stored>(&self, g: &Tensor, out: &mut [T], cx: &Context<'_>) -> Result<()>
    where
        T::Lane: Float + Product,
    {
        let Sizes { n_images, groups, channels, rows, plane } = self.sizes;
        let held = dense::<T>(g, cx)?;
        let g = in_lanes(&held);
        let per_row = self.n_blocks_of_columns() * self.width;
        let n_sums = groups * rows * per_row;
        let work = n_images * groups * rows * per_row * (plane + 8) * size_of::<T::Lane>() / 300;
        let n_blocks = (work / 100_000).min(MAX_BLOCKS).min(MAX_SUMS / n_sums).min(n_images).max(1);
        let mut sums = cx.take::<T::Lane>(n_blocks * n_sums)?;
        let sums: &mut [T::Lane] = sums.slice_mut();
        let n_units = if groups > 1 { groups } else { rows.div_ceil(<T::Lane as Product>::tile().rows) };
        let wanted = if threads::is_worthwhile(work) { 2 * threads::n_threads() } else { 1 };
        let n_parts = wanted.div_ceil(n_blocks).min(n_units);
        let mut tasks = Vec::with_capacity(n_blocks * n_parts);
        for (block, mut sums) in sums.chunks_mut(n_sums).enumerate() {
            let images = block * n_images / n_blocks..(block + 1) * n_images / n_blocks;
            for part in 0..n_parts {
                let share = |n: usize| n * part / n_parts..n * (part + 1) / n_parts;
                let (groups, rows) = if groups > 1 { (share(groups), 0..rows) } else { (0..1, share(rows)) };
                let (head, tail) = sums.split_at_mut(groups.len() * rows.len() * per_row);
                tasks.push(Task { images: images.clone(), groups, rows, sums: head });
                sums = tail;
            }
        }
        threads::try_for_each(work, tasks.into_iter(), |task| self.block::<T>(&g, task, cx))?;
        let per_out = channels * self.n_taps;
        threads::for_each(n_blocks * n_sums / 2, out.chunks_mut(per_out).enumerate(), |(row, out)| {
            for (i, out) in out.iter_mut().enumerate() {
                let at = row * per_row
                    + match self.form {
                        Form::ByTap { .. } => i % self.n_taps * self.width + i / self.n_taps,
                        Form::Patches { .. } => i,
                    };
                let sum = (0..n_blocks).fold(T::Lane::ZERO, |sum, block| sum.plus(sums[block * n_sums + at]));
                *out = T::store(sum);
            }
        });
        Ok(())
    }

    fn block<T: Stored>(&self, g: &[T::Lane], task: Task<'_, T::Lane>, cx: &Context<'_>) -> Result<()>
    where
        T::Lane: Float + Product,
    {
        let Sizes { channels, plane, groups, rows: all_rows, .. } = self.sizes;
        let Task { images, groups: some_groups, rows, sums } = task;
        let per_channel = self.planes.n_phases * self.planes.size;
        let mut packed = cx.take::<T::Lane>(channels * per_channel)?;
        let packed: &mut [T::Lane] = packed.slice_mut();
        let n_rhs = match self.form {
            Form::ByTap { .. } => per_channel,
            Form::Patches { .. } => plane,
        };
        let mut rhs = cx.take::<T::Lane>(n_rhs * self.width)?;
        let rhs: &mut [T::Lane] = rhs.slice_mut();
        sums.fill(T::Lane::ZERO);
        let per_group = rows.len() * self.n_blocks_of_columns() * self.width;
        for image in images {
            for (group, sums) in some_groups.clone().zip(sums.chunks_mut(per_group)) {
                for (c, to) in packed.chunks_mut(per_channel).enumerate() {
                    self.planes.pack::<T>(self.x, image, group * channels + c, self.planes.size, to);
                }
                self.lay_out(packed, rhs);
                let g = &g[((image * groups + group) * all_rows + rows.start) * plane..][..rows.len() * plane];
                self.add(g, rhs, sums);
            }
        }
        Ok(())
    }

    /// Turns planes into the right-hand side.
    fn lay_out<L: Float>(&self, packed: &[L], rhs: &mut [L]) {
        match &self.form {
            Form::ByTap { .. } => {
                let per_channel = self.planes.n_phases * self.planes.size;
                let starts: Vec<usize> = (0..self.n_used).map(|c| c * per_channel).collect();
                turn(packed, &starts, per_channel, self.width, rhs);
            }
            Form::Patches { reads } => {
                let mut starts = vec![0; reads.len()];
                for (&run, rhs) in self.runs.iter().zip(rhs.chunks_mut(self.run_len * self.width)) {
                    starts.iter_mut().zip(reads).for_each(|(start, read)| *start = read + run);
                    turn(packed, &starts, self.run_len, self.width, rhs);
                }
            }
        }
    }

    /// Adds one image's products to the sums [rows, taps, width].
    fn add<L: Float + Product>(&self, g: &[L], rhs: &[L], sums: &mut [L]) {
        let tile = L::tile();
        let plane = self.sizes.plane;
        let n_rows = g.len() / plane;
        let n_panels = n_rows.div_ceil(tile.rows);
        let n_columns = self.n_blocks_of_columns();
        let per_row = n_columns * self.width;
        for (part, positions) in self.positions.iter().enumerate() {
            for block in 0..n_columns {
                let start = match &self.form {
                    Form::ByTap { starts } => starts[block],
                    Form::Patches { .. } => 0,
                };
                for column in (0..self.width).step_by(tile.cols) {
                    let n = tile.cols.min(self.width - column);
                    for panel in 0..n_panels {
                        let first = n_rows * panel / n_panels;
                        let m = n_rows * (panel + 1) / n_panels - first;
                        let lhs = Lhs { data: &g[first * plane + part * DEPTH..], row: plane, step: 1 };
                        let to = &mut sums[first * per_row + block * self.width + column..];
                        L::product(m, n, lhs, positions, &rhs[start + column..], to, per_row, true);
                    }
                }
            }
        }
    }
}
