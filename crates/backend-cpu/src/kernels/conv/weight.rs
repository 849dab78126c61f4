//! The weight gradient: for every channel and tap, the planes of the input times the output's gradient, over all
//! positions of all images.
//!
//! Tiles have a row per channel and tap, read in place at the tap's shift, and a column per output channel: the
//! gradient's channels are laid side by side once per image. Where they would leave half of a vector empty, as in
//! depthwise convolutions, positions are laid along vectors instead, one sum per lane ([`narrow`]).

use std::ops::Range;

use tensor_core::op::ConvWeightGrad;
use tensor_core::{Result, Tensor};

use super::planes::{Axis, Planes, dot, indices, row_major};
use super::{Sizes, in_lanes, narrow, strided_axes, tap_offsets};
use crate::eval::Stored;
use crate::kernels::dense::dense;
use crate::kernels::gemm::{MAX_ROWS, columns, panels, turn};
use crate::kernels::number::{Arithmetic, Float};
use crate::simd::{Lhs, Offsets, Product, Rhs, Rows};
use crate::{Context, threads};

/// Positions that are summed at a time.
const DEPTH: usize = 512;
/// Blocks of images at most, each with sums of its own.
const MAX_BLOCKS: usize = 16;
/// Elements that the sums of all blocks may take.
const MAX_SUMS: usize = 1 << 22;

struct Plan<'a> {
    x: &'a Tensor,
    /// `rows` are the output's channels.
    sizes: Sizes,
    planes: Planes,
    /// The planes that the gradient is laid out in where it has few channels: the input's, without phases.
    grad_planes: Planes,
    /// From a plane to the next.
    apart: usize,
    /// Where each tap of a channel begins in its planes.
    taps: Vec<usize>,
    /// Whether channels are too few for a vector.
    is_narrow: bool,
    /// Columns of the sums: the output channels of a group, unless few up to whole vectors.
    width: usize,
    /// Where the output positions are in a plane, and in the gradient's rows, in parts of `DEPTH`.
    positions: Vec<[Offsets; 2]>,
    /// Positions of a plane up to the last output.
    n_positions: usize,
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
    let planes = Planes::new(strided_axes(&op.conv.window, &x.dims()[2..], &op.kernel, spatial));
    let lanes = <T::Lane as Product>::tile().lanes;
    let is_narrow = 2 * sizes.rows <= lanes;
    // Whole vectors read past the end of a plane: not into the next.
    let apart = if is_narrow { planes.size + lanes } else { planes.size };
    let taps = tap_offsets(&op.conv.window, &op.kernel, &planes, apart);
    let starts: Vec<usize> = indices(spatial).map(|index| dot(&index, &planes.strides)).collect();
    let width = if is_narrow { sizes.rows } else { sizes.rows.next_multiple_of(lanes) };
    let positions = starts.chunks(DEPTH).map(|part| [Offsets::new(part.to_vec()), Offsets::every(width, part.len())]);
    let sized = spatial.iter().zip(planes.sizes());
    let grad_axes = sized.map(|(&n, size)| Axis { n, step: 1, before: 0, size }).collect();
    let plan = Plan {
        x,
        sizes,
        grad_planes: Planes::new(grad_axes),
        apart,
        taps,
        is_narrow,
        width,
        positions: positions.collect(),
        n_positions: starts.last().map_or(0, |last| last + 1),
        planes,
    };
    plan.run::<T>(g, out, cx)
}

/// What one thread sums: some channels and taps, or some groups, over a block of images.
struct Task<'a, L> {
    images: Range<usize>,
    groups: Range<usize>,
    /// Channels and taps of each group.
    taps: Range<usize>,
    sums: &'a mut [L],
}

