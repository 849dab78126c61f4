//! Positions of extrema: along an axis, and of the elements of a window.

use tensor_core::expr::build;
use tensor_core::expr::lower::lower;
use tensor_core::op::{ArgReduce, Pool};
use tensor_core::{DType, Meta, Record, Result, Storages, Tensor};

use super::context::THREADS;
use super::{Context, Text, address, names, reduce, storage};
use crate::args::Args;
use crate::emit::{self, Body};
use crate::index;
use crate::module::Key;

/// From so many elements on a block looks at them together.
const BLOCK_TERMS: usize = 64;

/// The first position of the extremum.
pub(crate) fn arg_reduce(cx: &Context, op: &ArgReduce, x: &Tensor, meta: &Meta) -> Result<Storages> {
    let block = cx.output(meta)?;
    let n = meta.shape.len();
    if n > 0 {
        let (kept, folded) = reduce::plans(&[x], &[op.axis]);
        let depth = folded.len();
        let is_block = depth >= BLOCK_TERMS;
        let dtype = x.dtype();
        let structure = [op.max.into(), is_block.into(), kept.rank() as u64, folded.rank() as u64, dtype as u64];
        let function = cx.modules.get(Key::new("arg_reduce", structure), || {
            let mut text = Text::default();
            let _ = (text.slots.next(), text.slots.next());
            ["%to", "%from"].iter().for_each(|register| text.wide(register));
            let from = ["%from".to_string()];
            let advance = index::advance(&mut text.slots, kept.rank(), "%i", &from);
            text.push(&advance);
            text.register("b64", "%place_at");
            let term = |text: &mut Text| {
                text.line("mov.b64 %place_at, %from;");
                let advance = index::advance(&mut text.slots, folded.rank(), "%r", &["%place_at".to_string()]);
                text.push(&advance);
                text.push(&emit::load(dtype, "%term", "%place_at"));
                text.line("mov.b32 %place, %r;");
            };
            let finish = |text: &mut Text| {
                text.advance("%to", "%i", 8);
                text.line("{ .reg .b64 %t_w; cvt.u64.u32 %t_w, %best; st.global.b64 [%to], %t_w; }");
            };
            finished(text, "arg_reduce", op.max, dtype, is_block, term, finish)
        })?;
        let mut args = Args::default();
        args.push(n as u64);
        args.push(depth as u64);
        args.push(block.address());
        args.push(address(x));
        let size = |_| dtype.size_bytes();
        index::push(&mut args, &kept, size);
        index::push(&mut args, &folded, size);
        if is_block {
            cx.launch_blocks(op.name(), function, n.max(depth), [n as u32, 1, 1], [THREADS, 1, 1], 0, &args)?;
        } else {
            cx.launch(op.name(), function, n, &args)?;
        }
    }
    Ok(Storages::from_iter([storage(block)]))
}

/// The largest element of every window and its position in the plane; padding never wins.
pub(crate) fn max_pool(cx: &Context, op: &Pool, x: &Tensor, outputs: &[Meta]) -> Result<Storages> {
    let blocks = [cx.output(&outputs[0])?, cx.output(&outputs[1])?];
    let (n, dtype) = (outputs[0].shape.len(), x.dtype());
    let rank = op.window.rank();
    if n > 0 {
        let key = Key::new("max_pool", [rank as u64, dtype as u64]);
        let function = cx.modules.get(key, || max_pool_text(rank, dtype))?;
        let mut args = Args::default();
        let depth: usize = op.kernel.iter().product();
        args.push(n as u64);
        args.push(depth as u64);
        blocks.iter().for_each(|block| args.push(block.address()));
        args.push(address(x));
        index::push_coordinates(&mut args, &outputs[0].shape);
        let (strides, size) = (x.layout().strides(), dtype.size_bytes() as i64);
        (0..2).for_each(|axis| args.push_signed(strides[axis] as i64 * size));
        index::push_coordinates(&mut args, &op.kernel);
        for axis in 0..rank {
            args.push(op.window.stride[axis] as u64);
            args.push(op.window.dilation[axis] as u64);
            args.push(op.window.before[axis] as u64);
            args.push(x.dims()[2 + axis] as u64);
            args.push_signed(strides[2 + axis] as i64 * size);
        }
        cx.launch("max_pool", function, n, &args)?;
    }
    Ok(blocks.into_iter().map(storage).collect())
}

