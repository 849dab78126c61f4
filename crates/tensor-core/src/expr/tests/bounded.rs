//! Error bounds: what f32 computes lies within them, and they are not so wide that they say nothing.

use super::{Draws, Singles};
use crate::expr::{Bounded, Bounds, FORMULAS, Value, build, largest, named, smallest_normal, ulp};
use crate::{DType, Expr, Sym};

#[test]
fn ulps_are_those_of_the_formats() {
    let cases = [
        (1.0, DType::F32, f64::from(f32::EPSILON)),
        (1.0, DType::F64, f64::EPSILON),
        (1.0, DType::F16, DType::F16.epsilon()),
        (1.0, DType::BF16, DType::BF16.epsilon()),
        (0.0, DType::F32, f64::from(f32::from_bits(1))),
        (0.0, DType::F64, f64::from_bits(1)),
        (0.0, DType::F16, half::f16::from_bits(1).to_f64()),
        (-3.9, DType::F32, 2.0 * f64::from(f32::EPSILON)),
        (f64::INFINITY, DType::F32, f64::from(f32::MAX) - f64::from(f32::MAX.next_down())),
    ];
    for (v, dtype, expected) in cases {
        assert_eq!(ulp(v, dtype), expected, "{v} in {dtype}");
    }
    assert_eq!(largest(DType::F32), f64::from(f32::MAX));
    assert_eq!(largest(DType::F16), half::f16::MAX.to_f64());
    assert_eq!(largest(DType::F64), f64::MAX);
    assert_eq!(smallest_normal(DType::F32), f64::from(f32::MIN_POSITIVE));
}

fn bounded(expr: &Expr, inputs: &[f32]) -> Bounded {
    let dtypes = vec![DType::F32; inputs.len()];
    let program = expr.code.program("f", &dtypes).expect("the types fit");
    let values: Vec<_> = inputs.iter().map(|&v| Value::Real(Bounds::exact(v.into()))).collect();
    match program.eval(&Bounds::default(), &values, &expr.args) {
        Value::Real(v) => v,
        Value::Int(v) => Bounds::exact(v as f64),
    }
}

/// The distance of the f32 result, as a share of the bound.
fn share(name: &str, expr: &Expr, inputs: &[f32]) -> f64 {
    let got = f64::from(expr.code.eval(&Singles, inputs, &expr.args));
    let Bounded { value, error } = bounded(expr, inputs);
    let fits =
        error == f64::INFINITY || (got.is_nan() && value.is_nan()) || got == value || (got - value).abs() <= error;
    assert!(fits, "{name} of {inputs:?}: {got:?}, bounded {value:?} ± {error:?}");
    if error > 0.0 && error.is_finite() { (got - value).abs() / error } else { 0.0 }
}

#[test]
fn formulas_and_their_slopes_stay_within_their_bounds() {
    let mut draws = Draws(1000);
    for formula in FORMULAS {
        let expr = named(formula.name).expect("a formula has its name");
        let slope = expr.derivative(0).expect("a formula has a slope");
        let mut largest = 0.0f64;
        for i in 0..400 {
            let x = if i % 10 == 9 { draws.within((-1e4, 1e4)) } else { draws.within(formula.domain) };
            let inputs: Vec<f32> =
                std::iter::once(x).chain((1..formula.arity).map(|_| 0.7)).map(|v| v as f32).collect();
            largest = largest.max(share(formula.name, &expr, &inputs));
            let inputs: Vec<f32> = inputs.into_iter().chain([1.3]).collect();
            share(formula.name, &slope, &inputs);
        }
        assert!(
            largest > 0.02 || ["relu", "hard_tanh"].contains(&formula.name),
            "{}: at most {largest} of its bound",
            formula.name
        );
    }
}

