//! Pooling: averages are reductions over a view of the padded input; the maximum is in `extremum.rs`.

use smallvec::SmallVec;
use tensor_core::expr::build;
use tensor_core::op::{AvgPoolGrad, Fill, Pool, PoolKind, Reduce, ReduceKind};
use tensor_core::{DType, Dims, Layout, Meta, Number, Result, Shape, Storages, Tensor};

use super::contract::{padded, spread};
use super::{Context, create, extremum, map, reduce, storage};

/// Values, and for the maximum their positions in the plane.
pub(crate) fn pool(cx: &Context, op: &Pool, x: &Tensor, outputs: &[Meta]) -> Result<Storages> {
    match op.kind {
        PoolKind::Max => extremum::max_pool(cx, op, x, outputs),
        PoolKind::Avg { .. } => {
            let window = &op.window;
            let padded = padded(cx, x, &window.before, &window.after, &[0; 8][..window.rank()])?;
            let sums = sums(cx, op, &padded, &window.stride, &outputs[0].shape, x.dtype().compute())?;
            let block = cx.output(&outputs[0])?;
            divide(cx, op, &sums, &x.dims()[2..], outputs[0].dtype, block.address())?;
            Ok(Storages::from_iter([storage(block)]))
        }
    }
}

/// Each gradient spread evenly over its window.
pub(crate) fn avg_grad(cx: &Context, op: &AvgPoolGrad, g: &Tensor, meta: &Meta) -> Result<Storages> {
    // The shares are kept in the type that is computed in.
    let wide = g.dtype().compute();
    let shares = Meta::new(g.shape().clone(), wide);
    let block = cx.output(&shares)?;
    divide(cx, &op.pool, g, &op.spatial, wide, block.address())?;
    let shares = Tensor::from_storage(storage(block), shares, g.place().clone());
    let shares = spread(cx, &shares, &op.pool.window, &op.pool.kernel, &op.spatial)?;
    let ones: Dims = op.spatial.iter().map(|_| 1).collect();
    let view = windows(&op.pool, &shares, &ones, &meta.shape);
    reduce::reduce(cx, &over_taps(op.pool.kernel.len()), &[&view], meta)
}

/// The input's windows as a view [N, C, position…, tap…].
fn windows(op: &Pool, x: &Tensor, stride: &[usize], shape: &[usize]) -> Tensor {
    let dims: Dims = shape.iter().chain(&op.kernel).copied().collect();
    let own = x.layout().strides();
    let mut strides: SmallVec<[isize; 4]> = SmallVec::from_slice(&own[..2]);
    strides.extend(own[2..].iter().zip(stride).map(|(&s, &step)| s * step as isize));
    strides.extend(own[2..].iter().zip(&op.window.dilation).map(|(&s, &step)| s * step as isize));
    x.with_layout(Layout::from_parts(Shape::new(&dims), strides, x.layout().offset()))
}

fn over_taps(rank: usize) -> Reduce {
    let axes: Dims = (2 + rank..2 + 2 * rank).collect();
    Reduce::new("avg_pool", ReduceKind::Sum, &axes, false)
}

/// The sums of all windows of a padded input.
fn sums(cx: &Context, op: &Pool, x: &Tensor, stride: &[usize], shape: &Shape, dtype: DType) -> Result<Tensor> {
    let meta = Meta::new(shape.clone(), dtype);
    let view = windows(op, x, stride, shape);
    let storages = reduce::reduce(cx, &over_taps(op.kernel.len()), &[&view], &meta)?;
    let storage = storages.into_iter().next().expect("invariant: a reduction has one output");
    Ok(Tensor::from_storage(storage, meta, x.place().clone()))
}

/// x over the number of elements of each window of an input of this size.
fn divide(cx: &Context, op: &Pool, x: &Tensor, spatial: &[usize], dtype: DType, to: u64) -> Result<()> {
    let n_taps = op.kernel.iter().product::<usize>() as f64;
    let window = &op.window;
    let counts_all =
        op.kind == PoolKind::Avg { count_padding: true } || window.before.iter().chain(&window.after).all(|&n| n == 0);
    if counts_all {
        return map::run(cx, "avg_pool", &[build(|[x]| (x / n_taps).cast(dtype))], &[x], x.dims(), &[to]);
    }
    let wide = x.dtype().compute();
    let shape: Dims = [1, 1].into_iter().chain(spatial.iter().copied()).collect();
    let meta = Meta::new(Shape::new(&shape), wide);
    let ones = create::fill(cx, &Fill { value: Number::Float(1.0), meta: meta.clone() }, &meta)?;
    let ones = ones.into_iter().next().expect("invariant: a fill has one output");
    let ones = Tensor::from_storage(ones, meta, x.place().clone());
    let ones = padded(cx, &ones, &window.before, &window.after, &[0; 8][..window.rank()])?;
    let counted: Dims = [1, 1].into_iter().chain(x.dims()[2..].iter().copied()).collect();
    let counts = sums(cx, op, &ones, &window.stride, &Shape::new(&counted), wide)?;
    let quotient = build(|[x, n]| (x.cast(wide) / n).cast(dtype));
    map::run(cx, "avg_pool", &[quotient], &[x, &counts], x.dims(), &[to])
}
