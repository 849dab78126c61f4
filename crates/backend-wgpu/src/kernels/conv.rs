//! Convolution and its two adjoints as products: what the rows, the columns and the sum run over, and where an element of the
//! windowed operand lies. Nothing is padded, spread or unfolded in memory.

use smallvec::{SmallVec, smallvec};
use tensor_core::op::{Conv, ConvInputGrad, ConvWeightGrad};
use tensor_core::plan::Plan;
use tensor_core::{Expr, Meta, Result, Storages, Tensor};

use super::Context;
use super::moves::row_major;
use super::product::{Patch, Product};

/// Strides of several operands.
type Strides = SmallVec<[SmallVec<[isize; 4]>; 4]>;

/// The axes of a tensor [outer, channels, spatial…] whose channels are cut into groups.
struct Grouped<'a> {
    /// From one group to the next.
    group: isize,
    outer: isize,
    channel: isize,
    spatial: &'a [isize],
}

/// `per_group` counts the elements along axis `along` that a group has.
fn grouped(strides: &[isize], along: usize, per_group: usize) -> Grouped<'_> {
    let group = strides[along] * per_group as isize;
    Grouped { group, outer: strides[0], channel: strides[1], spatial: &strides[2..] }
}

/// y[n, g·o, p] = Σ w[g·o, c, t] · x[n, g·c, p·stride + t·dilation − before].
pub(crate) fn conv(cx: &Context, op: &Conv, inputs: &[&Tensor], meta: &Meta) -> Result<Storages> {
    let [x, w, extra @ ..] = inputs else { unreachable!("invariant: conv takes two or more") };
    let (window, groups) = (&op.window, op.groups.max(1));
    let (per_group, channels) = (meta.shape[1] / groups, w.dims()[1]);
    let shape = |x: &Tensor| -> SmallVec<[isize; 4]> {
        let layout = x.layout().broadcast_to(&meta.shape).expect("invariant: core checked the broadcast");
        SmallVec::from_slice(layout.strides())
    };
    let outputs: Strides = std::iter::once(row_major(&meta.shape)).chain(extra.iter().map(|x| shape(x))).collect();
    let patches = (0..window.rank()).map(|axis| Patch {
        by_column: window.stride[axis] as isize,
        by_depth: window.dilation[axis] as isize,
        before: window.before[axis] as isize,
        divisor: 1,
        size: x.dims()[2 + axis],
        stride: x.layout().strides()[2 + axis],
    });
    let outputs: Vec<Grouped<'_>> = outputs.iter().map(|strides| grouped(strides, 1, per_group)).collect();
    let filters = grouped(w.layout().strides(), 0, per_group);
    let images = grouped(x.layout().strides(), 1, channels);
    let none: SmallVec<[isize; 4]> = smallvec![0; window.rank()];
    let columns = Axes { outer: meta.shape[0], spatial: &meta.shape[2..] };
    let depth = Axes { outer: channels, spatial: &w.dims()[2..] };
    Product {
        name: "conv",
        a: w,
        b: x,
        extra,
        epilogue: op.epilogue.clone(),
        batch: line(groups, outputs.iter().map(|y| y.group).chain([filters.group, images.group])),
        rows: line(per_group, outputs.iter().map(|y| y.channel).chain([filters.outer])),
        columns: columns.plan(outputs.iter().map(|y| (y.outer, y.spatial)).chain([(images.outer, &none[..])])),
        depth: depth.plan([(filters.channel, filters.spatial), (images.channel, &none[..])]),
        along: [true, false],
        patches: patches.collect(),
    }
    .simplified()
    .run(cx, meta)
}

