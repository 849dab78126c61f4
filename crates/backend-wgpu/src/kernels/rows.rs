//! Folds over rows, and elements computed from them: one skeleton for reductions, softmax and normalisation.

use std::fmt::Write;

use smallvec::SmallVec;
use tensor_core::expr::lower::{LowType, lower};
use tensor_core::op::ReduceKind;
use tensor_core::plan::Plan;
use tensor_core::{DType, Expr, Meta, Result, Tensor};

use super::context::{Context, GROUP, storage};
use super::map::{expressions, push_numbers};
use super::reduce::{fold, neutral};
use crate::args::Args;
use crate::batch::Window;
use crate::emit;
use crate::index;
use crate::memory::Block;
use crate::pipeline::Key;
use crate::shader::{Finished, Shader, names};

/// So many iterations may one invocation run: some drivers end a loop that is longer, and say nothing.
pub(crate) const MOST_ITERATIONS: usize = 32_768;
/// So short a row is one invocation's.
const SHORT: usize = 16;

/// The type that totals have: 16-bit floats are folded in f32, bytes and truth values as i32.
pub(super) fn total(dtype: DType) -> DType {
    match dtype {
        DType::F16 | DType::BF16 => DType::F32,
        DType::U8 | DType::Bool => DType::I32,
        DType::F64 | DType::F32 | DType::I64 | DType::I32 => dtype,
    }
}

/// A result in the type that totals have, as a tensor; on the device of another.
pub(super) fn wide_tensor(block: Block, meta: &Meta, like: &Tensor) -> Tensor {
    let wide = Meta::new(meta.shape.clone(), total(meta.dtype));
    Tensor::from_storage(storage(block), wide, like.place().clone())
}

/// Whether no invocation runs for too long.
pub(crate) fn fits(shape: &[usize], axes: &[usize], passes: usize) -> bool {
    let depth: usize = axes.iter().map(|&axis| shape[axis]).product();
    // Of nothing, moments are not numbers.
    depth > 0 && depth.div_ceil(GROUP).saturating_mul(passes) <= MOST_ITERATIONS
}

/// One fold over a row.
pub(super) struct Fold {
    pub(super) kind: ReduceKind,
    /// What is folded: over the elements, the rows' values and the earlier folds' results.
    pub(super) term: Expr,
    /// The result from the total.
    pub(super) finish: Option<Expr>,
}

/// What is computed over rows.
pub(super) struct Rows {
    /// The op, for errors.
    pub(super) name: &'static str,
    /// Operands with an element per place, as stored; then those with a value per row.
    pub(super) elements: SmallVec<[DType; 4]>,
    pub(super) values: SmallVec<[DType; 2]>,
    /// The types that expressions see operands in, and the type of totals and results.
    pub(super) types: SmallVec<[DType; 4]>,
    pub(super) total: DType,
    pub(super) folds: SmallVec<[Fold; 2]>,
    /// The result per element, over elements, values and all folds' results.
    pub(super) result: Option<Expr>,
    /// Folds whose results are written per row.
    pub(super) totals: SmallVec<[usize; 2]>,
}

/// Where operands and results are.
pub(super) struct Places<'a> {
    /// The result per element if there is one, elements, values: strides along rows' axes.
    pub(super) kept: Plan,
    /// The result per element if there is one, elements: strides along folded axes.
    pub(super) folded: Plan,
    /// Their buffers and where they begin; then those of totals, row-major.
    pub(super) windows: SmallVec<[Window<'a>; 8]>,
    pub(super) begins: SmallVec<[usize; 8]>,
}

/// Invocations per row: 1 or 256.
pub(super) fn threads(kept: &Plan, folded: &Plan, k: usize, passes: usize) -> usize {
    let depth = folded.len();
    let is_alone = depth <= SHORT || is_column(kept, folded, k) && kept.len() >= 64;
    if is_alone && depth * passes <= MOST_ITERATIONS { 1 } else { GROUP }
}

/// Whether neighbouring rows are nearer to each other in memory than a row's own elements, for operand `k`.
fn is_column(kept: &Plan, folded: &Plan, k: usize) -> bool {
    let step = |plan: &Plan| plan.strides[k].last().map_or(0, |stride| stride.unsigned_abs());
    let (along, across) = (step(folded), step(kept));
    folded.len() > 1 && across > 0 && across < along
}

/// The axes that are kept, and those that are folded, of operands with these strides along a shape.
pub(super) fn plans(shape: &[usize], strides: &[SmallVec<[isize; 4]>], axes: &[usize]) -> (Plan, Plan) {
    let part = |is_folded: bool| {
        let axes: SmallVec<[usize; 4]> = (0..shape.len()).filter(|axis| axes.contains(axis) == is_folded).collect();
        let dims: SmallVec<[usize; 4]> = axes.iter().map(|&axis| shape[axis]).collect();
        Plan::of(&dims, strides.iter().map(|all| axes.iter().map(|&axis| all[axis]).collect()).collect())
    };
    (part(false), part(true))
}

