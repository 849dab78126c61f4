//! Sums of products: small matrix products and convolutions as a reduction over two strided operands (matmul.rs has the others).
//!
//! A convolution is one once its input is padded: the windows of an image are a view of it. Its adjoints are convolutions,
//! of the spread and padded gradient with the reversed kernel, and of the input with the gradient.

use smallvec::SmallVec;
use tensor_core::expr::build;
use tensor_core::op::{Conv, ConvInputGrad, ConvWeightGrad, Pad, Reduce, ReduceKind, Window};
use tensor_core::{Dims, Layout, Meta, Number, Result, Shape, Storages, Tensor};

use super::{Context, copy, matmul, reduce};

/// An operand's axes: sizes and strides.
#[derive(Clone, Debug, Default)]
struct View {
    strides: SmallVec<[isize; 4]>,
    offset: isize,
}

/// Σ over the last axes of a·b, whose views have the sizes `kept` and `summed`.
fn contract(
    cx: &Context,
    name: &'static str,
    [a, b]: [(&Tensor, View); 2],
    kept: &[usize],
    summed: &[usize],
    meta: &Meta,
) -> Result<Storages> {
    let dims: Dims = kept.iter().chain(summed).copied().collect();
    let viewed = |(x, view): (&Tensor, View)| {
        let offset = x.layout().offset().wrapping_add_signed(view.offset);
        x.with_layout(Layout::from_parts(Shape::new(&dims), view.strides, offset))
    };
    let (a, b) = (viewed(a), viewed(b));
    let axes: Dims = (kept.len()..dims.len()).collect();
    let op = Reduce { producer: build(|[a, b]| a * b), ..Reduce::new(name, ReduceKind::Sum, &axes, false) };
    reduce::reduce(cx, &op, &[&a, &b], meta)
}

/// Batched matrix product.
pub(super) fn product(cx: &Context, a: &Tensor, b: &Tensor, meta: &Meta) -> Result<Storages> {
    let rank = meta.shape.rank();
    let (k, batch) = (a.dims()[a.rank() - 1], &meta.shape[..rank - 2]);
    let batched = |x: &Tensor, matrix: [usize; 2]| {
        let dims: Dims = batch.iter().chain(&matrix).copied().collect();
        let layout = x.layout().broadcast_to(&Shape::new(&dims)).expect("invariant: core checked the batch");
        SmallVec::<[isize; 4]>::from_slice(layout.strides())
    };
    let (a_strides, b_strides) = (batched(a, [meta.shape[rank - 2], k]), batched(b, [k, meta.shape[rank - 1]]));
    let view = |batch: &[isize], row: isize, column: isize, k: isize| View {
        strides: batch.iter().copied().chain([row, column, k]).collect(),
        offset: 0,
    };
    let a_view = view(&a_strides[..rank - 2], a_strides[rank - 2], 0, a_strides[rank - 1]);
    let b_view = view(&b_strides[..rank - 2], 0, b_strides[rank - 1], b_strides[rank - 2]);
    contract(cx, "matmul", [(a, a_view), (b, b_view)], &meta.shape, &[k], meta)
}

/// The tensor with zeros around and between its spatial elements.
pub(super) fn padded(
    cx: &Context,
    x: &Tensor,
    before: &[usize],
    after: &[usize],
    interior: &[usize],
) -> Result<Tensor> {
    if before.iter().chain(after).chain(interior).all(|&n| n == 0) {
        return Ok(x.clone());
    }
    let spatial = |of: &[usize]| [0, 0].into_iter().chain(of.iter().copied()).collect::<Dims>();
    let op =
        Pad { before: spatial(before), after: spatial(after), interior: spatial(interior), value: Number::Float(0.0) };
    let dims = x
        .dims()
        .iter()
        .enumerate()
        .map(|(axis, &n)| op.before[axis] + op.after[axis] + n + op.interior[axis] * n.saturating_sub(1));
    let meta = Meta::new(Shape::new(&dims.collect::<Dims>()), x.dtype());
    let value = if x.dtype().is_float() { Number::Float(0.0) } else { Number::Int(0) };
    let storages = copy::pad(cx, &Pad { value, ..op }, x, &meta)?;
    let storage = storages.into_iter().next().expect("invariant: pad has one output");
    Ok(Tensor::from_storage(storage, meta, x.place().clone()))
}

