//! Folds over axes, with an elementwise producer.

use smallvec::{SmallVec, smallvec};
use tensor_core::expr::{Expr, build};
use tensor_core::op::{Concat, Reduce, ReduceKind};
use tensor_core::plan::Plan;
use tensor_core::{DType, Error, Meta, Result, Shape, Storages, Tensor};

use super::context::reach;
use super::rows::{self, Fold, MOST_ITERATIONS, Places, Rows, total};
use super::{Context, map, moves, storage};
use crate::batch::Window;
use crate::memory::Block;

/// So many invocations keep a GPU busy; with fewer, rows are cut into segments.
const BUSY: usize = 1 << 15;
/// So many terms in all are not worth a second dispatch.
const FEW_TERMS: usize = 1 << 14;
/// Nor are so many rounds of an invocation.
const FEW_ROUNDS: usize = 64;

/// y = fold over the axes of producer(x_0, x_1, …).
pub(crate) fn reduce(cx: &Context, op: &Reduce, inputs: &[&Tensor], meta: &Meta) -> Result<Storages> {
    narrowed(cx, op.name, wide(cx, op, inputs, meta)?, meta)
}

/// The result in the type that totals have.
fn wide(cx: &Context, op: &Reduce, inputs: &[&Tensor], meta: &Meta) -> Result<Tensor> {
    let n = meta.shape.len();
    let wide = total(meta.dtype);
    if inputs.iter().any(|x| reach(cx, x).is_none()) {
        return halves(cx, op, inputs, meta);
    }
    let to = cx.output(&Meta::new(meta.shape.clone(), wide))?;
    if n > 0 {
        let dtypes: SmallVec<[DType; 4]> = inputs.iter().map(|x| x.dtype()).collect();
        let (kept, folded) = plans(inputs, &op.axes);
        let depth = folded.len();
        let threads = rows::threads(&kept, &folded, 0, 1);
        let segments = segments(n, depth, threads);
        let parts = (segments > 1).then(|| cx.pool.take(segments * n * wide.size_bytes())).transpose()?;
        let (windows, begins) = inputs.iter().filter_map(|x| reach(cx, x)).unzip();
        let fold = |elements: SmallVec<[DType; 4]>, producer: &Expr| Rows {
            name: op.name,
            types: elements.clone(),
            elements,
            values: SmallVec::new(),
            total: wide,
            folds: smallvec![Fold { kind: op.kind, term: producer.clone(), finish: None }],
            result: None,
            totals: smallvec![0],
        };
        match &parts {
            None => {
                let windows = into(windows, &to);
                fold(dtypes, &op.producer).run(cx, threads, &Places { kept, folded, windows, begins }, 1)?;
            }
            Some(parts) => {
                let windows = into(windows, parts);
                fold(dtypes, &op.producer).run(cx, threads, &Places { kept, folded, windows, begins }, segments)?;
                let (kept, folded) = rows::plans(&[segments, n], &[smallvec![n as isize, 1]], &[0]);
                let threads = rows::threads(&kept, &folded, 0, 1);
                let windows = into(smallvec![Window::all(parts.buffer())], &to);
                let places = Places { kept, folded, windows, begins: smallvec![0] };
                fold(smallvec![wide], &Expr::identity()).run(cx, threads, &places, 1)?;
            }
        }
    }
    Ok(rows::wide_tensor(to, meta, inputs[0]))
}

/// A tensor that cannot be bound as a whole: the halves along its longest axis, then their results.
fn halves(cx: &Context, op: &Reduce, inputs: &[&Tensor], meta: &Meta) -> Result<Tensor> {
    let shape = broadcast(inputs);
    let axis = (0..shape.rank()).max_by_key(|&axis| shape[axis]).unwrap_or(0);
    let half = shape[axis] / 2;
    if half == 0 {
        return Err(Error::unsupported(op.name, "one element is larger than a binding of this adapter can be"));
    }
    let is_folded = op.axes.contains(&axis);
    let before = (0..axis).filter(|axis| op.keepdim || !op.axes.contains(axis)).count();
    let mut parts = SmallVec::<[Tensor; 2]>::new();
    for (start, len) in [(0, half), (half, shape[axis] - half)] {
        let part = |x: &&Tensor| match axis.checked_sub(shape.rank() - x.rank()) {
            Some(own) if x.dims()[own] > 1 => x.narrow(own, start, len),
            _ => Ok((*x).clone()),
        };
        let inputs = inputs.iter().map(part).collect::<Result<SmallVec<[Tensor; 4]>>>()?;
        let mut meta = meta.clone();
        if !is_folded {
            meta.shape = meta.shape.iter().enumerate().map(|(k, &n)| if k == before { len } else { n }).collect();
        }
        parts.push(wide(cx, op, &inputs.iter().collect::<SmallVec<[&Tensor; 4]>>(), &meta)?);
    }
    let whole = Meta::new(meta.shape.clone(), total(meta.dtype));
    let parts = [&parts[0], &parts[1]];
    if !is_folded {
        let joined = moves::concat(cx, &Concat { axis: before }, &parts, &whole)?.remove(0);
        return Ok(Tensor::from_storage(joined, whole, inputs[0].place().clone()));
    }
    let to = cx.output(&whole)?;
    map::run(cx, op.name, &[fold(op.kind)], &parts, &whole.shape, &[to.buffer()])?;
    Ok(rows::wide_tensor(to, meta, inputs[0]))
}

