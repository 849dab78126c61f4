//! Symbolic derivatives of expressions against dual numbers, of first and second order, and slopes at kinks.

use std::collections::HashSet;

use tensor_core::expr::{Bounded, Bounds, Expr, FORMULAS, Sym, build, named};
use tensor_core::{DType, Op};

use super::{failure, trials};
use crate::suite::input::{Content, mixed};
use crate::suite::report::Failure;
use crate::suite::{probe, subjects};

/// The slope that a formula with a kink is said to have there; further operands are ½.
const AT_KINKS: &[(&str, f64, f64)] = &[
    ("relu", 0.0, 0.0),
    ("leaky_relu", 0.0, 0.5),
    ("elu", 0.0, 0.5),
    ("selu", 0.0, 1.050_700_987_355_480_5 * 1.673_263_242_354_377_2),
    ("celu", 0.0, 1.0),
    ("hard_swish", -3.0, 0.0),
    ("hard_swish", 3.0, 1.0),
    ("hard_tanh", -1.0, 0.0),
    ("hard_tanh", 1.0, 0.0),
];

pub(super) fn run(seed: u64) -> Vec<Failure> {
    let mut failures = at_kinks();
    for formula in FORMULAS {
        let expr = named(formula.name).expect("invariant: every formula has its name");
        failures.extend(judge(formula.name, &expr, &ranges(formula.arity, formula.domain), seed));
    }
    let mut seen = HashSet::new();
    for subject in subjects() {
        for (_, trial) in trials(subject, seed, 8) {
            let domain = trial.source.domain;
            for (op, metas) in probe::steps(&trial.call, DType::F64).unwrap_or_default() {
                let Op::Map(map) = op else { continue };
                // A value that is rounded on the way has no slope but that of what it rounds.
                let is_f64 = metas.iter().all(|meta| meta.dtype == DType::F64);
                // What the call says of its inputs holds for the op that reads them all.
                let mut from = ranges(metas.len(), domain);
                let inputs = trial.call.inputs.iter().filter(|_| metas.len() == trial.call.inputs.len());
                for (range, input) in from.iter_mut().zip(inputs) {
                    if let Content::Within(low, high) = input.content {
                        *range = (low, high);
                    }
                }
                let exprs = map.exprs.iter().filter(|expr| is_f64 && is_in_f64(expr) && seen.insert(expr.code.id()));
                failures.extend(exprs.filter_map(|expr| judge(subject.name, expr, &from, seed)));
            }
        }
    }
    for i in 0..300 {
        let expr = build(|[x, y]| random(&mut |n| mixed(seed, i << 16 | n), &mut 0, 5, [x, y]));
        failures.extend(judge("map", &expr, &ranges(2, (-2.0, 2.0)), seed ^ i));
    }
    failures
}

fn at_kinks() -> Vec<Failure> {
    let mut failures = Vec::new();
    for formula in FORMULAS {
        let expr = named(formula.name).expect("invariant: every formula has its name");
        let slope = expr.derivative(0).expect("invariant: every formula has a slope");
        for &kink in formula.kinks {
            let mut operands = vec![0.5; formula.arity];
            operands[0] = kink;
            operands.push(1.0);
            let got = slope.eval_f64(&operands);
            let stated = AT_KINKS.iter().find(|(name, at, _)| *name == formula.name && *at == kink);
            let message = match stated {
                Some(&(_, _, want)) if (got - want).abs() <= 4.0 * f64::EPSILON * want.abs() => continue,
                Some((_, _, want)) => format!("the slope is {got:?}, stated is {want:?}"),
                None => format!("the slope is {got:?}, and none is stated"),
            };
            failures.push(failure(formula.name, "kink", format!("{kink:?}"), message));
        }
    }
    failures
}

/// Whether nothing is converted on the way.
fn is_in_f64(expr: &Expr) -> bool {
    use tensor_core::expr::Prim;
    expr.code.nodes().iter().all(|node| !matches!(node.prim, Prim::Cast(dtype) if dtype != DType::F64))
}

