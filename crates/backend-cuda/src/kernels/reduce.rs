//! Folds over axes, with an elementwise producer.

use smallvec::SmallVec;
use tensor_core::expr::lower::{LowType, lower};
use tensor_core::expr::{Expr, build};
use tensor_core::op::{Reduce, ReduceKind};
use tensor_core::{DType, Meta, Result, Shape, Storages, Tensor};

use super::context::THREADS;
use super::map::push_numbers;
use super::{Context, Text, address, names, storage};
use crate::args::Args;
use crate::emit::{self, Body};
use crate::index;
use crate::module::Key;
use tensor_core::plan::Plan;

/// From so many terms on a block folds them together, unless there are results enough to keep every thread busy.
const BLOCK_TERMS: usize = 64;
/// So many results keep a GPU busy with one thread each.
const MANY_RESULTS: usize = 1 << 15;

/// y = fold over the axes of producer(x_0, x_1, …).
pub(crate) fn reduce(cx: &Context, op: &Reduce, inputs: &[&Tensor], meta: &Meta) -> Result<Storages> {
    let block = cx.output(meta)?;
    let n = meta.shape.len();
    if n > 0 {
        let dtypes: SmallVec<[DType; 4]> = inputs.iter().map(|x| x.dtype()).collect();
        let (kept, folded) = plans(inputs, &op.axes);
        let depth = folded.len();
        let is_block = depth >= BLOCK_TERMS && (n < MANY_RESULTS || depth >= 1024);
        let structure = [
            op.producer.code.id(),
            op.kind as u64,
            is_block.into(),
            kept.rank() as u64,
            folded.rank() as u64,
            meta.dtype as u64,
        ];
        let key = Key::new("reduce", structure.into_iter().chain(dtypes.iter().map(|&d| d as u64)));
        let function = cx.modules.get(key, || text(op, &dtypes, meta.dtype, is_block, [kept.rank(), folded.rank()]))?;
        let mut args = Args::default();
        args.push(n as u64);
        args.push(depth as u64);
        args.push(block.address());
        inputs.iter().for_each(|x| args.push(address(x)));
        index::push(&mut args, &kept, |k| dtypes[k].size_bytes());
        push_numbers(&mut args, op.name, std::slice::from_ref(&op.producer), &dtypes)?;
        index::push(&mut args, &folded, |k| dtypes[k].size_bytes());
        if is_block {
            let grid = [n as u32, 1, 1];
            cx.launch_blocks(op.name, function, n.max(depth), grid, [THREADS, 1, 1], 0, &args)?;
        } else {
            cx.launch(op.name, function, n.max(depth).min(n), &args)?;
        }
    }
    Ok(Storages::from_iter([storage(block)]))
}

/// The axes that are kept, and those that are folded, of operands that broadcast to one shape.
pub(super) fn plans(inputs: &[&Tensor], axes: &[usize]) -> (Plan, Plan) {
    let shape = inputs
        .iter()
        .fold(Shape::default(), |shape, x| shape.broadcast(x.shape()).expect("invariant: core checked the broadcast"));
    let strides: SmallVec<[SmallVec<[isize; 4]>; 4]> = inputs
        .iter()
        .map(|x| {
            let layout = x.layout().broadcast_to(&shape).expect("invariant: core checked the broadcast");
            SmallVec::from_slice(layout.strides())
        })
        .collect();
    let part = |is_folded: bool| {
        let axes: SmallVec<[usize; 4]> = (0..shape.rank()).filter(|axis| axes.contains(axis) == is_folded).collect();
        let dims: SmallVec<[usize; 4]> = axes.iter().map(|&axis| shape[axis]).collect();
        Plan::of(&dims, strides.iter().map(|all| axes.iter().map(|&axis| all[axis]).collect()).collect())
    };
    (part(false), part(true))
}

/// The fold of two values as an expression, and the value that changes nothing.
pub(super) fn fold(kind: ReduceKind) -> Expr {
    match kind {
        ReduceKind::Sum => build(|[x, y]| x + y),
        ReduceKind::Prod => build(|[x, y]| x * y),
        ReduceKind::Max => build(|[x, y]| x.max(y)),
        ReduceKind::Min => build(|[x, y]| x.min(y)),
    }
}

