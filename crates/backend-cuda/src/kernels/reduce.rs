//! Folds over axes, with an elementwise producer.

use smallvec::{SmallVec, smallvec};
use tensor_core::expr::lower::LowType;
use tensor_core::expr::{Expr, build};
use tensor_core::op::{Reduce, ReduceKind};
use tensor_core::{DType, Meta, Result, Shape, Storages, Tensor};

use super::context::THREADS;
use super::rows::{self, Fold, Form, Places, Rows};
use super::{Context, address, storage};
use crate::emit;
use tensor_core::plan::Plan;

/// So many threads keep a GPU busy; with fewer, rows are cut into segments.
const BUSY_THREADS: usize = 1 << 17;
/// So many terms in all are not worth a second launch.
const FEW_TERMS: usize = 1 << 14;

/// y = fold over the axes of producer(x_0, x_1, …).
pub(crate) fn reduce(cx: &Context, op: &Reduce, inputs: &[&Tensor], meta: &Meta) -> Result<Storages> {
    let block = cx.output(meta)?;
    let n = meta.shape.len();
    if n > 0 {
        let dtypes: SmallVec<[DType; 4]> = inputs.iter().map(|x| x.dtype()).collect();
        let (kept, folded) = plans(inputs, &op.axes);
        let depth = folded.len();
        let threads = match () {
            () if rows::is_column(&kept, &folded, 0) || depth <= 8 => 1,
            () if depth <= 1024 => 32,
            () => THREADS as usize,
        };
        let segments = segments(n, depth, threads);
        // 16-bit floats are folded in f32.
        let wide = meta.dtype.compute();
        let addresses = inputs.iter().map(|x| address(x)).collect();
        let fold = |elements: SmallVec<[DType; 4]>, producer: &Expr, dtype| Rows {
            name: op.name,
            entry: "reduce",
            types: elements.clone(),
            elements,
            values: SmallVec::new(),
            total: wide,
            folds: smallvec![Fold { kind: op.kind, term: producer.clone(), finish: None }],
            result: None,
            shortcut: None,
            totals: smallvec![(0, dtype)],
        };
        let places = |kept, folded, addresses, to| Places { kept, folded, addresses, totals: smallvec![to] };
        if segments == 1 {
            let places = places(kept, folded, addresses, block.address());
            fold(dtypes, &op.producer, meta.dtype).run(cx, Form::rounds(threads), &places, 1)?;
        } else {
            let parts = cx.pool.take(segments * n * wide.size_bytes())?;
            let first = places(kept, folded, addresses, parts.address());
            fold(dtypes, &op.producer, wide).run(cx, Form::rounds(threads), &first, segments)?;
            let (kept, folded) = rows::plans(&[segments, n], &[smallvec![n as isize, 1]], &[0]);
            let second = places(kept, folded, smallvec![parts.address()], block.address());
            let form = Form::rounds(if n < 256 { 32 } else { 1 });
            fold(smallvec![wide], &Expr::identity(), meta.dtype).run(cx, form, &second, 1)?;
        }
    }
    Ok(Storages::from_iter([storage(block)]))
}

/// Into how many segments rows are cut: by sizes alone, so that the order of the fold is fixed.
fn segments(n_rows: usize, depth: usize, threads: usize) -> usize {
    if n_rows.saturating_mul(depth) < FEW_TERMS {
        return 1;
    }
    // Four rounds at least, and no empty segment.
    let most = depth / (threads * rows::UNDER_WAY * 4);
    let wanted = (BUSY_THREADS / (n_rows.saturating_mul(threads))).min(most).clamp(1, 65_535);
    depth.div_ceil(depth.div_ceil(wanted))
}

/// The axes that are kept, and those that are folded, of operands that broadcast to one shape.
pub(super) fn plans(inputs: &[&Tensor], axes: &[usize]) -> (Plan, Plan) {
    let shape = inputs
        .iter()
        .fold(Shape::default(), |shape, x| shape.broadcast(x.shape()).expect("invariant: core checked the broadcast"));
    let strides: Vec<SmallVec<[isize; 4]>> = inputs
        .iter()
        .map(|x| {
            let layout = x.layout().broadcast_to(&shape).expect("invariant: core checked the broadcast");
            SmallVec::from_slice(layout.strides())
        })
        .collect();
    rows::plans(&shape, &strides, axes)
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