/// What an entry point is told about its subgroup.
const SUBGROUP: &str = "    @builtin(subgroup_size) subgroup_size: u32,
    @builtin(subgroup_invocation_id) subgroup_lane: u32,
    @builtin(subgroup_id) subgroup: u32,
    @builtin(num_subgroups) n_subgroups: u32,
";

impl Rows {
    fn exprs(&self) -> impl Iterator<Item = &Expr> {
        let folds = self.folds.iter().flat_map(|fold| std::iter::once(&fold.term).chain(&fold.finish));
        folds.chain(&self.result)
    }

    /// The types of what each of [`Rows::exprs`] is over, in that order.
    fn inputs(&self) -> Vec<SmallVec<[DType; 4]>> {
        let over = |n: usize| self.types.iter().copied().chain(std::iter::repeat_n(self.total, n)).collect();
        let mut all = Vec::new();
        for (k, fold) in self.folds.iter().enumerate() {
            all.push(over(k));
            all.extend(fold.finish.iter().map(|_| SmallVec::from_elem(self.total, 1)));
        }
        all.extend(self.result.iter().map(|_| over(self.folds.len())));
        all
    }

    /// Runs with so many invocations per row, every row cut into so many segments.
    pub(super) fn run(&self, cx: &Context, threads: usize, places: &Places<'_>, segments: usize) -> Result<()> {
        let (n_rows, depth) = (places.kept.len(), places.folded.len());
        let ranks = [places.kept.rank(), places.folded.rank()];
        let mut structure: SmallVec<[u64; 8]> = self.exprs().map(|expr| expr.code.id()).collect();
        structure.extend(self.folds.iter().map(|fold| fold.kind as u64 + 4 * u64::from(fold.finish.is_some())));
        structure.extend(self.elements.iter().chain(&self.values).chain(&self.types).map(|&dtype| dtype as u64));
        structure.extend(self.totals.iter().map(|&k| k as u64));
        structure.extend([self.result.is_some().into(), self.total as u64, self.elements.len() as u64]);
        structure.extend([threads as u64, ranks[0] as u64, ranks[1] as u64]);
        let mut args = Args::new();
        args.push(n_rows);
        args.push(depth);
        args.push(depth.div_ceil(segments));
        args.push(n_rows * segments);
        index::push_places(&mut args, &places.kept, places.begins.iter().copied());
        let elements = usize::from(self.result.is_some())..;
        let part = |range: std::ops::Range<usize>| Plan {
            dims: places.folded.dims.clone(),
            strides: places.folded.strides[range].iter().cloned().collect(),
        };
        let read = elements.start..elements.start + self.elements.len();
        let mut exprs = self.exprs().zip(self.inputs());
        for fold in &self.folds {
            index::push_advance(&mut args, &part(read.clone()));
            for _ in 0..1 + usize::from(fold.finish.is_some()) {
                let (expr, inputs) = exprs.next().expect("invariant: an expression per part");
                push_numbers(&mut args, self.name, std::slice::from_ref(expr), &inputs)?;
            }
        }
        if let Some((expr, inputs)) = exprs.next() {
            index::push_advance(&mut args, &part(0..read.end));
            push_numbers(&mut args, self.name, std::slice::from_ref(expr), &inputs)?;
        }
        let groups = (n_rows * segments).div_ceil(GROUP / threads);
        let text = || self.text(threads, ranks, cx.gpu.features.contains(wgpu::Features::SUBGROUP));
        cx.run(self.name, Key::new("rows", structure), text, &places.windows, &args, groups)
    }