/// y[n, g·o, p] = Σ x[n, g·c, p·stride + t·dilation − before] · w[g·o, c, t].
pub(crate) fn conv(cx: &Context, op: &Conv, inputs: &[&Tensor], meta: &Meta) -> Result<Storages> {
    let [input, w, extra @ ..] = inputs else { unreachable!("invariant: conv takes two or more") };
    let window = &op.window;
    let x = padded(cx, input, &window.before, &window.after, &[0; 8][..window.rank()])?;
    let plain = Meta::new(meta.shape.clone(), x.dtype());
    let y = correlate(cx, "conv", &x, w, op.groups, &window.stride, &window.dilation, &plain, false)?;
    matmul::with_epilogue(cx, "conv", &op.epilogue, y, plain, input, extra, meta)
}

/// Correlation of a padded input with weights [groups·o, c, taps]; `reversed` takes weights [groups·c, o, taps] backwards.
fn correlate(
    cx: &Context,
    name: &'static str,
    x: &Tensor,
    w: &Tensor,
    groups: usize,
    stride: &[usize],
    dilation: &[usize],
    meta: &Meta,
    reversed: bool,
) -> Result<Storages> {
    let (n, out_channels, out) = (meta.shape[0], meta.shape[1], &meta.shape[2..]);
    let per_group = out_channels / groups.max(1);
    let channels = x.dims()[1] / groups.max(1);
    let taps = &w.dims()[2..];
    let (xs, ws) = (x.layout().strides(), w.layout().strides());
    // kept: n, g, o, position…; summed: c, tap…
    let mut x_view = View { strides: SmallVec::from_slice(&[xs[0], xs[1] * channels as isize, 0]), offset: 0 };
    x_view.strides.extend(xs[2..].iter().zip(stride).map(|(&s, &step)| s * step as isize));
    x_view.strides.push(xs[1]);
    x_view.strides.extend(xs[2..].iter().zip(dilation).map(|(&s, &step)| s * step as isize));
    let (by_group, by_out, by_channel) =
        if reversed { (ws[0] * channels as isize, ws[1], ws[0]) } else { (ws[0] * per_group as isize, ws[0], ws[1]) };
    let mut w_view = View { strides: SmallVec::from_slice(&[0, by_group, by_out]), offset: 0 };
    w_view.strides.extend(out.iter().map(|_| 0));
    w_view.strides.push(by_channel);
    for (&s, &n_taps) in ws[2..].iter().zip(taps) {
        if reversed {
            w_view.offset += s * (n_taps as isize - 1);
        }
        w_view.strides.push(if reversed { -s } else { s });
    }
    let kept: Dims = [n, groups, per_group].into_iter().chain(out.iter().copied()).collect();
    let summed: Dims = [channels].into_iter().chain(taps.iter().copied()).collect();
    contract(cx, name, [(x, x_view), (w, w_view)], &kept, &summed, meta)
}

/// The adjoint by the input: the gradient spread by the stride, padded by the kernel's reach, with the kernel reversed.
pub(crate) fn input_grad(cx: &Context, op: &ConvInputGrad, inputs: &[&Tensor], meta: &Meta) -> Result<Storages> {
    let [g, w] = inputs else { unreachable!("invariant: conv_input_grad takes two") };
    let x = spread(cx, g, &op.conv.window, &w.dims()[2..], &op.spatial)?;
    let ones = [1; 8];
    correlate(
        cx,
        "conv_input_grad",
        &x,
        w,
        op.conv.groups,
        &ones[..op.spatial.len()],
        &op.conv.window.dilation,
        meta,
        true,
    )
}

