//! Elements picked and added by index.

use smallvec::SmallVec;
use tensor_core::expr::{Expr, build};
use tensor_core::op::{Gather, ScatterAdd};
use tensor_core::plan::Plan;
use tensor_core::{DType, Dims, Error, Meta, Result, Storages, Tensor};

use super::context::window;
use super::moves::{self, Moving, row_major};
use super::reduce::narrowed;
use super::rows::{MOST_ITERATIONS, total, wide_tensor};
use super::{Context, map, storage};
use crate::args::Args;
use crate::batch::Window;
use crate::index;
use crate::memory::Block;
use crate::pipeline::Key;
use crate::shader::{Finished, Shader};
use crate::status::Wrong;

/// Elements picked along the axis.
pub(crate) fn gather(cx: &Context, op: &Gather, inputs: &[&Tensor], meta: &Meta) -> Result<Storages> {
    let [x, at] = inputs else { unreachable!("invariant: gather takes two") };
    let to = pick(cx, op.axis, x, at, meta, out_of_range("gather", at, op.axis, x.dims()[op.axis]))?;
    Ok(Storages::from_iter([storage(to)]))
}

/// The error for an index of `at` that is not below `n`.
fn out_of_range(op: &'static str, at: &Tensor, axis: usize, n: usize) -> Wrong {
    let shape = at.shape().clone();
    Box::new(move |index, position| {
        let mut rest = position;
        let mut place: Dims = shape.iter().rev().map(|&size| (rest % size, rest /= size).0).collect();
        place.reverse();
        let text =
            format!("index is out of range: index {index} at {place:?}, axis {axis} has {n}; indices count from 0");
        Error::index(op, text)
    })
}

/// Adds to a kernel with the operand `at` of indices: `checked_index(place, position)` gives the index at a place of it, or
/// `NONE` and notes its position if it is wrong. The parameters are the axis' size and the slot.
fn checked_indices(shader: &mut Shader, dtype: DType) {
    shader.raw("at", dtype.size_bytes());
    shader.atomic("found");
    let (size, slot) = (shader.arg(), shader.arg());
    let is_negative_or_huge = if dtype == DType::I64 { " || raw_at(place, 1u) != 0u" } else { "" };
    shader.push(&format!(
        "const NONE = 0xffffffffu;
fn checked_index(place: u32, position: u32) -> u32 {{
    let picked = raw_at(place, 0u);
    if picked >= {size}{is_negative_or_huge} {{
        atomicMax(&found[{slot}], ~position);
        return NONE;
    }}
    return picked;
}}
"
    ));
}

/// Elements picked along an axis; a wrong index picks the first, so that nothing is left unwritten.
pub(super) fn pick(cx: &Context, axis: usize, x: &Tensor, at: &Tensor, meta: &Meta, wrong: Wrong) -> Result<Block> {
    let to = cx.output(meta)?;
    let (n, size) = (meta.shape.len(), meta.dtype.size_bytes());
    if n == 0 {
        return Ok(to);
    }
    let mut beside: SmallVec<[isize; 4]> = SmallVec::from_slice(x.layout().strides());
    let along = std::mem::replace(&mut beside[axis], 0);
    let plan = Plan::of(&meta.shape, SmallVec::from_iter([beside, SmallVec::from_slice(at.layout().strides())]));
    let rank = plan.rank();
    let text = || {
        let mut moving = Moving::new(size);
        moving.shader.raw("x", size);
        checked_indices(&mut moving.shader, at.dtype());
        let places = index::places(&mut moving.shader, rank, "i", &["at_x".to_string(), "place".to_string()]);
        let along = moving.shader.arg();
        Ok(moving.finish(&format!(
            "{places}    let picked = checked_index(place, i);
    return raw_x(at_x + select(picked, 0u, picked == NONE) * {along}, half);
"
        )))
    };
    cx.status.watch(&cx.batch, at, wrong, |slot| {
        let mut args = Moving::args(n, size, 0);
        args.push(x.dims()[axis]);
        args.push(slot);
        index::push_places(&mut args, &plan, [x.layout().offset(), at.layout().offset()]);
        args.push_signed(along);
        let windows = [Window::all(to.buffer()), window(x), window(at), cx.status.window()];
        let key = Key::new("gather", [size as u64, rank as u64, at.dtype() as u64]);
        cx.run_elements("gather", key, text, &windows, &args, Moving::words(n, size), 1)
    })?;
    Ok(to)
}

