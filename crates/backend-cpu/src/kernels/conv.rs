//! N-dimensional convolution and its two gradients as matrix products whose right-hand side is never built: a tile's
//! rows are read where they lie in padded copies of one image at a time ([`planes`]), which stay in the cache.
//!
//! All sums run in a fixed order: over the taps of an output for the convolution and its input gradient; for the weight
//! gradient over the positions of blocks of images, whose number depends on sizes alone, and then over the blocks.

use std::borrow::Cow;

use smallvec::SmallVec;
use tensor_core::op::{Conv, ConvInputGrad, ConvWeightGrad, Window};
use tensor_core::{Meta, Result, Storages, Tensor};

use super::dense::dense;
use super::epilogue;
use super::number::{Float, for_float};
use crate::Context;
use crate::eval::{Bound, Input, Stored};
use crate::simd::Product;

mod correlate;
mod direct;
mod narrow;
mod planes;
mod spread;
#[cfg(test)]
mod tests;
mod weight;

use correlate::{Correlation, Pass, n_together, reads};
use planes::{Axis, PerAxis, Planes, dot, indices};

/// y = epilogue(x ⋆ w, …).
pub(crate) fn run(op: &Conv, inputs: &[&Tensor], outputs: &[Meta], cx: &Context<'_>) -> Result<Storages> {
    let evaluator = epilogue::evaluator("conv", &op.epilogue, inputs)?;
    let bound = evaluator.as_ref().map(|e| epilogue::bind(e, &outputs[0].shape, Input::Old(0), inputs));
    let mut out = cx.output(&outputs[0])?;
    if !outputs[0].shape.is_empty() {
        for_float!(outputs[0].dtype, T => forward::<T>(op, inputs, &outputs[0], out.slice_mut(), bound.as_ref(), cx)?);
    }
    Ok(out.into_storages())
}

/// The adjoint by the input.
pub(crate) fn input_grad(
    op: &ConvInputGrad,
    inputs: &[&Tensor],
    outputs: &[Meta],
    cx: &Context<'_>,
) -> Result<Storages> {
    let mut out = cx.output(&outputs[0])?;
    if !outputs[0].shape.is_empty() {
        for_float!(outputs[0].dtype, T => backward::<T>(op, inputs, out.slice_mut(), cx)?);
    }
    Ok(out.into_storages())
}

/// The adjoint by the weight.
pub(crate) fn weight_grad(
    op: &ConvWeightGrad,
    inputs: &[&Tensor],
    outputs: &[Meta],
    cx: &Context<'_>,
) -> Result<Storages> {
    let mut out = cx.output(&outputs[0])?;
    if !outputs[0].shape.is_empty() {
        for_float!(outputs[0].dtype, T => weight::run::<T>(op, inputs, out.slice_mut(), cx)?);
    }
    Ok(out.into_storages())
}

/// How many of everything there are.
#[derive(Clone, Copy, Debug)]
struct Sizes {
    n_images: usize,
    groups: usize,
    /// Channels that are read, per group.
    channels: usize,
    /// Channels that are written, per group.
    rows: usize,
    /// Elements of a written channel.
    plane: usize,
}

fn forward<T: Stored>(
    op: &Conv,
    inputs: &[&Tensor],
    output: &Meta,
    out: &mut [T],
    epilogue: Option<&Bound<'_>>,
    cx: &Context<'_>,
) -> Result<()>
where
    T::Lane: Float + Product,
{
    let (x, w) = (inputs[0], inputs[1]);
    let (kernel, spatial) = (&w.dims()[2..], &output.shape[2..]);
    let sizes = Sizes {
        n_images: x.dims()[0],
        groups: op.groups,
        channels: w.dims()[1],
        rows: w.dims()[0] / op.groups,
        plane: spatial.iter().product(),
    };
    let planes = direct::planes::<T::Lane>(strided_axes(&op.window, &x.dims()[2..], kernel, spatial), spatial);
    let n_together = n_together(sizes.n_images, planes.size);
    let apart = n_together * planes.size;
    let taps = tap_offsets(&op.window, kernel, &planes, apart);
    let n_taps = taps.len();
    let in_weights: Vec<usize> = (0..n_taps).collect();
    let reads = reads(sizes.channels, (&in_weights, n_taps), (&taps, planes.n_phases * apart));
    let held = dense::<T>(w, cx)?;
    let rank = spatial.len();
    let pass = Pass::new(reads, &planes, spatial, &PerAxis::from_elem(0, rank), &PerAxis::from_elem(1, rank), spatial);
    let per_row = sizes.channels * n_taps;
    Correlation {
        planes,
        passes: vec![pass],
        sizes,
        weights: &in_lanes(&held),
        weight_strides: (sizes.rows * per_row, per_row),
        n_together,
    }
    .run(x, out, epilogue, cx)
}

