//! An optimizer's step in place.

use std::sync::Arc;

use smallvec::SmallVec;
use tensor_core::expr::lower::{LowType, lower};
use tensor_core::{DType, Result, Storage, Target, Tensor, UpdateRule};

use super::context::THREADS;
use super::map::push_numbers;
use super::{Context, Text, address, copy, names, storage, vector};
use crate::args::Args;
use crate::memory::Block;
use crate::module::Key;

/// Vectors that a block takes: 4 per thread.
const BLOCK_VECTORS: usize = 4 * THREADS as usize;

type Operands = SmallVec<[Tensor; 4]>;

/// Targets of the same types: one launch.
struct Group {
    dtypes: SmallVec<[DType; 4]>,
    targets: Vec<Operands>,
}

/// Applies a rule to all targets. What can fail for lack of memory, the copies of what is shared, comes first.
pub(crate) fn update(cx: &Context, rule: &UpdateRule, targets: &mut [Target<'_>]) -> Result<()> {
    let mut fresh: Vec<(usize, usize, Block)> = Vec::new();
    for (t, target) in targets.iter_mut().enumerate() {
        for k in 0..rule.outputs.len() {
            let x = written(target, k);
            if !is_own(x) {
                fresh.push((t, k, copy::contiguous(cx, "update", x)?));
            }
        }
    }
    for (t, k, block) in fresh {
        let x = written(&mut targets[t], k);
        let (meta, device) = (x.meta(), x.place().clone());
        *x = Tensor::from_storage(storage(block), meta, device);
    }
    let mut groups: Vec<Group> = Vec::new();
    for target in &*targets {
        let mut operands: Operands =
            [&*target.param, target.grad].into_iter().chain(target.state.iter()).cloned().collect();
        if operands[0].is_empty() {
            continue;
        }
        // The gradient, and states that are only read: so all numbers are in the table, and none in a launch.
        for x in operands.iter_mut().filter(|x| !x.is_contiguous()) {
            let (block, meta, device) = (copy::contiguous(cx, "update", x)?, x.meta(), x.place().clone());
            *x = Tensor::from_storage(storage(block), meta, device);
        }
        let dtypes: SmallVec<[DType; 4]> = operands.iter().map(|x| x.dtype()).collect();
        match groups.iter_mut().find(|group| group.dtypes == dtypes) {
            Some(group) => group.targets.push(operands),
            None => groups.push(Group { dtypes, targets: vec![operands] }),
        }
    }
    groups.iter().try_for_each(|group| run(cx, rule, group))
}

/// What output `k` of a rule overwrites.
fn written<'t>(target: &'t mut Target<'_>, k: usize) -> &'t mut Tensor {
    if k == 0 { target.param } else { &mut target.state[k - 1] }
}

/// Its place among the operands: the gradient is the second.
fn operand(k: usize) -> usize {
    if k == 0 { 0 } else { k + 1 }
}

/// Whether the tensor may be overwritten where it is: row-major, and nobody else has its storage.
fn is_own(x: &mut Tensor) -> bool {
    x.is_contiguous() && x.unique_storage().is_some_and(|storage: &mut Storage| Arc::get_mut(storage).is_some())
}

fn run(cx: &Context, rule: &UpdateRule, group: &Group) -> Result<()> {
    let dtypes = &group.dtypes;
    let programs = rule.outputs.iter().map(|expr| expr.code.program("update", dtypes));
    let programs = programs.collect::<Result<SmallVec<[_; 4]>>>()?;
    let operands = group.targets.iter().flatten().map(|x| (x.dtype(), address(x)));
    let lanes = vector::widest(operands, programs.iter().map(|program| program.nodes.len()).sum());
    let codes = rule.outputs.iter().map(|expr| expr.code.id());
    let key = Key::new("update", codes.chain(dtypes.iter().map(|&d| d as u64)).chain([lanes as u64]));
    let function = cx.modules.get(key, || text(rule, dtypes, lanes))?;
    // The numbers change from step to step, the launch does not.
    let mut numbers = Args::default();
    push_numbers(&mut numbers, "update", &rule.outputs, dtypes)?;
    let mut table: Vec<u64> = bytemuck::cast_slice(numbers.bytes()).to_vec();
    let (mut n_blocks, mut largest) = (0, 0);
    for operands in &group.targets {
        let n = operands[0].len();
        table.extend([n_blocks as u64, n as u64]);
        table.extend(operands.iter().map(address));
        n_blocks += (n / lanes + n % lanes).div_ceil(BLOCK_VECTORS);
        largest = largest.max(n);
    }
    let bytes: &[u8] = bytemuck::cast_slice(&table);
    let block = cx.pool.take(bytes.len())?;
    cx.driver.upload(block.address(), bytes)?;
    let mut args = Args::default();
    args.push(block.address());
    args.push(group.targets.len() as u64);
    cx.launch_blocks("update", function, largest, [n_blocks as u32, 1, 1], [THREADS, 1, 1], 0, &args)
}

fn text(rule: &UpdateRule, dtypes: &[DType], lanes: usize) -> Result<String> {
    let lowered = lower("update", &rule.outputs, dtypes)?;
    let mut kernel = Text::default();
    let _ = (kernel.slots.next(), kernel.slots.next());
    let numbers = names("number", lowered.params.len());
    for (i, (register, param)) in numbers.iter().zip(&lowered.params).enumerate() {
        kernel.number_from(LowType::of(param.dtype), register, "global", &format!("[%table+{}]", 8 * i));
    }
    kernel.line(format!("add.s64 %table, %table, {};", 8 * numbers.len()));
    let start = kernel.take();
    let from = names("from", dtypes.len());
    for (k, register) in from.iter().enumerate() {
        kernel.register("b64", register);
        kernel.line(format!("ld.global.u64 {register}, [%entry+{}];", 16 + 8 * k));
    }
    let addresses = kernel.take();
    let to: Vec<String> = (0..rule.outputs.len()).map(|k| from[operand(k)].clone()).collect();
    let singles = vec![None; dtypes.len()];
    let body = vector::Lanes { lowered: &lowered, dtypes, to: &to, from: &from, numbers: &numbers, singles: &singles };
    Ok(kernel
        .skeleton(include_str!("../../kernels/update.ptx"), "update")
        .put("ENTRY", (16 + 8 * dtypes.len()).to_string())
        .put("LANES", lanes.to_string())
        .put("LAST", (lanes - 1).to_string())
        .put("START", start)
        .put("ADDRESSES", addresses)
        .put("VECTOR", body.text(lanes))
        .put("ELEMENT", body.text(1))
        .finish())
}
