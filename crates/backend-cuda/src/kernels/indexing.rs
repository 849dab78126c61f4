//! Elements picked and added by index.

use smallvec::SmallVec;
use tensor_core::expr::lower::lower;
use tensor_core::expr::{Expr, build};
use tensor_core::op::{Gather, ScatterAdd};
use tensor_core::{DType, Dims, Error, Meta, Result, Storages, Tensor};

use super::context::THREADS;
use super::copy::{self, row_major};
use super::{Context, Text, address, map, storage};
use crate::args::Args;
use crate::driver::Address;
use crate::emit::{self, Body};
use crate::index;
use crate::memory::Block;
use crate::module::Key;
use crate::status::Wrong;
use tensor_core::plan::Plan;

/// Elements picked along the axis.
pub(crate) fn gather(cx: &Context, op: &Gather, inputs: &[&Tensor], meta: &Meta) -> Result<Storages> {
    let [x, at] = inputs else { unreachable!("invariant: gather takes two") };
    pick(cx, op.axis, x, at, meta, out_of_range("gather", at, op.axis, x.dims()[op.axis]))
}

/// The error for an index of `at` that is not below `n`.
fn out_of_range(op: &'static str, at: &Tensor, axis: usize, n: usize) -> Wrong {
    let shape = at.shape().clone();
    Box::new(move |index, element| {
        let mut rest = element;
        let mut place: Dims = shape.iter().rev().map(|&size| (rest % size, rest /= size).0).collect();
        place.reverse();
        let text =
            format!("index is out of range: index {index} at {place:?}, axis {axis} has {n}; indices count from 0");
        Error::index(op, text)
    })
}

/// Elements picked along an axis.
pub(super) fn pick(cx: &Context, axis: usize, x: &Tensor, at: &Tensor, meta: &Meta, wrong: Wrong) -> Result<Storages> {
    let block = cx.output(meta)?;
    let (n, size) = (meta.shape.len(), meta.dtype.size_bytes());
    if n > 0 {
        let of = SmallVec::from_slice;
        let plan = Plan::of(
            &meta.shape,
            SmallVec::from_iter([without(x.layout().strides(), axis), of(at.layout().strides())]),
        );
        let key = Key::new("gather", [plan.rank() as u64, size as u64, at.dtype() as u64]);
        let function = cx.modules.get(key, || Ok(gather_text(plan.rank(), size, at.dtype())))?;
        let mut args = Args::default();
        args.push(n as u64);
        args.push(block.address());
        args.push(address(x));
        args.push(address(at));
        index::push(&mut args, &plan, |k| if k == 0 { size } else { at.dtype().size_bytes() });
        args.push(x.dims()[axis] as u64);
        args.push_signed(x.layout().strides()[axis] as i64 * size as i64);
        args.push(cx.status.slot(&*cx.driver, wrong)?);
        cx.launch("gather", function, n, &args)?;
    }
    Ok(Storages::from_iter([storage(block)]))
}

/// The strides with one axis standing still.
fn without(strides: &[isize], axis: usize) -> SmallVec<[isize; 4]> {
    let mut strides: SmallVec<[isize; 4]> = SmallVec::from_slice(strides);
    strides[axis] = 0;
    strides
}

/// Loads an index into `%at` and sets `%is_outside`; a wrong one is noted in the slot, for the element `%element`.
fn checked_index(text: &mut Text, dtype: DType, from: &str) {
    text.line(match dtype {
        DType::I32 => format!("{{ .reg .b32 %t_w; ld.global.b32 %t_w, [{from}]; cvt.s64.s32 %at, %t_w; }}"),
        _ => format!("ld.global.b64 %at, [{from}];"),
    });
    text.line("setp.ge.u64 %is_outside, %at, %size;");
    text.line(
        "{ .reg .b64 %t_v, %t_e, %t_o; max.s64 %t_v, %at, -4294967296; min.s64 %t_v, %t_v, 4294967295; \
         and.b64 %t_v, %t_v, 0x1FFFFFFFF; cvt.u64.u32 %t_e, %element; shl.b64 %t_e, %t_e, 33; or.b64 %t_v, %t_v, %t_e; \
         @%is_outside atom.global.min.u64 %t_o, [%status], %t_v; }",
    );
}

/// Declares what [`checked_index`] needs.
fn declare_index(text: &mut Text) {
    text.wide("%size");
    text.wide("%along");
    text.wide("%status");
    text.register("b64", "%at");
    text.register("b32", "%element");
    text.register("pred", "%is_outside");
}

fn gather_text(rank: usize, size: usize, index_dtype: DType) -> String {
    let mut text = Text::of_elements();
    let places = ["%from".to_string(), "%index".to_string()];
    text.wide("%to");
    places.iter().for_each(|place| text.wide(place));
    let advance = index::advance(&mut text.slots, rank, "%i", &places);
    text.push(&advance);
    declare_index(&mut text);
    text.line("mov.b32 %element, %i;");
    checked_index(&mut text, index_dtype, "%index");
    // A wrong index picks the first element, so that nothing is left unwritten.
    text.line("selp.b64 %at, 0, %at, %is_outside;");
    text.line("mad.lo.s64 %from, %at, %along, %from;");
    text.register(copy::register(size), "%x");
    text.line(copy::load(size, "%x", "%from"));
    text.advance("%to", "%i", size);
    text.line(copy::store(size, "%to", "%x"));
    text.element("gather")
}