/// The planes of a convolution's input, in which outputs that are neighbours read neighbours.
fn strided_axes(window: &Window, input: &[usize], kernel: &[usize], output: &[usize]) -> SmallVec<[Axis; 3]> {
    let axis = |i: usize| Axis {
        n: input[i],
        step: window.stride[i],
        before: window.before[i],
        size: output[i] + (kernel[i] - 1) * window.dilation[i] / window.stride[i],
    };
    (0..input.len()).map(axis).collect()
}

/// Where the first output reads, tap by tap; the planes of a channel lie `apart`.
fn tap_offsets(window: &Window, kernel: &[usize], planes: &Planes, apart: usize) -> Vec<usize> {
    let taps = indices(kernel).map(|tap| {
        let mut phase = 0;
        let mut shift = PerAxis::new();
        for ((tap, dilation), step) in tap.iter().zip(&window.dilation).zip(&window.stride) {
            phase = phase * step + tap * dilation % step;
            shift.push(tap * dilation / step);
        }
        phase * apart + dot(&shift, &planes.strides)
    });
    taps.collect()
}

/// The input gradient is a convolution, without stride, of the output's gradient for each remainder of the input's
/// positions by the stride.
fn backward<T: Stored>(op: &ConvInputGrad, inputs: &[&Tensor], out: &mut [T], cx: &Context<'_>) -> Result<()>
where
    T::Lane: Float + Product,
{
    let (g, w, window) = (inputs[0], inputs[1], &op.conv.window);
    let (kernel, groups, rank) = (&w.dims()[2..], op.conv.groups, window.rank());
    let sizes = Sizes {
        n_images: g.dims()[0],
        groups,
        channels: w.dims()[0] / groups,
        rows: w.dims()[1],
        plane: op.spatial.iter().product(),
    };
    if out.is_empty() {
        return Ok(());
    }
    if spread::pays(window, kernel, &g.dims()[2..], &op.spatial, sizes) {
        let w = dense::<T>(w, cx)?;
        return spread::run(g, &in_lanes(&w), (&window.dilation, kernel, &op.spatial), sizes, out, cx);
    }
    let furthest: PerAxis = (0..rank).map(|i| (kernel[i] - 1) * window.dilation[i] / window.stride[i]).collect();
    // Zeros before the first element: fewer where the padding is cut off the result again.
    let zeros = (0..rank).map(|i| {
        let cut = (window.before[i] + 1).saturating_sub(window.stride[i]).div_ceil(window.stride[i]);
        furthest[i].saturating_sub(cut)
    });
    let zeros: PerAxis = zeros.collect();
    let axis = |i: usize| Axis {
        n: g.dims()[2 + i],
        step: 1,
        before: zeros[i],
        size: (op.spatial[i] + window.before[i]).saturating_sub(1) / window.stride[i] + 1 + zeros[i],
    };
    let planes = direct::planes::<T::Lane>((0..rank).map(axis).collect(), &op.spatial);
    let n_together = n_together(sizes.n_images, planes.size);
    let apart = n_together * planes.size;
    let n_taps: usize = kernel.iter().product();
    let passes = indices(&window.stride).map(|phases| {
        // Positions u with u + before = v·stride + phase, v from `start` on.
        let start = |i: usize| window.before[i].saturating_sub(phases[i]).div_ceil(window.stride[i]);
        let first = |i: usize| start(i) * window.stride[i] + phases[i] - window.before[i];
        let count = |i: usize| op.spatial[i].saturating_sub(first(i)).div_ceil(window.stride[i]);
        let [starts, firsts, counts] =
            [&start as &dyn Fn(usize) -> usize, &first, &count].map(|f| (0..rank).map(f).collect::<PerAxis>());
        let (mut taps, mut offsets) = (Vec::new(), Vec::new());
        for (k, tap) in indices(kernel).enumerate() {
            let meets = (0..rank).all(|i| tap[i] * window.dilation[i] % window.stride[i] == phases[i]);
            if meets {
                let place: PerAxis =
                    (0..rank).map(|i| starts[i] + zeros[i] - tap[i] * window.dilation[i] / window.stride[i]).collect();
                taps.push(k);
                offsets.push(dot(&place, &planes.strides));
            }
        }
        let reads = reads(sizes.channels, (&taps, sizes.rows * n_taps), (&offsets, apart));
        Pass::new(reads, &planes, &op.spatial, &firsts, &window.stride, &counts)
    });
    let passes = passes.collect();
    let held = dense::<T>(w, cx)?;
    Correlation {
        planes,
        passes,
        sizes,
        weights: &in_lanes(&held),
        weight_strides: (sizes.channels * sizes.rows * n_taps, n_taps),
        n_together,
    }
    .run(g, out, None, cx)
}

/// Elements in the type that is computed in.
fn in_lanes<T: Stored>(elements: &[T]) -> Cow<'_, [T::Lane]> {
    if size_of::<T>() == size_of::<T::Lane>() {
        return Cow::Borrowed(bytemuck::cast_slice(elements));
    }
    Cow::Owned(elements.iter().map(|v| v.load()).collect())
}
