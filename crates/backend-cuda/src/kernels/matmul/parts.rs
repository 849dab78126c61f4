//! Long sums in parts: the second pass adds them up, in order, and applies the epilogue.

use tensor_core::expr::lower::LowType;
use tensor_core::op::ReduceKind;
use tensor_core::plan::Plan;
use tensor_core::{DType, Result};

use super::frame::{Parts, Problem};
use crate::args::Args;
use crate::driver::Address;
use crate::emit::{self, Body};
use crate::index;
use crate::kernels::map::push_numbers;
use crate::kernels::reduce::neutral;
use crate::kernels::{Context, Text, address, names};
use crate::module::Key;

/// result = epilogue(Σ parts), parts of `shape` one after the other from `from` on.
pub(super) fn sum(
    cx: &Context,
    problem: &Problem<'_>,
    shape: &[usize],
    parts: Parts,
    from: Address,
    to: Address,
) -> Result<()> {
    let layouts: Vec<_> = problem.extra.iter().map(|x| x.layout()).collect();
    let plan = Plan::new(shape, &layouts);
    let dtypes = problem.dtypes();
    let structure = [problem.epilogue.code.id(), problem.result as u64, plan.rank() as u64];
    let key = Key::new("matmul_parts", structure.into_iter().chain(dtypes.iter().map(|&d| d as u64)));
    let function = cx.modules.get(key, || text(problem, plan.rank()))?;
    let n: usize = shape.iter().product();
    let mut args = Args::default();
    args.push(n as u64);
    args.push(to);
    args.push(from);
    args.push((n * sum_dtype(problem.dtype).size_bytes()) as u64);
    args.push(parts.count as u64);
    problem.extra.iter().for_each(|x| args.push(address(x)));
    index::push(&mut args, &plan, |i| dtypes[i + 1].size_bytes());
    push_numbers(&mut args, problem.name, std::slice::from_ref(&problem.epilogue), &dtypes)?;
    cx.launch(problem.name, function, n, &args)
}

/// What parts are kept in.
pub(super) fn sum_dtype(dtype: DType) -> DType {
    dtype.compute()
}

fn text(problem: &Problem<'_>, rank: usize) -> Result<String> {
    let lowered = problem.lowered()?;
    let (dtypes, sum) = (problem.dtypes(), sum_dtype(problem.dtype));
    let mut text = Text::of_elements();
    ["%to", "%part", "%step"].iter().for_each(|register| text.wide(register));
    text.word("%left");
    let from = names("from", problem.extra.len());
    from.iter().for_each(|register| text.wide(register));
    let advance = index::advance(&mut text.slots, rank, "%i", &from);
    text.push(&advance);
    let numbers = names("number", lowered.params.len());
    for (register, param) in numbers.iter().zip(&lowered.params) {
        text.number(LowType::of(param.dtype), register);
    }
    let inputs = names("x", dtypes.len());
    for (i, (register, &dtype)) in inputs.iter().zip(&dtypes).enumerate() {
        text.value(dtype, register);
        if i > 0 {
            text.push(&emit::load(dtype, register, &from[i - 1]));
        }
    }
    text.value(sum, "%term");
    text.advance("%part", "%i", sum.size_bytes());
    text.line(neutral(ReduceKind::Sum, sum, &inputs[0]));
    text.push("$add:\n");
    text.push(&emit::load(sum, "%term", "%part"));
    let ty = LowType::of(sum);
    let add = match ty {
        LowType::F32 | LowType::F64 => format!("add.rn.{}", emit::register_type(ty)),
        LowType::I64 => "add.s64".into(),
        LowType::I32 | LowType::Bool => "add.s32".into(),
    };
    text.line(format!("{add} {0}, {0}, %term;", inputs[0]));
    text.line("{ .reg .pred %t_p; add.s64 %part, %part, %step; sub.u32 %left, %left, 1; setp.ne.u32 %t_p, %left, 0;");
    text.line("@%t_p bra $add; }");
    text.push(&super::frame::rounded(problem.product, &inputs[0]));
    text.value(problem.result, "%result");
    let outputs = ["%result".to_string()];
    text.push(&Body { lowered: &lowered, inputs: &inputs, numbers: &numbers, outputs: &outputs }.text());
    text.advance("%to", "%i", problem.result.size_bytes());
    text.push(&emit::store(problem.result, "%to", "%result"));
    Ok(text.element("matmul_parts"))
}