/// Elements added along the axis: a thread for every position beside the axis adds its elements one after the other, so
/// that repeated indices neither collide nor change the order.
pub(crate) fn scatter_add(cx: &Context, op: &ScatterAdd, inputs: &[&Tensor], meta: &Meta) -> Result<Storages> {
    let [x, at, source] = inputs else { unreachable!("invariant: scatter_add takes three") };
    let dtype = meta.dtype;
    // 16-bit floats are added up in f32.
    let wide = dtype.compute();
    let block = cx.pool.take(meta.shape.len() * wide.size_bytes())?;
    if dtype == wide {
        copy::run(cx, "scatter_add", x, block.address())?;
    } else {
        cast(cx, x, wide, block.address())?;
    }
    if !at.is_empty() {
        add(cx, op, at, source, meta, &block)?;
    }
    if dtype == wide {
        return Ok(Storages::from_iter([storage(block)]));
    }
    let sum = Tensor::from_storage(storage(block), Meta::new(meta.shape.clone(), wide), x.place().clone());
    let narrow = cx.output(meta)?;
    cast(cx, &sum, dtype, narrow.address())?;
    Ok(Storages::from_iter([storage(narrow)]))
}

fn cast(cx: &Context, x: &Tensor, dtype: DType, to: Address) -> Result<()> {
    let expr: Expr = build(|[x]| x.cast(dtype));
    map::run(cx, "cast", &[expr], &[x], x.dims(), &[to])
}

fn add(cx: &Context, op: &ScatterAdd, at: &Tensor, source: &Tensor, meta: &Meta, block: &Block) -> Result<()> {
    let (dtype, wide) = (meta.dtype, meta.dtype.compute());
    let axis = op.axis;
    let mut dims: SmallVec<[usize; 4]> = SmallVec::from_slice(at.dims());
    let depth = std::mem::replace(&mut dims[axis], 1);
    let target = row_major(&meta.shape);
    let of = SmallVec::from_slice;
    let plan =
        Plan::of(&dims, SmallVec::from_iter([of(&target), of(at.layout().strides()), of(source.layout().strides())]));
    let key = Key::new("scatter_add", [plan.rank() as u64, dtype as u64, at.dtype() as u64]);
    let function = cx.modules.get(key, || scatter_text(plan.rank(), dtype, at.dtype()))?;
    let (size, index_size) = (dtype.size_bytes(), at.dtype().size_bytes());
    let mut args = Args::default();
    args.push(plan.len() as u64);
    args.push(block.address());
    args.push(address(at));
    args.push(address(source));
    index::push(&mut args, &plan, |k| [wide.size_bytes(), index_size, size][k]);
    args.push(meta.shape[axis] as u64);
    args.push_signed(target[axis] as i64 * wide.size_bytes() as i64);
    args.push(cx.status.slot(&*cx.driver, out_of_range("scatter_add", at, axis, meta.shape[axis]))?);
    args.push(depth as u64);
    args.push_signed(at.layout().strides()[axis] as i64 * index_size as i64);
    args.push_signed(source.layout().strides()[axis] as i64 * size as i64);
    // The row-major position of an element: of the coordinates before the axis, on it, and after it.
    args.push(at.dims()[axis + 1..].iter().product::<usize>() as u64);
    let blocks = plan.len().div_ceil(THREADS as usize) as u32;
    cx.launch_blocks("scatter_add", function, at.len(), [blocks, 1, 1], [THREADS, 1, 1], 0, &args)
}

fn scatter_text(rank: usize, dtype: DType, index_dtype: DType) -> Result<String> {
    let wide = dtype.compute();
    let sum = lower("scatter_add", &[build(|[x, y]| x + y)], &[wide, wide])?;
    let mut text = Text::of_elements();
    let places = ["%to".to_string(), "%index".to_string(), "%source".to_string()];
    places.iter().for_each(|place| text.wide(place));
    let advance = index::advance(&mut text.slots, rank, "%i", &places);
    text.push(&advance);
    declare_index(&mut text);
    text.word("%depth");
    text.wide("%index_step");
    text.wide("%source_step");
    text.word("%inner");
    text.register("b32", "%k");
    text.register("b64", "%place");
    text.register("pred", "%goes_on");
    ["%x", "%y"].iter().for_each(|register| text.value(wide, register));
    text.line("{ .reg .b32 %t_o; div.u32 %t_o, %i, %inner; mul.lo.u32 %element, %t_o, %inner; sub.u32 %element, %i, %element;");
    text.line("  mul.lo.u32 %t_o, %t_o, %depth; mad.lo.u32 %element, %t_o, %inner, %element; }");
    text.line("mov.b32 %k, 0;");
    text.push("$next:\n");
    checked_index(&mut text, index_dtype, "%index");
    text.line("@%is_outside ret;");
    text.line("mad.lo.s64 %place, %at, %along, %to;");
    text.push(&emit::load(wide, "%x", "%place"));
    text.push(&emit::load(dtype, "%y", "%source"));
    let (operands, result) = (["%x".to_string(), "%y".to_string()], ["%x".to_string()]);
    text.push(&Body { lowered: &sum, inputs: &operands, numbers: &[], outputs: &result }.text());
    text.push(&emit::store(wide, "%place", "%x"));
    text.line("add.s64 %index, %index, %index_step;");
    text.line("add.s64 %source, %source, %source_step;");
    text.line("add.s32 %element, %element, %inner;");
    text.line("add.s32 %k, %k, 1;");
    text.line("setp.lt.u32 %goes_on, %k, %depth;");
    text.line("@%goes_on bra $next;");
    Ok(text.element("scatter_add"))
}