    fn text(&self, threads: usize, ranks: [usize; 2], has_subgroups: bool) -> Result<Finished> {
        let mut shader = Shader::new();
        let [rows, depth, segment, tasks] = std::array::from_fn(|_| shader.arg());
        let ty = LowType::of(self.total);
        let t = emit::register_type(ty);
        let is_subgroups = threads > 1 && has_subgroups && !emit::is_wide(ty);
        let operands = names("x", self.elements.len() + self.values.len());
        if self.result.is_some() {
            shader.write("to", self.total);
        }
        let stored = self.elements.iter().chain(&self.values);
        operands.iter().zip(stored).for_each(|(name, &dtype)| shader.read(name, dtype));
        let totals = names("total", self.totals.len());
        totals.iter().for_each(|name| shader.write(name, self.total));
        let result_at = self.result.iter().map(|_| "row_to".to_string());
        let row_at: Vec<String> = result_at.chain(operands.iter().map(|name| format!("row_{name}"))).collect();
        let places = index::places(&mut shader, ranks[0], "row", &row_at);
        let row = match threads {
            1 => format!(
                "    let task = number * 256u + lane;\n    if task >= {tasks} {{\n        return;\n    }}\n    let own = 0u;"
            ),
            _ => format!(
                "    let task = number;\n    if task >= {tasks} {{\n        return;\n    }}\n    let own = lane;"
            ),
        };
        let element_names = &operands[..self.elements.len()];
        let value_loads: Vec<String> =
            operands[self.elements.len()..].iter().map(|name| format!("load_{name}(row_{name})")).collect();
        // Declares where the elements of place r are.
        let locate = |shader: &mut Shader, with_result: bool| {
            let result = with_result.then(|| "to".to_string());
            let all: Vec<String> = result.into_iter().chain(element_names.iter().cloned()).collect();
            let mut text = String::new();
            for name in &all {
                let _ = writeln!(text, "    var at_{name} = row_{name};");
            }
            let at: Vec<String> = all.iter().map(|name| format!("at_{name}")).collect();
            text.push_str(&index::advance(shader, ranks[1], "r", &at));
            text
        };
        let loads: Vec<String> = element_names.iter().map(|name| format!("load_{name}(at_{name})")).collect();
        let inputs = |n: usize| -> Vec<String> {
            loads.iter().chain(&value_loads).cloned().chain((0..n).map(|k| format!("f{k}"))).collect()
        };
        let round = |body: &str| format!("    for (var r = base + own; r < end; r += {threads}u) {{\n{body}    }}\n");
        let mut all_inputs = self.inputs().into_iter();
        let mut next_inputs = || all_inputs.next().expect("invariant: types per expression");
        let mut folds = String::new();
        for (k, step) in self.folds.iter().enumerate() {
            let mut body = locate(&mut shader, false);
            let lowered = lower(self.name, std::slice::from_ref(&step.term), &next_inputs())?;
            body.push_str(&expressions(&mut shader, &lowered, "v", &inputs(k), &["term".to_string()]));
            let is_truth = lowered.instrs[lowered.results[0].0 as usize].ty == LowType::Bool;
            let term = if is_truth { "select(0, 1, term)" } else { "term" };
            let _ = writeln!(body, "    f = fold{k}(f, {term});");
            let both = lower(self.name, &[fold(step.kind)], &[self.total, self.total])?;
            let joined = expressions(&mut shader, &both, "v", &["a".to_string(), "b".to_string()], &["y".to_string()]);
            shader.push(&format!("fn fold{k}(a: {t}, b: {t}) -> {t} {{\n{joined}    return y;\n}}\n"));
            let neutral = emit::constant(ty, neutral(step.kind, if is_truth { DType::Bool } else { self.total }));
            let _ = write!(folds, "    var total_{k}: {t};\n    {{\n    var f: {t} = {neutral};\n{}", round(&body));
            if is_subgroups {
                let _ = write!(
                    folds,
                    "    for (var mask = 1u; mask < subgroup_size; mask *= 2u) {{
        f = fold{k}(f, subgroupShuffleXor(f, mask));
    }}
    workgroupBarrier();
    if subgroup_lane == 0u {{
        shared_totals[subgroup] = f;
    }}
    workgroupBarrier();
    f = shared_totals[0];
    for (var s = 1u; s < n_subgroups; s++) {{
        f = fold{k}(f, shared_totals[s]);
    }}
"
                );
            } else if threads > 1 {
                let _ = write!(
                    folds,
                    "    workgroupBarrier();
    shared_totals[lane] = f;
    for (var half = 128u; half > 0u; half /= 2u) {{
        workgroupBarrier();
        if lane < half {{
            shared_totals[lane] = fold{k}(shared_totals[lane], shared_totals[lane + half]);
        }}
    }}
    workgroupBarrier();
    f = shared_totals[0];
"
                );
            }
            if let Some(finish) = &step.finish {
                let lowered = lower(self.name, std::slice::from_ref(finish), &next_inputs())?;
                folds.push_str(&expressions(&mut shader, &lowered, "w", &["f".to_string()], &["finished".to_string()]));
                folds.push_str("    f = finished;\n");
            }
            let _ = writeln!(folds, "    total_{k} = f;\n    }}\n    let f{k} = total_{k};");
        }
        let mut result = String::new();
        if let Some(expr) = &self.result {
            let mut body = locate(&mut shader, true);
            let lowered = lower(self.name, std::slice::from_ref(expr), &next_inputs())?;
            let over = inputs(self.folds.len());
            body.push_str(&expressions(&mut shader, &lowered, "v", &over, &["y".to_string()]));
            body.push_str("    to[at_to] = y;\n");
            result = round(&body);
        }
        let mut writes = String::from("    if own == 0u {\n");
        for (name, k) in totals.iter().zip(&self.totals) {
            let _ = writeln!(writes, "        {name}[task] = f{k};");
        }
        writes.push_str("    }");
        let shared =
            if threads > 1 { format!("var<workgroup> shared_totals: array<{t}, 256>;") } else { String::new() };
        let subgroup = if is_subgroups { SUBGROUP } else { "" };
        let entry = include_str!("../../shaders/rows.wgsl")
            .replace("{{SUBGROUP}}", subgroup)
            .replace("{{SHARED}}", &shared)
            .replace("{{ROW}}", &row)
            .replace("{{ROWS}}", &rows)
            .replace("{{SEGMENT}}", &segment)
            .replace("{{DEPTH}}", &depth)
            .replace("{{PLACES}}", &places)
            .replace("{{FOLDS}}", &folds)
            .replace("{{RESULT}}", &result)
            .replace("{{TOTALS}}", &writes);
        Ok(shader.finish(&entry))
    }
}
