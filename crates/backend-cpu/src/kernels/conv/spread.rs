//! The input gradient where padding would be most of what is read: instead of gathering, each tap adds its products of
//! the output's gradient where they belong.
//!
//! The sums run over the output channels of a tap and then over the taps.

use tensor_core::op::Window;
use tensor_core::{Result, Tensor};

use super::Sizes;
use super::planes::{Axis, Planes, dot, indices, row_major};
use crate::eval::Stored;
use crate::kernels::gemm::{MAX_ROWS, columns, panels};
use crate::kernels::number::{Arithmetic, Float};
use crate::simd::{Lhs, Offsets, Product, Rhs};
use crate::{Context, threads};

/// Whether it pays: without stride and padding, the gradient much smaller than the result, and enough channels for a
/// tile to be worth its way to memory. The number of threads must not matter.
pub(super) fn pays(window: &Window, kernel: &[usize], grad: &[usize], spatial: &[usize], sizes: Sizes) -> bool {
    let is_whole = |i: usize| window.stride[i] == 1 && grad[i] + (kernel[i] - 1) * window.dilation[i] == spatial[i];
    (0..spatial.len()).all(is_whole)
        && 3 * grad.iter().product::<usize>() <= 2 * sizes.plane
        && sizes.channels >= 8
        && sizes.n_images >= 16
}

/// Writes the adjoint by the input; `w` is [groups · channels, rows, taps].
pub(super) fn run<T: Stored>(
    g: &Tensor,
    w: &[T::Lane],
    (dilation, kernel, spatial): (&[usize], &[usize], &[usize]),
    sizes: Sizes,
    out: &mut [T],
    cx: &Context<'_>,
) -> Result<()>
where
    T::Lane: Float + Product,
{
    let Sizes { groups, channels, rows, plane, .. } = sizes;
    let tile = T::Lane::tile();
    // The gradient's rows lie as far apart as the result's.
    let axis =
        |i: usize| Axis { n: g.dims()[2 + i], step: 1, before: 0, size: if i == 0 { g.dims()[2] } else { spatial[i] } };
    let planes = Planes::new((0..spatial.len()).map(axis).collect());
    let strides = row_major(spatial.iter().copied());
    let shifts: Vec<usize> =
        indices(kernel).map(|tap| tap.iter().zip(dilation).zip(&strides).map(|((t, d), s)| t * d * s).sum()).collect();
    let last: Vec<usize> = g.dims()[2..].iter().map(|n| n - 1).collect();
    let n_positions = dot(&last, &strides) + 1;
    // Whole vectors read zeros past the end of a plane, and add them past the end of a result.
    let (apart, row) = (planes.size + tile.cols, plane + tile.cols);
    let (in_weights, in_planes) = (Offsets::every(rows * shifts.len(), channels), Offsets::every(apart, channels));
    let work = out.len() * channels * shifts.len() * size_of::<T::Lane>() / 300;
    threads::try_for_each(work, out.chunks_mut(groups * rows * plane).enumerate(), |(image, out)| {
        let mut packed = cx.take::<T::Lane>(channels * apart)?;
        let packed: &mut [T::Lane] = packed.slice_mut();
        packed.fill(T::Lane::ZERO);
        let mut sums = cx.take::<T::Lane>(rows * row)?;
        let sums: &mut [T::Lane] = sums.slice_mut();
        for (group, out) in out.chunks_mut(rows * plane).enumerate() {
            for (c, to) in packed.chunks_mut(apart).enumerate() {
                planes.pack::<T>(g, image, group * channels + c, apart, to);
            }
            sums.fill(T::Lane::ZERO);
            for panel in panels(rows, tile.rows) {
                for (k, shift) in shifts.iter().enumerate() {
                    let starts: [usize; MAX_ROWS] =
                        std::array::from_fn(|i| (group * channels * rows + panel.start + i) * shifts.len() + k);
                    let a = Lhs { data: w, rows: &starts[..panel.len()], steps: &in_weights };
                    for columns in columns::<T::Lane>(n_positions) {
                        let b = Rhs { data: &packed[columns.start..], rows: &in_planes };
                        let to = &mut sums[panel.start * row + shift + columns.start..];
                        T::Lane::product(columns.len().next_multiple_of(tile.lanes), a, b, to, row, true);
                    }
                }
            }
            for (out, sums) in out.chunks_mut(plane).zip(sums.chunks(row)) {
                out.iter_mut().zip(sums).for_each(|(out, &sum)| *out = T::store(sum));
            }
        }
        Ok(())
    })
}
