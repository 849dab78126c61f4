//! Stable sort: a bitonic network over pairs of value and position (Batcher, 1968), of which no two are equal.
//!
//! Lanes are padded to a power of two with places that come last. Each step of the network is a launch, so that lanes of any
//! length are sorted; a ladder would keep the steps within a block in shared memory.

use smallvec::SmallVec;
use tensor_core::expr::build;
use tensor_core::expr::lower::lower;
use tensor_core::op::Sort;
use tensor_core::{DType, Meta, Result, Storages, Tensor};

use super::copy::row_major;
use super::{Context, Text, address, storage};
use crate::args::Args;
use crate::driver::Function;
use crate::emit::{self, Body};
use crate::index;
use crate::module::Key;
use tensor_core::plan::Plan;

/// Values in order, and their positions before.
pub(crate) fn sort(cx: &Context, op: &Sort, x: &Tensor, outputs: &[Meta]) -> Result<Storages> {
    let blocks = [cx.output(&outputs[0])?, cx.output(&outputs[1])?];
    let (dtype, axis) = (x.dtype(), op.axis);
    let depth = x.dims()[axis];
    if !x.is_empty() {
        let padded = depth.next_power_of_two();
        let n = x.len() / depth * padded;
        let size = dtype.size_bytes();
        let (keys, places) = (cx.pool.take(n * size)?, cx.pool.take(n * 4)?);
        // The axis last, so that a lane's elements lie together.
        let turned = |of: &[isize]| -> SmallVec<[isize; 4]> {
            (0..of.len()).filter(|&a| a != axis).chain([axis]).map(|a| of[a]).collect()
        };
        let dims = |last: usize| -> SmallVec<[usize; 4]> {
            (0..x.rank()).filter(|&a| a != axis).map(|a| x.dims()[a]).chain([last]).collect()
        };
        let sizes = [size, 8];

        let plan = Plan::of(&dims(padded), SmallVec::from_iter([turned(x.layout().strides())]));
        let function = cx
            .modules
            .get(Key::new("sort_fill", [plan.rank() as u64, dtype as u64]), || Ok(fill_text(plan.rank(), dtype)))?;
        let mut args = Args::default();
        [n as u64, keys.address(), places.address(), address(x)].into_iter().for_each(|v| args.push(v));
        index::push(&mut args, &plan, |_| size);
        [padded as u64 - 1, depth as u64].into_iter().for_each(|v| args.push(v));
        cx.launch("sort", function, n, &args)?;

        let function = cx
            .modules
            .get(Key::new("sort_step", [dtype as u64, op.descending.into()]), || step_text(dtype, op.descending))?;
        for run in (1..=padded.trailing_zeros()).map(|k| 1u64 << k) {
            let mut distance = run / 2;
            while distance > 0 {
                // The last run is the whole lane, upwards.
                let turn = if run == padded as u64 { 0 } else { run };
                step(cx, function, n / 2, [keys.address(), places.address(), turn, distance])?;
                distance /= 2;
            }
        }

        let (to, work) = (turned(&row_major(x.dims())), row_major(&dims(padded)));
        let plan = Plan::of(&dims(depth), SmallVec::from_iter([to.clone(), to, work.clone(), work]));
        let function = cx
            .modules
            .get(Key::new("sort_finish", [plan.rank() as u64, dtype as u64]), || Ok(finish_text(plan.rank(), dtype)))?;
        let mut args = Args::default();
        args.push(x.len() as u64);
        [blocks[0].address(), blocks[1].address(), keys.address(), places.address()]
            .into_iter()
            .for_each(|v| args.push(v));
        index::push(&mut args, &plan, |k| [sizes[0], sizes[1], size, 4][k]);
        cx.launch("sort", function, x.len(), &args)?;
    }
    Ok(blocks.into_iter().map(storage).collect())
}

fn step(cx: &Context, function: Function, n_pairs: usize, parameters: [u64; 4]) -> Result<()> {
    let mut args = Args::default();
    args.push(n_pairs as u64);
    parameters.into_iter().for_each(|v| args.push(v));
    cx.launch("sort", function, n_pairs, &args)
}

fn fill_text(rank: usize, dtype: DType) -> String {
    let mut text = Text::of_elements();
    ["%keys", "%places", "%from"].iter().for_each(|register| text.wide(register));
    let advance = index::advance(&mut text.slots, rank, "%i", &["%from".to_string()]);
    text.push(&advance);
    text.word("%mask");
    text.word("%depth");
    text.register("b32", "%place");
    text.register("pred", "%is_padding");
    text.value(dtype, "%x");
    text.advance("%keys", "%i", dtype.size_bytes());
    text.advance("%places", "%i", 4);
    text.line("and.b32 %place, %i, %mask;");
    text.line("setp.ge.u32 %is_padding, %place, %depth;");
    text.line("@%is_padding bra $padding;");
    text.push(&emit::load(dtype, "%x", "%from"));
    text.push(&emit::store(dtype, "%keys", "%x"));
    text.line("st.global.b32 [%places], %place;");
    text.line("ret;");
    text.push("$padding:\n");
    text.line(super::reduce::neutral(tensor_core::op::ReduceKind::Sum, dtype.compute(), "%x"));
    text.push(&emit::store(dtype, "%keys", "%x"));
    text.line("st.global.b32 [%places], -1;");
    text.element("sort_fill")
}