#[test]
fn random_expressions_stay_within_their_bounds() {
    let unary: &[fn(Sym) -> Sym] = &[
        |x| -x,
        Sym::abs,
        Sym::exp,
        Sym::exp_m1,
        Sym::ln,
        Sym::ln_1p,
        Sym::sqrt,
        Sym::rsqrt,
        Sym::recip,
        Sym::sin,
        Sym::cos,
        Sym::tanh,
        Sym::erf,
        Sym::floor,
        Sym::round,
        Sym::square,
        Sym::sign,
        Sym::sigmoid,
        Sym::softplus,
    ];
    let binary: &[fn(Sym, Sym) -> Sym] = &[
        |x, y| x + y,
        |x, y| x - y,
        |x, y| x * y,
        |x, y| x / y,
        |x, y| x % y,
        |x, y| x.abs().pow(y),
        |x, y| x.min(y),
        |x, y| x.max(y),
        |x, y| x.lt(y).select(x, y * 0.3),
    ];
    let mut draws = Draws(5000);
    let (mut n_judged, mut shares) = (0, 0.0);
    for _ in 0..1500 {
        let expr = build(|inputs: [Sym; 3]| {
            let mut pool = inputs.to_vec();
            for _ in 0..2 + draws.below(6) {
                let (a, b) = (pool[draws.below(pool.len())], pool[draws.below(pool.len())]);
                pool.push(if draws.below(2) == 0 {
                    unary[draws.below(unary.len())](a)
                } else {
                    binary[draws.below(binary.len())](a, b)
                });
            }
            pool[pool.len() - 1]
        });
        for _ in 0..20 {
            let inputs: Vec<f32> = (0..3).map(|_| draws.within((-3.0, 3.0)) as f32).collect();
            shares += share(&format!("{:?}", expr.code.nodes()), &expr, &inputs);
            n_judged += usize::from(bounded(&expr, &inputs).error.is_finite());
        }
    }
    assert!(n_judged > 20_000, "only {n_judged} of 30,000 have a finite bound");
    assert!(shares / f64::from(n_judged as u32) > 0.02, "bounds are far too wide: {shares} over {n_judged}");
}

#[test]
fn doubt_spreads_through_comparisons_and_overflow() {
    let near = build(|[x]| (x.sin() * 3.0).lt((x.sin() + x.sin()) + x.sin()).select(1.0, 5.0));
    assert_eq!(bounded(&near, &[0.3]).error, 4.0, "either branch may be taken");
    let inf = bounded(&build(|[x]| x.exp()), &[100.0]);
    assert_eq!((inf.value, inf.error), (f64::INFINITY, 0.0), "beyond doubt infinite in f32");
    let edge = Bounded { value: f64::from(f32::MAX), error: ulp(f64::from(f32::MAX), DType::F32) };
    assert_eq!(Bounds::default().rounded(edge, 0.5, DType::F32).error, f64::INFINITY, "may or may not overflow");
    let cancelled = bounded(&build(|[x]| (x.exp() - x.exp() * (Sym::from(1) + 1e-7)).ln()), &[0.5]);
    assert_eq!(cancelled.error, f64::INFINITY, "the logarithm of what may be 0");
    let flushing = Bounds { accuracy: crate::expr::Accuracy { loose: true, flushes_subnormals: true, tf32: false } };
    let tiny = flushing.rounded(Bounds::exact(1e-40), 0.5, DType::F32);
    assert!(tiny.error >= 1e-40, "0 is allowed");
    let smallest = Bounds::default().rounded(Bounds::exact(f64::MIN_POSITIVE), 0.5, DType::F64);
    assert!(smallest.error > 0.0, "half a unit of a subnormal f64 does not vanish");
}

#[test]
fn a_factor_in_tf32_keeps_ten_bits() {
    let tf32 = Bounds { accuracy: crate::expr::Accuracy { tf32: true, ..Default::default() } };
    let factor = |v: f64| tf32.factor(Bounds::exact(v), DType::F32).error;
    for exact in [0.0, -3.0, 2047.0, 1.0 + 2f64.powi(-10), 2f64.powi(-136), f64::INFINITY] {
        assert_eq!(factor(exact), 0.0, "{exact}");
    }
    for v in [2049.0, 1.0 + 2f64.powi(-11), 0.1, -1e30] {
        let relative = factor(v) / f64::abs(v);
        assert!((2f64.powi(-12)..=2f64.powi(-11)).contains(&relative), "{v}: {relative}");
    }
    assert_eq!(factor(2f64.powi(-137)), 2f64.powi(-137), "half a unit of the smallest");
    assert_eq!(factor(f64::from(f32::MAX)), f64::INFINITY, "it may become infinite");
    assert_eq!(tf32.factor(Bounds::exact(0.1), DType::F64).error, 0.0, "other dtypes keep all");
    assert_eq!(Bounds::default().factor(Bounds::exact(0.1), DType::F32).error, 0.0, "and so does f32 unless asked");
}