impl Plan<'_> {
    fn run<T: Stored>(&self, g: &Tensor, out: &mut [T], cx: &Context<'_>) -> Result<()>
    where
        T::Lane: Float + Product,
    {
        let Sizes { n_images, groups, channels, rows, plane } = self.sizes;
        let held = dense::<T>(g, cx)?;
        let g = in_lanes(&held);
        let n_taps = channels * self.taps.len();
        let n_sums = groups * n_taps * self.width;
        let work = n_images * n_sums * (plane + 8) * size_of::<T::Lane>() / 300;
        let n_blocks = (work / 100_000).min(MAX_BLOCKS).min(MAX_SUMS / n_sums).min(n_images).max(1);
        let mut sums = cx.take::<T::Lane>(n_blocks * n_sums)?;
        let sums: &mut [T::Lane] = sums.slice_mut();
        let n_units = if groups > 1 { groups } else { n_taps.div_ceil(<T::Lane as Product>::tile().rows) };
        let wanted = if threads::is_worthwhile(work) { 2 * threads::n_threads() } else { 1 };
        let n_parts = wanted.div_ceil(n_blocks).min(n_units);
        let mut tasks = Vec::with_capacity(n_blocks * n_parts);
        for (block, mut sums) in sums.chunks_mut(n_sums).enumerate() {
            let images = block * n_images / n_blocks..(block + 1) * n_images / n_blocks;
            for part in 0..n_parts {
                let share = |n: usize| n * part / n_parts..n * (part + 1) / n_parts;
                let (groups, taps) = if groups > 1 { (share(groups), 0..n_taps) } else { (0..1, share(n_taps)) };
                let (head, tail) = sums.split_at_mut(groups.len() * taps.len() * self.width);
                tasks.push(Task { images: images.clone(), groups, taps, sums: head });
                sums = tail;
            }
        }
        threads::try_for_each(work, tasks.into_iter(), |task| self.block::<T>(&g, task, cx))?;
        threads::for_each(n_blocks * n_sums / 2, out.chunks_mut(n_taps).enumerate(), |(row, out)| {
            let (group, column) = (row / rows, row % rows);
            for (i, out) in out.iter_mut().enumerate() {
                let at = (group * n_taps + i) * self.width + column;
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
        let Sizes { channels, rows, groups, plane, .. } = self.sizes;
        let Task { images, groups: some_groups, taps, sums } = task;
        let n_taps = self.taps.len();
        let some_channels = taps.start / n_taps..taps.end.div_ceil(n_taps);
        let per_channel = self.planes.n_phases * self.apart;
        let mut packed = cx.take::<T::Lane>(some_channels.len() * per_channel)?;
        let packed: &mut [T::Lane] = packed.slice_mut();
        let starts: Vec<usize> =
            taps.clone().map(|i| (i / n_taps - some_channels.start) * per_channel + self.taps[i % n_taps]).collect();
        let n_sums = taps.len() * self.width;
        let lanes = <T::Lane as Product>::tile().lanes;
        let n_positions = self.n_positions.next_multiple_of(lanes);
        let grad_plane = n_positions.max(self.grad_planes.size);
        let grad_starts: Vec<usize> = (0..rows).map(|row| row * grad_plane).collect();
        let grad_strides: Vec<isize> = row_major(self.grad_planes.counts()).iter().map(|&s| s as isize).collect();
        let mut turned = cx.take::<T::Lane>(if self.is_narrow { rows * grad_plane } else { plane * self.width })?;
        let turned: &mut [T::Lane] = turned.slice_mut();
        let mut in_lanes = cx.take::<T::Lane>(if self.is_narrow { sums.len() * lanes } else { 0 })?;
        let in_lanes: &mut [T::Lane] = in_lanes.slice_mut();
        if self.is_narrow {
            // Ends of planes, and the positions between rows of the gradient, stay zero.
            packed.fill(T::Lane::ZERO);
            turned.fill(T::Lane::ZERO);
            in_lanes.fill(T::Lane::ZERO);
        }
        sums.fill(T::Lane::ZERO);
        for image in images {
            for (i, group) in some_groups.clone().enumerate() {
                for (c, to) in some_channels.clone().zip(packed.chunks_mut(per_channel)) {
                    self.planes.pack::<T>(self.x, image, group * channels + c, self.apart, to);
                }
                let first = (image * groups + group) * rows * plane;
                let columns = (0..rows).map(|row| first + row * plane);
                if self.is_narrow {
                    for (from, to) in columns.zip(turned.chunks_mut(grad_plane)) {
                        self.grad_planes.pack_from::<T::Lane>(g, from as isize, &grad_strides, grad_plane, to);
                    }
                    let lanes = &mut in_lanes[i * n_sums * lanes..(i + 1) * n_sums * lanes];
                    let g = Rows { data: turned, starts: &grad_starts };
                    narrow::Sums { lanes, n_taps: taps.len(), n_rows: rows }.add(
                        n_positions,
                        Rows { data: packed, starts: &starts },
                        g,
                    );
                } else {
                    turn(g, &columns.collect::<Vec<_>>(), plane, self.width, turned);
                    self.add(packed, &starts, turned, &mut sums[i * n_sums..(i + 1) * n_sums]);
                }
            }
        }
        for (lanes, sums) in in_lanes.chunks_mut(n_sums * lanes).zip(sums.chunks_mut(n_sums)) {
            narrow::Sums { lanes, n_taps: taps.len(), n_rows: rows }.fold(sums);
        }
        Ok(())
    }

    /// Adds one image's products to the sums [channel and tap, output channel].
    fn add<L: Float + Product>(&self, packed: &[L], starts: &[usize], turned: &[L], sums: &mut [L]) {
        for (part, [positions, rows]) in self.positions.iter().enumerate() {
            for columns in columns::<L>(self.width) {
                let b = Rhs { data: &turned[part * DEPTH * self.width + columns.start..], rows };
                for panel in panels(starts.len(), L::tile().rows.min(MAX_ROWS)) {
                    let to = &mut sums[panel.start * self.width + columns.start..];
                    let a = Lhs { data: packed, rows: &starts[panel], steps: positions };
                    L::product(columns.len(), a, b, to, self.width, true);
                }
            }
        }
    }
}
