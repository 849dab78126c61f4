//! docs/ops.md: what each op promises, worked out from what it executes.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use nn::gradient;
use tensor_core::expr::{Binary, Prim, Unary};
use tensor_core::op::{Pool, PoolKind, Reduce, ReduceKind, Scan, ScanKind, Tolerance};
use tensor_core::{DType, Expr, Op, PoolOptions, Result, Tensor, math};

use super::case::{Call, Case, Subject, Trial};
use super::check::{CHECKS, Check, Verdict};
use super::draw::Draw;
use super::input::Layout;
use super::{probe, run, subject};
use crate::reference;

const HEAD: &str = "\
# The ops and what they promise

`cargo xtask docs --bless` writes this page from the contracts in the code; nothing here is typed by hand.

- **Executes**: what a device is asked for in the simplest call. A `map` is one expression over its inputs, whatever its name.
- **Promise**: how far a result may be from the exact one. ε is the distance from 1 to the next number of the dtype; f16 and bf16
  compute in f32 and are rounded when they are stored. *Rounding of each step* is the running error bound of the expression: each
  primitive's own bound, magnified by what follows; where one primitive is all there is, its bound in f32 is named. What an op
  executes in several steps is held to the bound that follows from theirs. Integers are exact. [parity.md](parity.md) has what was
  measured.
- **Gradient**: whether there is one, which parity judges; *and again*: so is the gradient's gradient, which the others do not
  have or which is 0. Last, the slopes that are taken at kinks and of equal elements, of which only one may count.

";

/// The page.
pub fn page() -> String {
    let mut text = HEAD.to_string();
    text += "| op | dtypes | executes | promise | gradient | at kinks and ties |\n|---|---|---|---|---|---|\n";
    let mut subjects: Vec<&Subject> = subject::all().iter().collect();
    subjects.sort_by_key(|subject| subject.name);
    for subject in subjects {
        let Described { dtypes, executes, promise, gradient, kinks } = describe(subject);
        let signature = subject.signature.replace('|', "\\|");
        let _ = writeln!(text, "| `{signature}` | {dtypes} | {executes} | {promise} | {gradient} | {kinks} |");
    }
    text
}

struct Described {
    dtypes: String,
    executes: String,
    promise: String,
    gradient: &'static str,
    kinks: String,
}

fn describe(subject: &Subject) -> Described {
    let dtypes: Vec<DType> = run::dtypes(subject).collect();
    // Floats say the most.
    let dtype = [DType::F32, DType::I32].into_iter().find(|d| dtypes.contains(d)).or(dtypes.first().copied());
    let dtype = dtype.unwrap_or(DType::F32);
    let call = (subject.draw)(&mut Draw::new(&[]), dtype);
    let ops = probe::ops(&call, dtype).unwrap_or_default();
    let names: BTreeSet<String> = ops.iter().map(name).collect();
    let gradient = order(subject, &call, dtype);
    let is_of_interest = |op: &&Op| gradient != "no" || matches!(op, Op::ArgReduce(_) | Op::Sort(_));
    Described {
        dtypes: written(&dtypes),
        executes: if ops.is_empty() { "a view".into() } else { joined(names) },
        promise: if ops.is_empty() {
            "exact".into()
        } else {
            joined(ops.iter().map(|op| promise(op, dtype)).collect())
        },
        gradient,
        kinks: joined(ops.iter().filter(is_of_interest).filter_map(kinks).collect()),
    }
}

fn joined(parts: BTreeSet<String>) -> String {
    parts.into_iter().collect::<Vec<_>>().join("; ")
}

fn written(dtypes: &[DType]) -> String {
    let floats = DType::ALL.into_iter().filter(|d| d.is_float());
    let rest: Vec<DType> = DType::ALL.into_iter().filter(|d| !d.is_float()).collect();
    if dtypes.len() == DType::ALL.len() {
        return "all".into();
    }
    let mut parts: Vec<String> = Vec::new();
    if floats.clone().all(|d| dtypes.contains(&d)) {
        parts.push("floats".into());
    } else {
        parts.extend(floats.filter(|d| dtypes.contains(d)).map(|d| d.to_string()));
    }
    let ints: Vec<DType> = rest.iter().copied().filter(|&d| d != DType::Bool).collect();
    if ints.iter().all(|d| dtypes.contains(d)) {
        parts.push("integers".into());
    } else {
        parts.extend(ints.iter().filter(|d| dtypes.contains(d)).map(|d| d.to_string()));
    }
    parts.extend(dtypes.contains(&DType::Bool).then(|| "bool".to_string()));
    parts.join(", ")
}

fn name(op: &Op) -> String {
    if matches!(op, Op::Map(_)) { "map".into() } else { op.name().to_string() }
}

/// The tolerance in words.
fn promise(op: &Op, dtype: DType) -> String {
    let times = |scale: f64| if scale == 1.0 { String::new() } else { format!("{scale} · ") };
    match op.record().contract().tolerance {
        Tolerance::Exact => "exact".into(),
        _ if !dtype.is_float() => "exact".into(),
        Tolerance::Elementwise => elementwise(op),
        Tolerance::Sum { scale } => format!("{}n · ε · Σ\\|terms\\|", times(scale)),
        Tolerance::Product { scale } => format!("{}n · ε · \\|product\\|", times(scale)),
        Tolerance::Ulps(ulps) => format!("{ulps} ulp"),
        Tolerance::Absolute { epsilons } => format!("{epsilons} · ε, whatever the value"),
        Tolerance::Decomposed { scale } => format!("{}the bound of its decomposition", times(scale)),
        Tolerance::Unstated => "none stated".into(),
    }
}