fn max_pool_text(rank: usize, dtype: DType) -> Result<String> {
    let mut text = Text::default();
    let _ = (text.slots.next(), text.slots.next());
    ["%to", "%to_place", "%from"].iter().for_each(|register| text.wide(register));
    let at = names("c", 2 + rank);
    at.iter().for_each(|c| text.register("b32", c));
    let apart = index::coordinates(&mut text.slots, "%i", &at);
    text.push(&apart);
    for c in &at[..2] {
        let slot = text.slots.next();
        text.line(format!(
            "{{ .reg .b64 %t_w, %t_s; ld.param.u64 %t_s, {slot}; cvt.u64.u32 %t_w, {c}; mad.lo.s64 %from, %t_w, %t_s, %from; }}"
        ));
    }
    let taps = names("k", rank);
    taps.iter().for_each(|k| text.register("b32", k));
    text.register("b64", "%place_at");
    text.register("pred", "%is_inside");
    let term = |text: &mut Text| {
        let apart = index::coordinates(&mut text.slots, "%r", &taps);
        text.push(&apart);
        text.line("mov.b64 %place_at, %from;");
        text.line("mov.b32 %place, 0;");
        text.line("setp.eq.u32 %is_inside, %r, %r;");
        for (c, k) in at[2..].iter().zip(&taps) {
            let [stride, dilation, before, size, step] = std::array::from_fn(|_| text.slots.next());
            text.line(format!(
                "{{ .reg .b32 %t_s, %t_x; .reg .b64 %t_w, %t_y; ld.param.u32 %t_s, {stride}; mul.lo.u32 %t_x, {c}, %t_s; \
                 ld.param.u32 %t_s, {dilation}; mad.lo.u32 %t_x, {k}, %t_s, %t_x; ld.param.u32 %t_s, {before}; \
                 sub.u32 %t_x, %t_x, %t_s; ld.param.u32 %t_s, {size}; setp.lt.and.u32 %is_inside, %t_x, %t_s, %is_inside; \
                 mad.lo.u32 %place, %place, %t_s, %t_x; ld.param.u64 %t_y, {step}; cvt.s64.s32 %t_w, %t_x; \
                 mad.lo.s64 %place_at, %t_w, %t_y, %place_at; }}"
            ));
        }
        text.line("selp.b32 %place, %place, -1, %is_inside;");
        // A place in the padding is read at the first element, and never wins.
        text.line("selp.b64 %place_at, %place_at, %from, %is_inside;");
        text.push(&emit::load(dtype, "%term", "%place_at"));
    };
    let finish = |text: &mut Text| {
        text.advance("%to", "%i", dtype.size_bytes());
        text.push(&emit::store(dtype, "%to", "%total"));
        text.advance("%to_place", "%i", 4);
        text.line("st.global.b32 [%to_place], %best;");
    };
    finished(text, "max_pool", true, dtype, false, term, finish)
}

/// A fold of values `%term` with their places `%place`, of which −1 is none, into the best one, `%total` at `%best`: NaN
/// before numbers, of equals the one with the smallest place.
fn finished(
    mut text: Text,
    name: &str,
    is_max: bool,
    dtype: DType,
    is_block: bool,
    term: impl FnOnce(&mut Text),
    finish: impl FnOnce(&mut Text),
) -> Result<String> {
    let wide = dtype.compute();
    let beats = match (wide, is_max) {
        (DType::Bool, true) => build(|[x, y]| x.and(y.not())),
        (DType::Bool, false) => build(|[x, y]| y.and(x.not())),
        (dtype, true) if dtype.is_float() => build(|[x, y]| x.gt(y).or(x.is_nan().and(y.is_nan().not()))),
        (dtype, false) if dtype.is_float() => build(|[x, y]| x.lt(y).or(x.is_nan().and(y.is_nan().not()))),
        (_, true) => build(|[x, y]| x.gt(y)),
        (_, false) => build(|[x, y]| x.lt(y)),
    };
    let beats = lower(name_of(is_max), &[beats], &[wide, wide])?;
    ["%total", "%term"].iter().for_each(|register| text.value(wide, register));
    ["%best", "%place"].iter().for_each(|register| text.register("b32", register));
    ["%wins", "%loses", "%takes"].iter().for_each(|register| text.register("pred", register));
    // Written so that it is defined: with the place −1 it counts for nothing.
    text.line(reduce::neutral(tensor_core::op::ReduceKind::Sum, wide, "%total"));
    text.line("mov.b32 %best, -1;");
    let start = text.take();
    term(&mut text);
    let term = text.take();
    let (values, turned) = (["%term".to_string(), "%total".to_string()], ["%total".to_string(), "%term".to_string()]);
    let (wins, loses) = (["%wins".to_string()], ["%loses".to_string()]);
    text.push(&Body { lowered: &beats, inputs: &values, numbers: &[], outputs: &wins }.text());
    text.push(&Body { lowered: &beats, inputs: &turned, numbers: &[], outputs: &loses }.text());
    text.line("not.pred %loses, %loses;");
    text.line("setp.lt.and.u32 %takes, %place, %best, %loses;");
    text.line("or.pred %takes, %takes, %wins;");
    text.line("setp.eq.or.s32 %takes, %best, -1, %takes;");
    text.line("setp.ne.and.s32 %takes, %place, -1, %takes;");
    text.line("selp.b32 %best, %place, %best, %takes;");
    let ty = emit::register_type(tensor_core::expr::lower::LowType::of(wide));
    text.line(format!("@%takes mov.{ty} %total, %term;"));
    let combine = text.take();
    if is_block {
        text.register("b32", "%places");
    }
    finish(&mut text);
    let finish = text.take();
    let source = if is_block {
        text.declare("    .shared .align 4 .b8 best_places[1024];");
        let at = |thread: &str| {
            format!("    mov.u32 %places, best_places;\n    mad.lo.u32 %places, {thread}, 4, %places;\n")
        };
        let put =
            reduce::shared(wide, "%mine", "%total", true) + &at("%thread") + "    st.shared.b32 [%places], %best;\n";
        let get = reduce::shared(wide, "%other", "%term", false)
            + &at("%thread")
            + "    mad.lo.u32 %places, %half, 4, %places;\n    ld.shared.b32 %place, [%places];\n";
        text.skeleton(include_str!("../../kernels/reduce_block.ptx"), name).put("PUT", put).put("GET", get)
    } else {
        text.skeleton(include_str!("../../kernels/reduce_each.ptx"), name)
    };
    Ok(source.put("START", start).put("TERM", term).put("COMBINE", combine).put("FINISH", finish).finish())
}

fn name_of(is_max: bool) -> &'static str {
    if is_max { "argmax" } else { "argmin" }
}
