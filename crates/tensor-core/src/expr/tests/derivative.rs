//! Symbolic derivatives against dual numbers, at kinks, and where naive ones give NaN.

use super::{Draws, Singles};
use crate::expr::{FORMULAS, build, named};
use crate::{Expr, Sym};

const COTANGENT: f64 = 1.7;

fn derivative_at(expr: &Expr, inputs: &[f64], wrt: usize, cotangent: f64) -> f64 {
    let extended: Vec<f64> = inputs.iter().copied().chain([cotangent]).collect();
    expr.derivative(wrt).map_or(0.0, |d| d.eval_f64(&extended))
}

/// The symbolic derivatives of first and second order against dual numbers of the formula and of its derivative.
fn check(name: &str, expr: &Expr, inputs: &[f64]) {
    let close = |got: f64, expected: f64| (got - expected).abs() <= 1e-9 * (1.0 + expected.abs());
    for wrt in 0..inputs.len() {
        let got = derivative_at(expr, inputs, wrt, COTANGENT);
        let expected = COTANGENT * expr.eval_derivative(inputs, wrt);
        assert!(close(got, expected), "{name}' at {inputs:?} by {wrt}: {got}, dual numbers {expected}");
        let Some(first) = expr.derivative(wrt) else { continue };
        let inputs: Vec<f64> = inputs.iter().copied().chain([COTANGENT]).collect();
        for again in 0..inputs.len() {
            let got = derivative_at(&first, &inputs, again, 1.0);
            let expected = first.eval_derivative(&inputs, again);
            assert!(close(got, expected), "{name}'' at {inputs:?} by {wrt}, {again}: {got}, dual numbers {expected}");
        }
    }
}

#[test]
fn primitives_of_one_operand_agree_with_dual_numbers() {
    let wide: &[f64] = &[-3.7, -1.2, -0.4, 0.3, 1.1, 2.6];
    let positive: &[f64] = &[0.02, 0.6, 1.0, 3.4];
    let cases: &[(&str, fn(Sym) -> Sym, &[f64])] = &[
        ("neg", |x| -x, wide),
        ("abs", Sym::abs, wide),
        ("sign", Sym::sign, wide),
        ("exp", Sym::exp, wide),
        ("exp_m1", Sym::exp_m1, wide),
        ("ln", Sym::ln, positive),
        ("ln_1p", Sym::ln_1p, &[-0.9, -0.1, 0.0, 2.5]),
        ("sqrt", Sym::sqrt, positive),
        ("rsqrt", Sym::rsqrt, positive),
        ("recip", Sym::recip, wide),
        ("sin", Sym::sin, wide),
        ("cos", Sym::cos, wide),
        ("tanh", Sym::tanh, wide),
        ("erf", Sym::erf, wide),
        ("floor", Sym::floor, wide),
        ("ceil", Sym::ceil, wide),
        ("round", Sym::round, wide),
        ("square", Sym::square, wide),
        ("clamp", |x| x.clamp(-1.5, 1.5), wide),
    ];
    for (name, formula, points) in cases {
        let expr = build(|[x]| formula(x));
        points.iter().for_each(|&x| check(name, &expr, &[x]));
    }
}

#[test]
fn primitives_of_two_operands_agree_with_dual_numbers() {
    let points: &[[f64; 2]] = &[[1.3, 2.1], [0.4, -1.7], [2.5, 0.6], [3.0, 3.5]];
    let cases: &[(&str, fn(Sym, Sym) -> Sym)] = &[
        ("add", |x, y| x + y),
        ("sub", |x, y| x - y),
        ("mul", |x, y| x * y),
        ("div", |x, y| x / y),
        ("rem", |x, y| x % y),
        ("pow", |x, y| x.pow(y)),
        ("min", |x, y| x.min(y)),
        ("max", |x, y| x.max(y)),
        ("select", |x, y| x.lt(y).select(x * y, x / y)),
        ("eq", |x, y| x.eq(y).cast(crate::DType::F64) * x),
    ];
    for (name, formula) in cases {
        let expr = build(|[x, y]| formula(x, y));
        points.iter().for_each(|inputs| check(name, &expr, inputs));
    }
}