/// The shape that operands broadcast to.
fn broadcast(inputs: &[&Tensor]) -> Shape {
    let joined = |shape: Shape, x: &&Tensor| shape.broadcast(x.shape()).expect("invariant: core checked the broadcast");
    inputs.iter().fold(Shape::default(), joined)
}

/// The operands' windows, then the one that takes the totals.
fn into<'a>(mut windows: SmallVec<[Window<'a>; 8]>, to: &'a Block) -> SmallVec<[Window<'a>; 8]> {
    windows.push(Window::all(to.buffer()));
    windows
}

/// A result in the type that totals have, as the type that it is stored in.
pub(super) fn narrowed(cx: &Context, name: &'static str, x: Tensor, meta: &Meta) -> Result<Storages> {
    if x.dtype() == meta.dtype {
        return Ok(Storages::from_iter([x.storage().clone()]));
    }
    let to = cx.output(meta)?;
    let dtype = meta.dtype;
    map::run(cx, name, &[build(|[x]| x.cast(dtype))], &[&x], &meta.shape, &[to.buffer()])?;
    Ok(Storages::from_iter([storage(to)]))
}

/// Into how many segments rows are cut: by sizes alone, so that the order of the fold is fixed.
pub(super) fn segments(n_rows: usize, depth: usize, threads: usize) -> usize {
    let least = depth.div_ceil(threads * MOST_ITERATIONS);
    if n_rows.saturating_mul(depth) < FEW_TERMS || depth <= threads * FEW_ROUNDS {
        return least.max(1);
    }
    // Sixteen rounds at least, and no empty segment.
    let most = depth / (threads * 16);
    let wanted = (BUSY / n_rows.saturating_mul(threads)).min(most).clamp(least, MOST_ITERATIONS.max(least)).max(1);
    depth.div_ceil(depth.div_ceil(wanted).max(1)).max(1)
}

/// The axes that are kept, and those that are folded, of operands that broadcast to one shape.
pub(super) fn plans(inputs: &[&Tensor], axes: &[usize]) -> (Plan, Plan) {
    let shape = broadcast(inputs);
    let strides: Vec<SmallVec<[isize; 4]>> = inputs
        .iter()
        .map(|x| {
            let layout = x.layout().broadcast_to(&shape).expect("invariant: core checked the broadcast");
            SmallVec::from_slice(layout.strides())
        })
        .collect();
    rows::plans(&shape, &strides, axes)
}

/// The fold of two values as an expression.
pub(super) fn fold(kind: ReduceKind) -> Expr {
    match kind {
        ReduceKind::Sum => build(|[x, y]| x + y),
        ReduceKind::Prod => build(|[x, y]| x * y),
        ReduceKind::Max => build(|[x, y]| x.max(y)),
        ReduceKind::Min => build(|[x, y]| x.min(y)),
    }
}

/// The bits of the value that changes nothing.
pub(super) fn neutral(kind: ReduceKind, dtype: DType) -> u64 {
    let float = match kind {
        ReduceKind::Sum => 0.0,
        ReduceKind::Prod => 1.0,
        ReduceKind::Max => f64::NEG_INFINITY,
        ReduceKind::Min => f64::INFINITY,
    };
    let int = |low: i64, high: i64| match kind {
        ReduceKind::Sum => 0,
        ReduceKind::Prod => 1,
        ReduceKind::Max => low,
        ReduceKind::Min => high,
    };
    match dtype {
        DType::F64 => float.to_bits(),
        DType::F32 | DType::F16 | DType::BF16 => u64::from((float as f32).to_bits()),
        DType::I64 => int(i64::MIN, i64::MAX) as u64,
        DType::I32 => u64::from(int(i32::MIN.into(), i32::MAX.into()) as i32 as u32),
        // Folded as i32.
        DType::U8 => int(0, 255) as u64,
        DType::Bool => int(0, 1) as u64,
    }
}