/// Sets a register to the value that changes nothing.
pub(super) fn neutral(kind: ReduceKind, dtype: DType, register: &str) -> String {
    let is_max = kind == ReduceKind::Max;
    let int = |low: i64, high: i64| match kind {
        ReduceKind::Sum => 0,
        ReduceKind::Prod => 1,
        ReduceKind::Max => low,
        ReduceKind::Min => high,
    };
    match (LowType::of(dtype), kind) {
        (LowType::F32, ReduceKind::Sum) => format!("mov.f32 {register}, 0f00000000;"),
        (LowType::F32, ReduceKind::Prod) => format!("mov.f32 {register}, 0f3F800000;"),
        (LowType::F32, _) => format!("mov.f32 {register}, 0f{};", if is_max { "FF800000" } else { "7F800000" }),
        (LowType::F64, ReduceKind::Sum) => format!("mov.f64 {register}, 0d0000000000000000;"),
        (LowType::F64, ReduceKind::Prod) => format!("mov.f64 {register}, 0d3FF0000000000000;"),
        (LowType::F64, _) => {
            format!("mov.f64 {register}, 0d{};", if is_max { "FFF0000000000000" } else { "7FF0000000000000" })
        }
        (LowType::I32, _) if dtype == DType::U8 => format!("mov.b32 {register}, {};", int(0, 255)),
        (LowType::I32, _) => format!("mov.b32 {register}, {};", int(i32::MIN.into(), i32::MAX.into())),
        (LowType::I64, _) => format!("mov.b64 {register}, {};", int(i64::MIN, i64::MAX)),
        (LowType::Bool, _) => {
            let truth = u32::from(!is_max);
            format!("{{ .reg .b32 %t_k; mov.b32 %t_k, {truth}; setp.ne.b32 {register}, %t_k, 0; }}")
        }
    }
}

/// Writes a register to shared memory, or reads it: truth values as words.
pub(super) fn shared(dtype: DType, address: &str, register: &str, is_store: bool) -> String {
    let ty = emit::register_type(LowType::of(dtype));
    match (LowType::of(dtype), is_store) {
        (LowType::Bool, true) => {
            format!("    {{ .reg .b32 %t_k; selp.b32 %t_k, 1, 0, {register}; st.shared.b32 [{address}], %t_k; }}\n")
        }
        (LowType::Bool, false) => {
            format!("    {{ .reg .b32 %t_k; ld.shared.b32 %t_k, [{address}]; setp.ne.b32 {register}, %t_k, 0; }}\n")
        }
        (_, true) => format!("    st.shared.{ty} [{address}], {register};\n"),
        (_, false) => format!("    ld.shared.{ty} {register}, [{address}];\n"),
    }
}

fn text(op: &Reduce, dtypes: &[DType], dtype: DType, is_block: bool, ranks: [usize; 2]) -> Result<String> {
    let producer = lower(op.name, std::slice::from_ref(&op.producer), dtypes)?;
    // 16-bit floats are folded in f32.
    let wide = dtype.compute();
    let combine = lower(op.name, &[fold(op.kind)], &[wide, wide])?;
    let mut text = Text::default();
    let _ = (text.slots.next(), text.slots.next());
    let (from, at) = (names("from", dtypes.len()), names("at", dtypes.len()));
    text.wide("%to");
    from.iter().for_each(|register| text.wide(register));
    let advance = index::advance(&mut text.slots, ranks[0], "%i", &from);
    text.push(&advance);
    let numbers = names("number", producer.params.len());
    for (register, param) in numbers.iter().zip(&producer.params) {
        text.number(LowType::of(param.dtype), register);
    }
    ["%total", "%term"].iter().for_each(|register| text.value(wide, register));
    text.line(neutral(op.kind, wide, "%total"));
    let start = text.take();

    for (at, from) in at.iter().zip(&from) {
        text.register("b64", at);
        text.line(format!("mov.b64 {at}, {from};"));
    }
    let advance = index::advance(&mut text.slots, ranks[1], "%r", &at);
    text.push(&advance);
    let inputs = names("x", dtypes.len());
    for ((register, &dtype), address) in inputs.iter().zip(dtypes).zip(&at) {
        text.value(dtype, register);
        text.push(&emit::load(dtype, register, address));
    }
    let term = ["%term".to_string()];
    text.push(&Body { lowered: &producer, inputs: &inputs, numbers: &numbers, outputs: &term }.text());
    let term = text.take();

    let (operands, total) = (["%total".to_string(), "%term".to_string()], ["%total".to_string()]);
    let combine = Body { lowered: &combine, inputs: &operands, numbers: &[], outputs: &total }.text();

    text.advance("%to", "%i", dtype.size_bytes());
    text.push(&emit::store(dtype, "%to", "%total"));
    let finish = text.take();
    let source = if is_block {
        text.skeleton(include_str!("../../kernels/reduce_block.ptx"), "reduce")
            .put("PUT", shared(wide, "%mine", "%total", true))
            .put("GET", shared(wide, "%other", "%term", false))
    } else {
        text.skeleton(include_str!("../../kernels/reduce_each.ptx"), "reduce")
    };
    Ok(source.put("START", start).put("TERM", term).put("COMBINE", combine).put("FINISH", finish).finish())
}