/// The operands after the first of a formula.
fn parameters(name: &str) -> &'static [f64] {
    match name {
        "leaky_relu" => &[0.1],
        "elu" => &[1.3],
        "celu" => &[0.7],
        _ => &[],
    }
}

#[test]
fn formulas_agree_with_dual_numbers_on_their_domains() {
    let mut draws = Draws(0);
    for formula in FORMULAS {
        let expr = named(formula.name).expect("a formula has its name");
        assert_eq!(parameters(formula.name).len() + 1, formula.arity, "{} has parameters in this test", formula.name);
        for _ in 0..40 {
            let x = draws.within(formula.domain);
            if formula.kinks.iter().any(|k| (x - k).abs() < 1e-6) {
                continue;
            }
            let inputs: Vec<f64> = [x].iter().chain(parameters(formula.name)).copied().collect();
            check(formula.name, &expr, &inputs);
        }
    }
}

#[test]
fn formulas_have_their_limits_far_out() {
    // Value and slope at −1e4 and at 1e4.
    let x = 1e4;
    let cases: &[(&str, [f64; 2], [f64; 2])] = &[
        ("relu", [0.0, 0.0], [x, 1.0]),
        ("leaky_relu", [-0.1 * x, 0.1], [x, 1.0]),
        ("elu", [-1.3, 0.0], [x, 1.0]),
        ("selu", [-1.758_099_340_847_377, 0.0], [1.050_700_987_355_480_5 * x, 1.050_700_987_355_480_5]),
        ("celu", [-0.7, 0.0], [x, 1.0]),
        ("gelu", [0.0, 0.0], [x, 1.0]),
        ("gelu_tanh", [0.0, 0.0], [x, 1.0]),
        ("sigmoid", [0.0, 0.0], [1.0, 0.0]),
        ("log_sigmoid", [-x, 1.0], [0.0, 0.0]),
        ("silu", [0.0, 0.0], [x, 1.0]),
        ("mish", [0.0, 0.0], [x, 1.0]),
        ("softplus", [0.0, 0.0], [x, 1.0]),
        ("softsign", [-x / (1.0 + x), 1.0 / (1.0 + x).powi(2)], [x / (1.0 + x), 1.0 / (1.0 + x).powi(2)]),
        ("hard_swish", [0.0, 0.0], [x, 1.0]),
        ("hard_tanh", [-1.0, 0.0], [1.0, 0.0]),
    ];
    for formula in FORMULAS.iter().filter(|f| f.name != "tan") {
        let Some((name, low, high)) = cases.iter().find(|(name, ..)| *name == formula.name) else {
            panic!("{} has no limits in this test", formula.name);
        };
        let expr = named(name).expect("a formula has its name");
        let slope = expr.derivative(0).expect("a formula has a slope");
        let curvature = slope.derivative(0);
        for (x, [value, expected]) in [(-x, low), (x, high)] {
            let inputs: Vec<f64> = [x].iter().chain(parameters(name)).copied().collect();
            let with_cotangent: Vec<f64> = inputs.iter().copied().chain([1.0]).collect();
            let close = |a: f64, b: f64, tolerance: f64| (a - b).abs() <= tolerance * b.abs().max(1e-30);
            let got = (expr.eval_f64(&inputs), slope.eval_f64(&with_cotangent));
            assert!(close(got.0, *value, 1e-9) && close(got.1, *expected, 1e-9), "{name}({x}): {got:?}");
            // The same in f32, where e^x overflows at 89 and x³ is large.
            let singles = |expr: &Expr, inputs: &[f64]| {
                let inputs: Vec<f32> = inputs.iter().map(|&v| v as f32).collect();
                f64::from(expr.code.eval(&Singles, &inputs, &expr.args))
            };
            let got = (singles(&expr, &inputs), singles(&slope, &with_cotangent));
            assert!(close(got.0, *value, 1e-5) && close(got.1, *expected, 1e-5), "{name}({x}) in f32: {got:?}");
            if let Some(curvature) = &curvature {
                let inputs: Vec<f64> = with_cotangent.iter().copied().chain([1.0]).collect();
                assert!(singles(curvature, &inputs).abs() < 1e-3, "{name}''({x}) in f32");
            }
        }
    }
}