/// x[n, g·c, u] = Σ w[g·o, c, t] · grad[n, g·o, (u + before − t·dilation) / stride], where that divides.
pub(crate) fn input_grad(cx: &Context, op: &ConvInputGrad, inputs: &[&Tensor], meta: &Meta) -> Result<Storages> {
    let [grad, w] = inputs else { unreachable!("invariant: conv_input_grad takes two") };
    let (window, groups) = (&op.conv.window, op.conv.groups.max(1));
    let (per_group, channels) = (w.dims()[0] / groups, w.dims()[1]);
    let patches = (0..window.rank()).map(|axis| Patch {
        by_column: 1,
        by_depth: -(window.dilation[axis] as isize),
        before: -(window.before[axis] as isize),
        divisor: window.stride[axis],
        size: grad.dims()[2 + axis],
        stride: grad.layout().strides()[2 + axis],
    });
    let strides = row_major(&meta.shape);
    let output = grouped(&strides, 1, channels);
    let filters = grouped(w.layout().strides(), 0, per_group);
    let grads = grouped(grad.layout().strides(), 1, per_group);
    let none: SmallVec<[isize; 4]> = smallvec![0; window.rank()];
    let columns = Axes { outer: meta.shape[0], spatial: &meta.shape[2..] };
    let depth = Axes { outer: per_group, spatial: &w.dims()[2..] };
    Product {
        name: "conv_input_grad",
        a: w,
        b: grad,
        extra: &[],
        epilogue: Expr::identity(),
        batch: line(groups, [output.group, filters.group, grads.group]),
        rows: line(channels, [output.channel, filters.channel]),
        columns: columns.plan([(output.outer, output.spatial), (grads.outer, &none[..])]),
        depth: depth.plan([(filters.outer, filters.spatial), (grads.channel, &none[..])]),
        along: [true, false],
        patches: patches.collect(),
    }
    .simplified()
    .run(cx, meta)
}

/// w[g·o, c, t] = Σ grad[n, g·o, p] · x[n, g·c, p·stride + t·dilation − before].
pub(crate) fn weight_grad(cx: &Context, op: &ConvWeightGrad, inputs: &[&Tensor], meta: &Meta) -> Result<Storages> {
    let [x, grad] = inputs else { unreachable!("invariant: conv_weight_grad takes two") };
    let (window, groups) = (&op.conv.window, op.conv.groups.max(1));
    let (per_group, channels) = (meta.shape[0] / groups, meta.shape[1]);
    let patches = (0..window.rank()).map(|axis| Patch {
        by_column: window.dilation[axis] as isize,
        by_depth: window.stride[axis] as isize,
        before: window.before[axis] as isize,
        divisor: 1,
        size: x.dims()[2 + axis],
        stride: x.layout().strides()[2 + axis],
    });
    let strides = row_major(&meta.shape);
    let output = grouped(&strides, 0, per_group);
    let grads = grouped(grad.layout().strides(), 1, per_group);
    let images = grouped(x.layout().strides(), 1, channels);
    let none: SmallVec<[isize; 4]> = smallvec![0; window.rank()];
    let columns = Axes { outer: channels, spatial: &op.kernel };
    let depth = Axes { outer: grad.dims()[0], spatial: &grad.dims()[2..] };
    Product {
        name: "conv_weight_grad",
        a: grad,
        b: x,
        extra: &[],
        epilogue: Expr::identity(),
        batch: line(groups, [output.group, grads.group, images.group]),
        rows: line(per_group, [output.outer, grads.channel]),
        columns: columns.plan([(output.channel, output.spatial), (images.channel, &none[..])]),
        depth: depth.plan([(grads.outer, grads.spatial), (images.outer, &none[..])]),
        along: [true, true],
        patches: patches.collect(),
    }
    .simplified()
    .run(cx, meta)
}

/// A plan of one axis.
fn line(n: usize, strides: impl IntoIterator<Item = isize>) -> Plan {
    Plan { dims: smallvec![n], strides: strides.into_iter().map(|stride| smallvec![stride]).collect() }
}

/// One axis, then the spatial ones: kept apart, so that coordinates are found from a place.
struct Axes<'a> {
    outer: usize,
    spatial: &'a [usize],
}

impl Axes<'_> {
    /// The plan of operands with these strides.
    fn plan<'s>(&self, operands: impl IntoIterator<Item = (isize, &'s [isize])>) -> Plan {
        let join = |(outer, spatial): (isize, &'s [isize])| std::iter::once(outer).chain(spatial.iter().copied());
        let dims: SmallVec<[usize; 4]> = std::iter::once(self.outer).chain(self.spatial.iter().copied()).collect();
        Plan { dims, strides: operands.into_iter().map(|operand| join(operand).collect()).collect() }
    }
}
