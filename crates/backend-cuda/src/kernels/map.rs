//! Elementwise expressions over operands that broadcast.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use smallvec::SmallVec;
use tensor_core::expr::lower::{LowType, Param, lower};
use tensor_core::op::Map;
use tensor_core::{DType, Expr, Meta, Result, Storages, Tensor};

use super::context::THREADS;
use super::{Context, Text, address, names, storage, vector};
use crate::args::Args;
use crate::driver::Address;
use crate::emit::{self, Body};
use crate::index;
use crate::module::Key;
use tensor_core::plan::Plan;

/// y_k = e_k(x_0, x_1, …).
pub(crate) fn map(cx: &Context, op: &Map, inputs: &[&Tensor], outputs: &[Meta]) -> Result<Storages> {
    let blocks = outputs.iter().map(|meta| cx.output(meta)).collect::<Result<SmallVec<[_; 1]>>>()?;
    let addresses: SmallVec<[Address; 4]> = blocks.iter().map(|block| block.address()).collect();
    run(cx, op.name, &op.exprs, inputs, &outputs[0].shape, &addresses)?;
    Ok(blocks.into_iter().map(storage).collect())
}

/// Runs expressions over inputs that broadcast to `shape`; results go row-major to these addresses.
pub(crate) fn run(
    cx: &Context,
    name: &'static str,
    exprs: &[Expr],
    inputs: &[&Tensor],
    shape: &[usize],
    to: &[Address],
) -> Result<()> {
    let dtypes: SmallVec<[DType; 4]> = inputs.iter().map(|x| x.dtype()).collect();
    let layouts: SmallVec<[_; 4]> = inputs.iter().map(|x| x.layout()).collect();
    let plan = Plan::new(shape, &layouts);
    let n = plan.len();
    if n == 0 {
        return Ok(());
    }
    let codes = exprs.iter().map(|expr| expr.code.id());
    let structure: SmallVec<[u64; 8]> = codes.chain(dtypes.iter().map(|&d| d as u64)).collect();
    let operands: SmallVec<[_; 4]> = inputs.iter().map(|x| (x.dtype(), address(x))).collect();
    let programs = exprs.iter().map(|expr| expr.code.program(name, &dtypes));
    let programs = programs.collect::<Result<SmallVec<[_; 4]>>>()?;
    let results: SmallVec<[_; 4]> = programs.iter().zip(to).map(|(program, &to)| (program.dtype(), to)).collect();
    let lanes = vector::lanes(&plan, &operands, &results, programs.iter().map(|program| program.nodes.len()).sum());
    if lanes > 1 {
        let is_single: SmallVec<[bool; 4]> = plan.strides.iter().map(|strides| strides[0] == 0).collect();
        let flags = is_single.iter().map(|&is| is.into());
        let key = Key::new("map_vector", structure.into_iter().chain(flags).chain([lanes as u64]));
        let text = || vector::text("map_vector", &lower(name, exprs, &dtypes)?, &dtypes, &is_single, lanes);
        let function = cx.modules.get(key, text)?;
        let (n_vectors, rest) = (n / lanes, n % lanes);
        let mut args = Args::default();
        args.push(n_vectors as u64);
        args.push((n_vectors + rest) as u64);
        to.iter().copied().chain(operands.iter().map(|&(_, from)| from)).for_each(|address| args.push(address));
        push_numbers(&mut args, name, exprs, &dtypes)?;
        let blocks = (n_vectors + rest).div_ceil(THREADS as usize) as u32;
        return cx.launch_blocks(name, function, n, [blocks, 1, 1], [THREADS, 1, 1], 0, &args);
    }
    let key = Key::new("map", structure.into_iter().chain([plan.rank() as u64]));
    // The numbers' types are part of the structure: lowering is needed for the text alone, typing for both.
    let function = cx.modules.get(key, || text(name, exprs, &dtypes, plan.rank()))?;
    let mut args = Args::default();
    args.push(n as u64);
    to.iter().for_each(|&address| args.push(address));
    inputs.iter().for_each(|x| args.push(address(x)));
    index::push(&mut args, &plan, |k| dtypes[k].size_bytes());
    push_numbers(&mut args, name, exprs, &dtypes)?;
    cx.launch(name, function, n, &args)
}

/// The run-time numbers of expressions, in the order of their lowering.
pub(crate) fn push_numbers(args: &mut Args, name: &'static str, exprs: &[Expr], dtypes: &[DType]) -> Result<()> {
    if exprs.iter().all(|expr| expr.args.is_empty()) {
        return Ok(());
    }
    let numbers: SmallVec<[_; 8]> = exprs.iter().flat_map(|expr| expr.args.iter().copied()).collect();
    for param in params(name, exprs, dtypes)?.iter() {
        args.push(param.bits(numbers[param.number as usize]));
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

fn text(name: &'static str, exprs: &[Expr], dtypes: &[DType], rank: usize) -> Result<String> {
    let lowered = lower(name, exprs, dtypes)?;
    let mut kernel = Text::of_elements();
    let (to, from) = (names("to", exprs.len()), names("from", dtypes.len()));
    to.iter().chain(&from).for_each(|register| kernel.wide(register));
    let advance = index::advance(&mut kernel.slots, rank, "%i", &from);
    kernel.push(&advance);
    let numbers = names("number", lowered.params.len());
    for (register, param) in numbers.iter().zip(&lowered.params) {
        kernel.number(LowType::of(param.dtype), register);
    }
    let (inputs, outputs) = (names("x", dtypes.len()), names("y", exprs.len()));
    for ((register, &dtype), address) in inputs.iter().zip(dtypes).zip(&from) {
        kernel.value(dtype, register);
        kernel.push(&emit::load(dtype, register, address));
    }
    for (register, &(_, dtype)) in outputs.iter().zip(&lowered.results) {
        kernel.value(dtype, register);
    }
    kernel.push(&Body { lowered: &lowered, inputs: &inputs, numbers: &numbers, outputs: &outputs }.text());
    for ((register, &(_, dtype)), address) in outputs.iter().zip(&lowered.results).zip(&to) {
        kernel.advance(address, "%i", dtype.size_bytes());
        kernel.push(&emit::store(dtype, address, register));
    }
    Ok(kernel.element("map"))
}