#[test]
fn kinks_and_ties_take_the_side_of_the_contract() {
    let slope = |f: fn(Sym) -> Sym, x: f64| derivative_at(&build(|[x]| f(x)), &[x], 0, 1.0);
    assert_eq!(slope(Sym::relu, 0.0), 0.0);
    assert_eq!(slope(Sym::abs, 0.0), 0.0);
    assert_eq!(slope(|x| x.clamp(-1.0, 1.0), 1.0), 1.0);
    assert_eq!(slope(|x| x.clamp(-1.0, 1.0), 1.5), 0.0);
    assert_eq!(slope(|x| x.leaky_relu(0.25), 0.0), 0.25);
    assert_eq!(slope(Sym::hard_tanh, 1.0), 0.0);
    // Of equals the first has the gradient.
    for f in [|a: Sym, b: Sym| a.max(b), |a: Sym, b: Sym| a.min(b)] {
        let expr = build(|[a, b]| f(a, b));
        assert_eq!((derivative_at(&expr, &[2.0, 2.0], 0, 1.0), derivative_at(&expr, &[2.0, 2.0], 1, 1.0)), (1.0, 0.0));
    }
    let pow = build(|[a, b]| a.pow(b));
    assert_eq!(derivative_at(&pow, &[0.0, 0.0], 0, 1.0), 0.0);
    assert_eq!(derivative_at(&pow, &[0.0, 2.0], 1, 1.0), 0.0);
    assert_eq!(derivative_at(&pow, &[-2.0, 3.0], 0, 1.0), 12.0);
}

#[test]
fn a_branch_not_taken_adds_nothing_however_infinite() {
    let cases: &[(&str, fn(Sym) -> Sym, f64, f64)] = &[
        ("its own slope is infinite", |x| x.gt(0).select(x.ln(), 0.0), 0.0, 0.0),
        ("the outer slope is infinite", |x| x.gt(0).select(x, 0.0).sqrt(), -1.0, 0.0),
        ("a maximum under a root", |x| x.max(0).sqrt(), -1.0, 0.0),
        ("relu over a logarithm", |x| x.ln().relu(), 0.0, 0.0),
        ("a sum of two", |x| (x.max(0) + x.gt(1).select(x, 0.0)).sqrt(), -1.0, 0.0),
        ("negated", |x| -(-(x.max(0))).abs().sqrt(), -1.0, 0.0),
        ("nested", |x| x.gt(0).select(x.gt(1).select(x.ln(), 0.0), 0.0).sqrt(), 0.5, 0.0),
        ("taken", |x| x.gt(0).select(x, 0.0).sqrt(), 4.0, 0.25),
    ];
    for (name, f, x, expected) in cases {
        let expr = build(|[x]| f(x));
        assert_eq!(derivative_at(&expr, &[*x], 0, 1.0), *expected, "{name}");
        assert_eq!(expr.eval_derivative(&[*x], 0), *expected, "{name}, dual numbers");
        // Second order.
        let first = expr.derivative(0).expect("not zero everywhere");
        assert!(!derivative_at(&first, &[*x, 1.0], 0, 1.0).is_nan(), "{name}, second order");
    }
    let relu = build(|[x]| x.relu());
    assert_eq!(derivative_at(&relu, &[-1.0], 0, f64::INFINITY), 0.0, "an infinite cotangent");
}

#[test]
fn derivatives_share_structure_and_keep_the_numbers() {
    let (a, b) = (build(|[x]| (x * 3.0).tanh()), build(|[x]| (x * 5.0).tanh()));
    assert_eq!(a.code.id(), b.code.id());
    let (da, db) = (a.derivative(0).expect("a slope"), b.derivative(0).expect("a slope"));
    assert_eq!(da.code.id(), db.code.id());
    assert_ne!(da.eval_f64(&[0.1, 1.0]), db.eval_f64(&[0.1, 1.0]));
    assert!(build(|[x]| x.floor()).derivative(0).is_none());
    assert!(build(|[x, _]: [Sym; 2]| x.exp()).derivative(1).is_none());
    // What the tape has to keep.
    assert_eq!(build(|[x, y]| x + y).code.derivative_reads(), 0b00);
    assert_eq!(build(|[x, y]| x * y.exp()).code.derivative_reads(), 0b11);
    assert_eq!(build(|[x, y]| x * 2.0 + y.exp()).code.derivative_reads(), 0b10);
}