fn step_text(dtype: DType, descending: bool) -> Result<String> {
    let wide = dtype.compute();
    let before = match (wide, descending) {
        (DType::Bool, false) => build(|[x, y]| y.and(x.not())),
        (DType::Bool, true) => build(|[x, y]| x.and(y.not())),
        (dtype, false) if dtype.is_float() => build(|[x, y]| x.lt(y).or(y.is_nan().and(x.is_nan().not()))),
        (dtype, true) if dtype.is_float() => build(|[x, y]| x.gt(y).or(y.is_nan().and(x.is_nan().not()))),
        (_, false) => build(|[x, y]| x.lt(y)),
        (_, true) => build(|[x, y]| x.gt(y)),
    };
    let before = lower("sort", &[before], &[wide, wide])?;
    let mut text = Text::of_elements();
    ["%keys", "%places"].iter().for_each(|register| text.wide(register));
    text.word("%run");
    text.word("%distance");
    for register in ["%low", "%high", "%p", "%q"] {
        text.register("b32", register);
    }
    for register in ["%key_p", "%key_q", "%place_p", "%place_q"] {
        text.register("b64", register);
    }
    for register in ["%is_before", "%is_after", "%swaps", "%is_up", "%is_last"] {
        text.register("pred", register);
    }
    ["%x", "%y"].iter().for_each(|register| text.value(wide, register));
    // Pair i is of the elements low and low + distance.
    text.line("{ .reg .b32 %t_m, %t_o; sub.u32 %t_m, %distance, 1; and.b32 %t_o, %i, %t_m; sub.u32 %low, %i, %t_o;");
    text.line("  shl.b32 %low, %low, 1; add.s32 %low, %low, %t_o; add.s32 %high, %low, %distance; }");
    text.line("{ .reg .b32 %t_m; and.b32 %t_m, %low, %run; setp.eq.b32 %is_up, %t_m, 0; }");
    for (place, key, index) in [("%place_p", "%key_p", "%low"), ("%place_q", "%key_q", "%high")] {
        text.line(format!("mov.b64 {place}, %places;"));
        text.advance(place, index, 4);
        text.line(format!("mov.b64 {key}, %keys;"));
        text.advance(key, index, dtype.size_bytes());
    }
    text.line("ld.global.b32 %p, [%place_p];");
    text.line("ld.global.b32 %q, [%place_q];");
    text.push(&emit::load(dtype, "%x", "%key_p"));
    text.push(&emit::load(dtype, "%y", "%key_q"));
    let (xy, yx) = (["%x".to_string(), "%y".to_string()], ["%y".to_string(), "%x".to_string()]);
    let (is_before, is_after) = (["%is_before".to_string()], ["%is_after".to_string()]);
    text.push(&Body { lowered: &before, inputs: &xy, numbers: &[], outputs: &is_before }.text());
    text.push(&Body { lowered: &before, inputs: &yx, numbers: &[], outputs: &is_after }.text());
    // Equals keep the order of their places; padding, the place −1, comes last.
    text.line("not.pred %is_after, %is_after;");
    text.line("setp.lt.and.u32 %is_last, %p, %q, %is_after;");
    text.line("or.pred %is_before, %is_before, %is_last;");
    text.line("setp.ne.and.s32 %is_before, %p, -1, %is_before;");
    text.line("setp.eq.or.s32 %is_before, %q, -1, %is_before;");
    // Upwards the first comes first, downwards the second.
    text.line("xor.pred %swaps, %is_before, %is_up;");
    text.line("not.pred %is_last, %swaps;");
    text.line("@%is_last ret;");
    text.push(&emit::store(dtype, "%key_p", "%y"));
    text.push(&emit::store(dtype, "%key_q", "%x"));
    text.line("st.global.b32 [%place_p], %q;");
    text.line("st.global.b32 [%place_q], %p;");
    Ok(text.element("sort_step"))
}

fn finish_text(rank: usize, dtype: DType) -> String {
    let mut text = Text::of_elements();
    let places: Vec<String> = ["%to", "%to_place", "%keys", "%places"].map(String::from).into();
    places.iter().for_each(|place| text.wide(place));
    let advance = index::advance(&mut text.slots, rank, "%i", &places);
    text.push(&advance);
    text.value(dtype, "%x");
    text.register("b64", "%place");
    text.push(&emit::load(dtype, "%x", "%keys"));
    text.push(&emit::store(dtype, "%to", "%x"));
    text.line("{ .reg .b32 %t_w; ld.global.b32 %t_w, [%places]; cvt.u64.u32 %place, %t_w; }");
    text.line("st.global.b64 [%to_place], %place;");
    text.element("sort_finish")
}