/// Elements added along the axis: an invocation for every position beside the axis adds its elements one after the other, so
/// that repeated indices neither collide nor change the order.
pub(crate) fn scatter_add(cx: &Context, op: &ScatterAdd, inputs: &[&Tensor], meta: &Meta) -> Result<Storages> {
    let [x, at, source] = inputs else { unreachable!("invariant: scatter_add takes three") };
    let (dtype, wide) = (meta.dtype, total(meta.dtype));
    let sum = if dtype == wide {
        moves::contiguous(cx, x)?
    } else {
        let sum = cx.output(&Meta::new(meta.shape.clone(), wide))?;
        let widened: Expr = build(|[x]| x.cast(wide));
        map::run(cx, "scatter_add", &[widened], &[x], x.dims(), &[sum.buffer()])?;
        sum
    };
    if !at.is_empty() {
        let wrong = out_of_range("scatter_add", at, op.axis, meta.shape[op.axis]);
        cx.status.watch(&cx.batch, at, wrong, |slot| add(cx, op.axis, at, source, meta, &sum, slot))?;
    }
    narrowed(cx, "scatter_add", wide_tensor(sum, meta, x), meta)
}

fn add(cx: &Context, axis: usize, at: &Tensor, source: &Tensor, meta: &Meta, sum: &Block, slot: usize) -> Result<()> {
    let mut beside: SmallVec<[usize; 4]> = SmallVec::from_slice(at.dims());
    let depth = std::mem::replace(&mut beside[axis], 1);
    let target = row_major(&meta.shape);
    let of = SmallVec::from_slice;
    let plan =
        Plan::of(&beside, SmallVec::from_iter([of(&target), of(at.layout().strides()), of(source.layout().strides())]));
    let (n, rank) = (plan.len(), plan.rank());
    let (at_step, source_step) = (at.layout().strides()[axis], source.layout().strides()[axis]);
    let inner: usize = at.dims()[axis + 1..].iter().product();
    // One dispatch after the other keeps the order.
    for first in (0..depth).step_by(MOST_ITERATIONS) {
        let mut args = Args::new();
        args.push(n);
        args.push(meta.shape[axis]);
        args.push(slot);
        let moved = |x: &Tensor, step: isize| x.layout().offset().wrapping_add_signed(first as isize * step);
        index::push_places(&mut args, &plan, [0, moved(at, at_step), moved(source, source_step)]);
        args.push(MOST_ITERATIONS.min(depth - first));
        args.push_signed(target[axis]);
        args.push_signed(at_step);
        args.push_signed(source_step);
        args.push(inner);
        args.push((depth - 1) * inner);
        args.push(first * inner);
        let windows = [Window::all(sum.buffer()), window(at), cx.status.window(), window(source)];
        let key = Key::new("scatter_add", [meta.dtype as u64, rank as u64, at.dtype() as u64]);
        cx.run_elements("scatter_add", key, || Ok(add_text(rank, meta.dtype, at.dtype())), &windows, &args, n, 1)?;
    }
    Ok(())
}

fn add_text(rank: usize, dtype: DType, index_dtype: DType) -> Finished {
    let mut shader = Shader::new();
    let count = shader.arg();
    // Integers of 64 bits are added word by word, which every adapter can.
    let sum = if dtype == DType::I64 {
        shader.write_words("sum");
        checked_indices(&mut shader, index_dtype);
        shader.raw("source", 8);
        "        let low = sum[place * 2u];
        let more = raw_source(source_at, 0u);
        sum[place * 2u] = low + more;
        sum[place * 2u + 1u] += raw_source(source_at, 1u) + select(0u, 1u, low + more < low);
"
    } else {
        shader.update("sum", total(dtype));
        checked_indices(&mut shader, index_dtype);
        shader.read("source", dtype);
        "        sum[place] = load_sum(place) + load_source(source_at);\n"
    };
    let names = ["to", "index_at", "source_at"].map(String::from);
    let places = index::places(&mut shader, rank, "first", &names);
    let [depth, along, index_step, source_step, inner, jump, begin] = std::array::from_fn(|_| shader.arg());
    let body = format!(
        "{places}    var position = first + first / {inner} * {jump} + {begin};
    for (var k = 0u; k < {depth}; k++) {{
        let picked = checked_index(index_at, position);
        if picked == NONE {{
            return;
        }}
        let place = to + picked * {along};
{sum}        index_at += {index_step};
        source_at += {source_step};
        position += {inner};
    }}"
    );
    let entry = include_str!("../../shaders/element.wgsl")
        .replace("{{PER}}", "1")
        .replace("{{COUNT}}", &count)
        .replace("{{STORES}}", &body);
    shader.finish(&entry)
}
