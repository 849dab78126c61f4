//! An optimizer's step in place: as many small targets at once as the adapter binds, large ones by themselves.

use std::fmt::Write;
use std::sync::Arc;

use smallvec::SmallVec;
use tensor_core::expr::lower::lower;
use tensor_core::{DType, Result, Storage, Target, Tensor, UpdateRule};

use super::context::window;
use super::map::{expressions, push_numbers};
use super::{Context, moves, storage};
use crate::args::Args;
use crate::batch::Window;
use crate::memory::Block;
use crate::pipeline::Key;
use crate::shader::{Finished, Shader, names, per_invocation, stores};

type Operands = SmallVec<[Tensor; 4]>;

/// Targets of so many elements have a kernel each: what one started by itself costs is little beside them, and an invocation
/// then has no other targets to pass by, all of whose work a processor that runs invocations side by side would do, masked.
const LARGE: usize = 1 << 14;

/// Applies a rule to all targets, and submits what is recorded. What can fail for lack of memory, the copies of what is
/// shared, comes first.
pub(crate) fn update(cx: &Context, rule: &UpdateRule, targets: &mut [Target<'_>]) -> Result<()> {
    let mut fresh: Vec<(usize, usize, Block)> = Vec::new();
    for (t, target) in targets.iter_mut().enumerate() {
        for k in 0..rule.outputs.len() {
            let x = written(target, k);
            if !is_own(x) {
                fresh.push((t, k, moves::contiguous(cx, x)?));
            }
        }
    }
    for (t, k, block) in fresh {
        let x = written(&mut targets[t], k);
        let (meta, device) = (x.meta(), x.place().clone());
        *x = Tensor::from_storage(storage(block), meta, device);
    }
    let mut groups: Vec<(SmallVec<[DType; 4]>, Vec<Operands>)> = Vec::new();
    for target in &*targets {
        let mut operands: Operands =
            [&*target.param, target.grad].into_iter().chain(target.state.iter()).cloned().collect();
        if operands[0].is_empty() {
            continue;
        }
        // The gradient, and states that are only read.
        for x in operands.iter_mut().filter(|x| !(x.is_contiguous() && x.layout().offset() == 0)) {
            let (block, meta, device) = (moves::contiguous(cx, x)?, x.meta(), x.place().clone());
            *x = Tensor::from_storage(storage(block), meta, device);
        }
        let dtypes: SmallVec<[DType; 4]> = operands.iter().map(|x| x.dtype()).collect();
        let joins = |group: &Operands| !is_large(group) && !is_large(&operands);
        match groups.iter_mut().find(|(of, group)| *of == dtypes && joins(&group[0])) {
            Some((_, group)) => group.push(operands),
            None => groups.push((dtypes, vec![operands])),
        }
    }
    let most = cx.gpu.limits.max_storage_buffers_per_shader_stage as usize;
    for (dtypes, group) in &groups {
        for part in group.chunks((most / dtypes.len()).clamp(1, 16)) {
            run(cx, rule, dtypes, part)?;
        }
    }
    cx.batch.flush();
    Ok(())
}

fn is_large(operands: &Operands) -> bool {
    operands[0].len() >= LARGE
}

/// What output `k` of a rule overwrites.
fn written<'t>(target: &'t mut Target<'_>, k: usize) -> &'t mut Tensor {
    if k == 0 { target.param } else { &mut target.state[k - 1] }
}

/// Its place among the operands: the gradient is the second.
fn operand(k: usize) -> usize {
    if k == 0 { 0 } else { k + 1 }
}

/// Whether the tensor may be overwritten where it is: row-major from its buffer's beginning, and nobody else has its storage.
fn is_own(x: &mut Tensor) -> bool {
    x.is_contiguous()
        && x.layout().offset() == 0
        && x.unique_storage().is_some_and(|storage: &mut Storage| Arc::get_mut(storage).is_some())
}

fn run(cx: &Context, rule: &UpdateRule, dtypes: &[DType], targets: &[Operands]) -> Result<()> {
    let per = per_invocation(dtypes.iter().copied());
    let codes = rule.outputs.iter().map(|expr| expr.code.id());
    let parts = codes.chain(dtypes.iter().map(|&d| d as u64)).chain([targets.len() as u64]);
    let mut args = Args::new();
    let mut windows: Vec<Window<'_>> = Vec::new();
    let mut end = 0;
    for operands in targets {
        // Every target begins at a group of invocations of its own.
        args.push(operands[0].len());
        args.push(end);
        end += operands[0].len().div_ceil(per);
        windows.extend(operands.iter().map(window));
    }
    push_numbers(&mut args, "update", &rule.outputs, dtypes)?;
    let text = || text(rule, dtypes, targets.len(), per);
    cx.run_elements("update", Key::new("update", parts), text, &windows, &args, end, 1)
}

fn text(rule: &UpdateRule, dtypes: &[DType], n_targets: usize, per: usize) -> Result<Finished> {
    let lowered = lower("update", &rule.outputs, dtypes)?;
    let mut shader = Shader::new();
    let is_written = |k: usize| (0..rule.outputs.len()).any(|output| operand(output) == k);
    let mut ranges = Vec::new();
    for t in 0..n_targets {
        ranges.push((shader.arg(), shader.arg()));
        for (k, &dtype) in dtypes.iter().enumerate() {
            let name = format!("x{t}_{k}");
            if is_written(k) { shader.update(&name, dtype) } else { shader.read(&name, dtype) }
        }
    }
    let results: Vec<DType> = lowered.results.iter().map(|&(_, dtype)| dtype).collect();
    let fields: Vec<String> = (0..results.len()).map(|k| format!("y{k}: {}", shader.type_of(results[k]))).collect();
    let parameters: Vec<String> = (0..dtypes.len()).map(|k| format!("x{k}: {}", shader.type_of(dtypes[k]))).collect();
    let body = expressions(&mut shader, &lowered, "v", &names("x", dtypes.len()), &names("y", results.len()));
    shader.push(&format!(
        "struct Results {{ {} }}\nfn rule({}) -> Results {{\n{body}    return Results({});\n}}\n",
        fields.join(", "),
        parameters.join(", "),
        names("y", results.len()).join(", ")
    ));
    let mut entries = String::new();
    for (t, (count, begin)) in ranges.iter().enumerate().rev() {
        let loads: Vec<String> = (0..dtypes.len()).map(|k| format!("load_x{t}_{k}(i)")).collect();
        let to: Vec<(String, DType)> =
            results.iter().enumerate().map(|(k, &dtype)| (format!("x{t}_{}", operand(k)), dtype)).collect();
        let value = format!("rule({})", loads.join(", "));
        let _ = write!(
            entries,
            "    if first >= {begin} {{\n        let start = (first - {begin}) * {per}u;\n        let n = {count};\n{}        return;\n    }}\n",
            stores(&to, &vec!["0u".to_string(); to.len()], per, &value)
        );
    }
    let (last_count, last_begin) = &ranges[n_targets - 1];
    let entry = include_str!("../../shaders/element.wgsl")
        .replace("{{PER}}", "1")
        .replace("{{COUNT}}", &format!("{last_begin} + ({last_count} + {}u) / {per}u", per - 1))
        .replace("{{STORES}}", &entries);
    Ok(shader.finish(&entry))
}