/// The primitives of an expression, without its inputs and numbers.
fn steps(expr: &Expr) -> Vec<Prim> {
    let leaf =
        |prim: &Prim| matches!(prim, Prim::Input(_) | Prim::Arg(_) | Prim::ArgInt(_) | Prim::Lit(_) | Prim::LitInt(_));
    expr.code.nodes().iter().map(|node| node.prim).filter(|prim| !leaf(prim)).collect()
}

/// The bound of an expression: that of its primitive, if it has no more than one.
fn elementwise(op: &Op) -> String {
    let expr = match op {
        Op::Map(map) if map.exprs.len() == 1 => Some(&map.exprs[0]),
        Op::Reduce(reduce) => Some(&reduce.producer),
        _ => None,
    };
    let bound = |name: &str| math::bound(name).map_or(0.0, |bound| bound.f32_ulps);
    let ulps = match expr.map(steps).as_deref() {
        Some([]) => 0.0,
        Some([Prim::Unary(unary)]) => bound(unary.name()),
        Some([Prim::Cast(to)]) if !to.is_float() => 0.0,
        Some([Prim::Binary(Binary::Add | Binary::Sub | Binary::Mul | Binary::Div) | Prim::Cast(_)]) => 0.5,
        Some([Prim::Binary(binary)]) => bound(binary.name()),
        Some([Prim::Select]) => 0.0,
        _ => return "rounding of each step".into(),
    };
    if ulps == 0.0 { "exact".into() } else { format!("{ulps} ulp") }
}

/// Whether the suite differentiates it, found out with the reference on the simplest case.
fn order(subject: &Subject, call: &Call, dtype: DType) -> &'static str {
    let case = Case { subject: subject.name.into(), dtype, layout: Layout::Contiguous, choices: vec![0] };
    let Ok(trial) = Trial::new(subject, &case) else { return "no" };
    if !call.has_gradient {
        return "no";
    }
    let device = reference::device(Default::default());
    let passes = |check: &&Check| matches!((check.run)(&trial, &device), Verdict::Passed(_));
    match CHECKS.iter().filter(|check| check.is_gradient).take_while(passes).count() {
        0 => "no",
        1 => "yes",
        _ => "yes, and again",
    }
}

/// What is done where a function has no derivative or elements are equal, asked of the reference.
fn kinks(op: &Op) -> Option<String> {
    let three = Tensor::ones([3], (&reference::device(Default::default()), DType::F64)).ok()?;
    let slopes = |of: fn(&Tensor) -> Result<Tensor>| {
        let slopes = gradient(of, &three).ok()?.to_vec::<f64>().ok()?;
        Some(format!("slopes {slopes:?} of three equal elements"))
    };
    let places = |of: fn(&Tensor) -> Result<Tensor>| {
        Some(format!("position {:?} of three equal elements", of(&three).ok()?.to_vec::<i64>().ok()?))
    };
    match op {
        Op::Map(map) => map.exprs.first().and_then(of_expr),
        Op::Reduce(Reduce { kind: ReduceKind::Max, .. }) => slopes(|x| x.max(..)),
        Op::Reduce(Reduce { kind: ReduceKind::Min, .. }) => slopes(|x| x.min(..)),
        Op::Scan(Scan { kind: ScanKind::Max, .. }) => slopes(|x| x.cummax(0)?.sum(..)),
        Op::ArgReduce(_) => places(|x| x.argmax(0)?.reshape([1])),
        Op::Sort(_) => places(|x| x.argsort(0, false)),
        Op::Pool(Pool { kind: PoolKind::Max, .. }) => {
            slopes(|x| x.reshape([1, 1, 3])?.max_pool1d(&PoolOptions::new(3))?.sum(..))
        }
        _ => None,
    }
}

/// Slopes at the kinks of named formulas and of primitives that have one.
fn of_expr(expr: &Expr) -> Option<String> {
    let mut at: Vec<f64> = Vec::new();
    let mut is_tied = false;
    for node in expr.code.nodes() {
        match node.prim {
            Prim::Call(id) => at.extend(id.formula().kinks),
            Prim::Unary(Unary::Abs) => at.push(0.0),
            Prim::Binary(Binary::Max | Binary::Min) => is_tied = true,
            _ => {}
        }
    }
    let slope = |inputs: &[f64], wrt| Some(expr.derivative(wrt)?.eval_f64(&[inputs, &[1.0]].concat()));
    if expr.code.n_inputs() == 1 && !at.is_empty() {
        let slopes = at.iter().filter_map(|&x| Some(format!("slope {} at {x}", slope(&[x], 0)?)));
        return Some(slopes.collect::<Vec<_>>().join(", "));
    }
    if expr.code.n_inputs() == 2 && is_tied {
        return Some(format!("slopes {} and {} of equal operands", slope(&[1.0; 2], 0)?, slope(&[1.0; 2], 1)?));
    }
    None
}