/// Where operands are drawn from; further ones are numbers of which many formulas divide.
fn ranges(n: usize, domain: (f64, f64)) -> Vec<(f64, f64)> {
    (0..n).map(|k| if k == 0 { domain } else { (domain.0.max(0.4), domain.1.max(1.2)) }).collect()
}

/// The first difference found at random points.
fn judge(op: &str, expr: &Expr, from: &[(f64, f64)], seed: u64) -> Option<Failure> {
    for point in 0..24 {
        let draw = |k: u64, (low, high): (f64, f64)| {
            let part = (mixed(seed ^ expr.code.id(), point << 8 | k) >> 11) as f64 / (1u64 << 53) as f64;
            low + part * (high - low)
        };
        let x: Vec<f64> = from.iter().enumerate().map(|(k, &range)| draw(k as u64, range)).collect();
        let cotangent = draw(63, (0.5, 2.0));
        if let Some(message) = first_and_second(expr, &x, cotangent) {
            return Some(failure(op, "formula", format!("{x:?}, cotangent {cotangent:?}"), message));
        }
    }
    None
}

fn first_and_second(expr: &Expr, x: &[f64], cotangent: f64) -> Option<String> {
    for i in 0..x.len() {
        let pulled: Vec<f64> = x.iter().copied().chain([cotangent]).collect();
        let dual = expr.eval_derivative(x, i);
        let Some(derivative) = expr.derivative(i) else {
            if dual == 0.0 || dual.is_nan() {
                continue;
            }
            return Some(format!("by input {i}: there is no derivative, dual numbers have {dual:?}"));
        };
        if let Some(message) = differs(&derivative, &pulled, dual * cotangent) {
            return Some(format!("by input {i}: {message}"));
        }
        for j in 0..pulled.len() {
            let Some(second) = derivative.derivative(j) else { continue };
            let twice: Vec<f64> = pulled.iter().copied().chain([1.0]).collect();
            if let Some(message) = differs(&second, &twice, derivative.eval_derivative(&pulled, j)) {
                return Some(format!("by inputs {i} and {j}: {message}"));
            }
        }
    }
    None
}

/// What a derivative is that differs from what it should be by more than rounding explains: its own running bound, and as
/// much for the dual numbers, which take another road through numbers of the same size.
fn differs(derivative: &Expr, at: &[f64], want: f64) -> Option<String> {
    let bounds = Bounds::default();
    let inputs: Vec<Bounded> = at.iter().map(|&v| Bounds::exact(v)).collect();
    let got = derivative.code.eval(&bounds, &inputs, &derivative.args);
    if !want.is_finite() || !got.value.is_finite() || !got.error.is_finite() {
        return None;
    }
    let allowed = 64.0 * (got.error + f64::EPSILON * want.abs()) + f64::MIN_POSITIVE;
    let is_near = (got.value - want).abs() <= allowed;
    (!is_near).then(|| format!("the derivative is {:?}, dual numbers have {want:?} (allowed {allowed:.1e})", got.value))
}

/// A random smooth or kinked expression of both inputs, up to a depth.
fn random(word: &mut impl FnMut(u64) -> u64, n: &mut u64, depth: usize, x: [Sym; 2]) -> Sym {
    *n += 1;
    let pick = word(*n) >> 20;
    if depth == 0 {
        return x[pick as usize % 2];
    }
    let a = random(word, n, depth - 1, x);
    match pick % 17 {
        0 => a.sin(),
        1 => a.tanh(),
        2 => a.sigmoid(),
        3 => a.tanh().exp(),
        4 => (a * a + 1).sqrt(),
        5 => (a * a + 1).ln(),
        6 => a.softplus(),
        7 => a.gelu(),
        8 => a.erf(),
        9 => -a,
        k => {
            let b = random(word, n, depth - 1, x);
            match k {
                10 => a + b,
                11 => a - b,
                12 => a * b.tanh(),
                13 => a / (b * b + 1),
                14 => a.max(b),
                15 => a.min(b),
                _ => a.lt(b).select(a.cos(), b.silu()),
            }
        }
    }
}
