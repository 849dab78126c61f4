//! Elementwise expressions over operands that broadcast.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use smallvec::SmallVec;
use tensor_core::expr::lower::{LowType, Lowered, Param, lower};
use tensor_core::op::Map;
use tensor_core::plan::Plan;
use tensor_core::{DType, Expr, Meta, Number, Result, Storages, Tensor};

use super::context::{Operand, pieces};
use super::moves::row_major;
use super::{Context, block, storage};
use crate::args::Args;
use crate::emit::{Body, is_wide};
use crate::index;
use crate::pipeline::Key;
use crate::shader::{Finished, Shader, names, per_invocation};

/// y_k = e_k(x_0, x_1, …).
pub(crate) fn map(cx: &Context, op: &Map, inputs: &[&Tensor], outputs: &[Meta]) -> Result<Storages> {
    let blocks = outputs.iter().map(|meta| cx.output(meta)).collect::<Result<SmallVec<[_; 1]>>>()?;
    let to: SmallVec<[&wgpu::Buffer; 4]> = blocks.iter().map(|block| block.buffer()).collect();
    run(cx, op.name, &op.exprs, inputs, &outputs[0].shape, &to)?;
    drop(to);
    Ok(blocks.into_iter().map(storage).collect())
}

/// Runs expressions over inputs that broadcast to `shape`; results go row-major to these buffers.
pub(crate) fn run(
    cx: &Context,
    name: &'static str,
    exprs: &[Expr],
    inputs: &[&Tensor],
    shape: &[usize],
    to: &[&wgpu::Buffer],
) -> Result<()> {
    let dtypes: SmallVec<[DType; 4]> = inputs.iter().map(|x| x.dtype()).collect();
    let results = exprs.iter().map(|expr| Ok(expr.code.program(name, &dtypes)?.dtype()));
    let results = results.collect::<Result<SmallVec<[DType; 4]>>>()?;
    // The results are operands of the plan too, so that a launch can be cut into parts.
    let of = SmallVec::from_slice;
    let contiguous = row_major(shape);
    let inner = tensor_core::Shape::new(shape);
    let strides = to.iter().map(|_| contiguous.clone()).chain(
        inputs
            .iter()
            .map(|x| of(x.layout().broadcast_to(&inner).expect("invariant: core checked the broadcast").strides())),
    );
    let plan = Plan::of(shape, strides.collect());
    if plan.is_empty() {
        return Ok(());
    }
    let written =
        to.iter().zip(&results).map(|(&buffer, dtype)| Operand { buffer, begin: 0, size_bytes: dtype.size_bytes() });
    let read = inputs.iter().map(|x| Operand {
        buffer: block(x).buffer(),
        begin: x.layout().offset(),
        size_bytes: x.dtype().size_bytes(),
    });
    let operands: SmallVec<[Operand<'_>; 6]> = written.chain(read).collect();
    let codes = exprs.iter().map(|expr| expr.code.id());
    let structure: SmallVec<[u64; 8]> = codes.chain(dtypes.iter().map(|&d| d as u64)).collect();
    for piece in pieces(cx, name, plan, &operands)? {
        let (n, rank) = (piece.plan.len(), piece.plan.rank());
        let mut args = Args::new();
        args.push(n);
        // The results are row-major: only where they begin is a parameter.
        let n_results = to.len();
        piece.begins[..n_results].iter().for_each(|&begin| args.push(begin));
        let rest = Plan { dims: piece.plan.dims, strides: piece.plan.strides[n_results..].iter().cloned().collect() };
        index::push_places(&mut args, &rest, piece.begins[n_results..].iter().copied());
        push_numbers(&mut args, name, exprs, &dtypes)?;
        let key = Key::new("map", structure.iter().copied().chain([rank as u64]));
        let per = per_invocation(results.iter().copied());
        cx.run_elements(name, key, || text(name, exprs, &dtypes, rank), &piece.windows, &args, n, per)?;
    }
    Ok(())
}

fn text(name: &'static str, exprs: &[Expr], dtypes: &[DType], rank: usize) -> Result<Finished> {
    let lowered = lower(name, exprs, dtypes)?;
    let mut shader = Shader::new();
    let count = shader.arg();
    let results: Vec<(String, DType)> =
        names("to", exprs.len()).into_iter().zip(lowered.results.iter().map(|&(_, dtype)| dtype)).collect();
    let begins: Vec<String> = results.iter().map(|_| shader.arg()).collect();
    results.iter().for_each(|(name, dtype)| shader.write(name, *dtype));
    let (operands, at) = (names("x", dtypes.len()), names("at", dtypes.len()));
    operands.iter().zip(dtypes).for_each(|(name, &dtype)| shader.read(name, dtype));
    let mut body = index::places(&mut shader, rank, "i", &at);
    let inputs: Vec<String> = operands.iter().zip(&at).map(|(name, at)| format!("load_{name}({at})")).collect();
    body.push_str(&expressions(&mut shader, &lowered, "v", &inputs, &names("y", exprs.len())));
    Ok(shader.element_at(&results, &begins, &count, &body))
}

/// The lines that compute lowered expressions; their numbers are the next parameters.
pub(crate) fn expressions(
    shader: &mut Shader,
    lowered: &Lowered,
    prefix: &str,
    inputs: &[String],
    outputs: &[String],
) -> String {
    written(shader, lowered, prefix, inputs, outputs, false)
}

/// The same with every sum, difference and product rounded by itself, whatever a driver would make of them.
pub(crate) fn exactly(shader: &mut Shader, lowered: &Lowered, inputs: &[String], outputs: &[String]) -> String {
    written(shader, lowered, "v", inputs, outputs, true)
}

fn written(
    shader: &mut Shader,
    lowered: &Lowered,
    prefix: &str,
    inputs: &[String],
    outputs: &[String],
    is_exact: bool,
) -> String {
    let numbers: Vec<String> = lowered.params.iter().map(|param| shader.number(LowType::of(param.dtype))).collect();
    lowered.instrs.iter().for_each(|instr| shader.uses(instr.ty));
    Body { lowered, prefix, inputs, numbers: &numbers, outputs, is_exact }.text()
}

/// The run-time numbers of expressions, in the order of their lowering.
pub(crate) fn push_numbers(args: &mut Args, name: &'static str, exprs: &[Expr], dtypes: &[DType]) -> Result<()> {
    if exprs.iter().all(|expr| expr.args.is_empty()) {
        return Ok(());
    }
    let numbers: SmallVec<[Number; 8]> = exprs.iter().flat_map(|expr| expr.args.iter().copied()).collect();
    for param in params(name, exprs, dtypes)?.iter() {
        args.push_bits(param.bits(numbers[param.number as usize]), is_wide(LowType::of(param.dtype)));
    }
    Ok(())
}

/// The numbers that lowered expressions read. Lowering takes longer than a launch: once per structure and types.
fn params(name: &'static str, exprs: &[Expr], dtypes: &[DType]) -> Result<Arc<[Param]>> {
    static KNOWN: LazyLock<Mutex<HashMap<SmallVec<[u64; 8]>, Arc<[Param]>>>> = LazyLock::new(Mutex::default);
    let key: SmallVec<[u64; 8]> = std::iter::once(exprs.len() as u64)
        .chain(exprs.iter().map(|expr| expr.code.id()))
        .chain(dtypes.iter().map(|&dtype| dtype as u64))
        .collect();
    let known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner).get(&key).cloned();
    if let Some(params) = known {
        return Ok(params);
    }
    let params: Arc<[Param]> = lower(name, exprs, dtypes)?.params.into();
    KNOWN.lock().unwrap_or_else(PoisonError::into_inner).insert(key, params.clone());
    Ok(params)
}