/// The gradient of a window op so placed that its correlation with a reversed kernel of these taps gives the gradient by an
/// input of this size.
pub(super) fn spread(cx: &Context, g: &Tensor, window: &Window, taps: &[usize], spatial: &[usize]) -> Result<Tensor> {
    let rank = window.rank();
    let reach: Dims = (0..rank).map(|a| (taps[a] - 1) * window.dilation[a]).collect();
    let spread: Dims =
        (0..rank).map(|a| g.dims()[2 + a].saturating_sub(1) * window.stride[a] + g.dims()[2 + a].min(1)).collect();
    let interior: Dims = window.stride.iter().map(|&s| s - 1).collect();
    // Result u reads spread positions u + before − t·dilation.
    let left = |a: usize| reach[a] as isize - window.before[a] as isize;
    let right = |a: usize| (spatial[a] + reach[a]) as isize - spread[a] as isize - left(a);
    let positive = |n: isize| n.max(0) as usize;
    let before: Dims = (0..rank).map(|a| positive(left(a))).collect();
    let after: Dims = (0..rank).map(|a| positive(right(a))).collect();
    let x = padded(cx, g, &before, &after, &interior)?;
    // What lies beyond the input was padding of the op itself: it is cut off.
    let mut layout = x.layout().clone();
    let mut dims: Dims = x.dims().iter().copied().collect();
    let mut offset = layout.offset() as isize;
    for a in 0..rank {
        offset += positive(-left(a)) as isize * layout.strides()[2 + a];
        dims[2 + a] = spatial[a] + reach[a];
    }
    layout = Layout::from_parts(Shape::new(&dims), SmallVec::from_slice(layout.strides()), offset as usize);
    Ok(x.with_layout(layout))
}

/// The adjoint by the weight: the padded input with the gradient, over images and positions.
pub(crate) fn weight_grad(cx: &Context, op: &ConvWeightGrad, inputs: &[&Tensor], meta: &Meta) -> Result<Storages> {
    let [x, g] = inputs else { unreachable!("invariant: conv_weight_grad takes two") };
    let (window, groups) = (&op.conv.window, op.conv.groups);
    let x = padded(cx, x, &window.before, &window.after, &[0; 8][..window.rank()])?;
    let (channels, per_group) = (meta.shape[1], meta.shape[0] / groups.max(1));
    let (n, out) = (g.dims()[0], &g.dims()[2..]);
    let (xs, gs) = (x.layout().strides(), g.layout().strides());
    let steps = |strides: &[isize], by: &[usize]| -> SmallVec<[isize; 4]> {
        strides.iter().zip(by).map(|(&s, &step)| s * step as isize).collect()
    };
    // kept: g, o, c, tap…; summed: n, position…
    let mut x_view = View { strides: SmallVec::from_slice(&[xs[1] * channels as isize, 0, xs[1]]), offset: 0 };
    x_view.strides.extend(steps(&xs[2..], &window.dilation));
    x_view.strides.push(xs[0]);
    x_view.strides.extend(steps(&xs[2..], &window.stride));
    let mut g_view = View { strides: SmallVec::from_slice(&[gs[1] * per_group as isize, gs[1], 0]), offset: 0 };
    g_view.strides.extend(op.kernel.iter().map(|_| 0));
    g_view.strides.push(gs[0]);
    g_view.strides.extend_from_slice(&gs[2..]);
    let kept: Dims = [groups, per_group, channels].into_iter().chain(op.kernel.iter().copied()).collect();
    let summed: Dims = [n].into_iter().chain(out.iter().copied()).collect();
    contract(cx, "conv_weight_grad", [(&x, x_view), (g, g_view)], &kept, &summed, meta)
}
