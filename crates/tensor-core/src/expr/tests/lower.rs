//! The lowering does what the native math library does, bit by bit, and what the typed reference does for integers.

use super::{Draws, Singles};
use crate::expr::lower::{LowOp, LowType, Lowered, lower};
use crate::expr::{Algebra, Reals, Unary, Value, build};
use crate::{DType, Expr, Number, Sym, math};
use interpret::run;

mod interpret;

const F32: &[DType] = &[DType::F32];
const F64: &[DType] = &[DType::F64];

fn lowered(expr: &Expr, inputs: &[DType]) -> Lowered {
    lower("f", std::slice::from_ref(expr), inputs).expect("the types fit")
}

fn same_f32(a: u64, b: f32) -> bool {
    a as u32 == b.to_bits() || (f32::from_bits(a as u32).is_nan() && b.is_nan())
}

fn same_f64(a: u64, b: f64) -> bool {
    a == b.to_bits() || (f64::from_bits(a).is_nan() && b.is_nan())
}

type Function = (&'static str, fn(Sym) -> Sym, fn(f32) -> f32, fn(f64) -> f64);

/// Every function of one operand: its formula and the native one of either width.
const FUNCTIONS: &[Function] = &[
    ("neg", |x| -x, |x| -x, |x| -x),
    ("abs", Sym::abs, math::abs, math::abs),
    ("sign", Sym::sign, math::sign, math::sign),
    ("exp", Sym::exp, math::exp, math::exp),
    ("exp_m1", Sym::exp_m1, math::exp_m1, math::exp_m1),
    ("ln", Sym::ln, math::ln, math::ln),
    ("ln_1p", Sym::ln_1p, math::ln_1p, math::ln_1p),
    ("sqrt", Sym::sqrt, math::sqrt, math::sqrt),
    ("rsqrt", Sym::rsqrt, math::rsqrt, math::rsqrt),
    ("recip", Sym::recip, math::recip, math::recip),
    ("sin", Sym::sin, math::sin, math::sin),
    ("cos", Sym::cos, math::cos, math::cos),
    ("tanh", Sym::tanh, math::tanh, math::tanh),
    ("erf", Sym::erf, math::erf, math::erf),
    ("floor", Sym::floor, math::floor, math::floor),
    ("ceil", Sym::ceil, math::ceil, math::ceil),
    ("round", Sym::round, math::round, math::round),
];

#[test]
fn functions_of_one_operand_give_the_bits_of_the_math_library() {
    let mut draws = Draws(9000);
    for (name, formula, single, double) in FUNCTIONS {
        let expr = build(|[x]| formula(x));
        let code = lowered(&expr, F32);
        // Bit patterns all over, specials included, and the ordinary range more densely.
        let everywhere = (0..20_000u32).map(|i| f32::from_bits(i.wrapping_mul(214_748)));
        let ordinary = (0..5_000).map(|_| draws.within((-20.0, 20.0)) as f32);
        let specials = [0.0, -0.0, f32::INFINITY, f32::NEG_INFINITY, f32::NAN, f32::MIN_POSITIVE, f32::MAX];
        for x in everywhere.chain(ordinary.collect::<Vec<_>>()).chain(specials) {
            let got = run(&code, &[x.to_bits().into()], &[])[0];
            assert!(
                same_f32(got, single(x)),
                "{name}({x:e}): {:e}, natively {:e}",
                f32::from_bits(got as u32),
                single(x)
            );
        }
        let code = lowered(&expr, F64);
        let everywhere = (0..20_000u64).map(|i| f64::from_bits(i.wrapping_mul(922_337_203_685_477)));
        let ordinary = (0..5_000).map(|_| draws.within((-40.0, 40.0)));
        for x in everywhere.chain(ordinary.collect::<Vec<_>>()).chain(specials.map(f64::from)) {
            let got = run(&code, &[x.to_bits()], &[])[0];
            assert!(same_f64(got, double(x)), "{name}({x:e}): {:e}, natively {:e}", f64::from_bits(got), double(x));
        }
    }
}

#[test]
fn functions_of_two_operands_give_the_bits_of_the_math_library() {
    type Function = (&'static str, fn(Sym, Sym) -> Sym, fn(f32, f32) -> f32, fn(f64, f64) -> f64);
    let functions: &[Function] = &[
        ("add", |x, y| x + y, |x, y| x + y, |x, y| x + y),
        ("sub", |x, y| x - y, |x, y| x - y, |x, y| x - y),
        ("mul", |x, y| x * y, |x, y| x * y, |x, y| x * y),
        ("div", |x, y| x / y, |x, y| x / y, |x, y| x / y),
        ("rem", |x, y| x % y, math::rem, math::rem),
        ("pow", |x, y| x.pow(y), math::pow, math::pow),
        ("min", |x, y| x.min(y), math::min, math::min),
        ("max", |x, y| x.max(y), math::max, math::max),
    ];
    let mut draws = Draws(20_000);
    let specials = [0.0, -0.0, 1.0, -1.0, 3.0, 0.5, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, 1e30, -1e-30];
    let mut pairs: Vec<[f64; 2]> = specials.iter().flat_map(|&x| specials.map(|y| [x, y])).collect();
    pairs.extend((0..5_000).map(|_| [draws.within((-50.0, 50.0)), draws.within((-9.0, 9.0))]));
    for (name, formula, single, double) in functions {
        let expr = build(|[x, y]| formula(x, y));
        let (narrow, wide) = (lowered(&expr, &[DType::F32; 2]), lowered(&expr, &[DType::F64; 2]));
        for &[x, y] in &pairs {
            let (a, b) = (x as f32, y as f32);
            let got = run(&narrow, &[a.to_bits().into(), b.to_bits().into()], &[])[0];
            assert!(same_f32(got, single(a, b)), "{name}({a:e}, {b:e}): {:e}", f32::from_bits(got as u32));
            let got = run(&wide, &[x.to_bits(), y.to_bits()], &[])[0];
            assert!(same_f64(got, double(x, y)), "{name}({x:e}, {y:e}): {:e}", f64::from_bits(got));
        }
    }
}

#[test]
fn random_expressions_give_the_bits_of_native_evaluation() {
    let mut draws = Draws(30_000);
    for _ in 0..300 {
        let expr = build(|inputs: [Sym; 2]| {
            let mut pool = inputs.to_vec();
            for _ in 0..3 + draws.below(6) {
                let (a, b) = (pool[draws.below(pool.len())], pool[draws.below(pool.len())]);
                let factor = draws.within((-2.0, 2.0));
                let next = match draws.below(9) {
                    0 => a + b,
                    1 => a * b,
                    2 => a / b,
                    3 => a.lt(b).and(a.ne(0.25)).select(a, b * factor),
                    4 => a.max(b) - factor,
                    5 => a.clamp(-1.0, 1.0).not_a_number_or(b),
                    6 => a.gelu() + b.softplus(),
                    k => FUNCTIONS[(k * 5 + draws.below(17)) % FUNCTIONS.len()].1(a),
                };
                pool.push(next);
            }
            pool[pool.len() - 1]
        });
        let code = lowered(&expr, &[DType::F32; 2]);
        for _ in 0..10 {
            let inputs = [draws.within((-3.0, 3.0)) as f32, draws.within((-3.0, 3.0)) as f32];
            let got = run(&code, &inputs.map(|v| v.to_bits().into()), &expr.args)[0];
            let expected = expr.code.eval(&Singles, &inputs, &expr.args);
            assert!(
                same_f32(got, expected),
                "{:?} of {inputs:?}: {:e}, natively {expected:e}",
                expr.code.nodes(),
                f32::from_bits(got as u32)
            );
        }
    }
}

impl Sym {
    fn not_a_number_or(self, other: Sym) -> Sym {
        self.is_nan().not().or(other.is_finite()).select(self, other)
    }
}

/// An integer as its register holds it.
fn register(v: i64, dtype: DType) -> u64 {
    match LowType::of(dtype) {
        LowType::I64 => v as u64,
        _ => u64::from(v as u32),
    }
}

/// The integer that a register holds.
fn integer(bits: u64, dtype: DType) -> i64 {
    match LowType::of(dtype) {
        LowType::I64 => bits as i64,
        _ => i64::from(bits as u32 as i32),
    }
}

#[test]
fn integers_agree_with_the_typed_reference() {
    let two: &[(&str, fn(Sym, Sym) -> Sym)] = &[
        ("add", |a, b| a + b),
        ("sub", |a, b| a - b),
        ("mul", |a, b| a * b),
        ("div", |a, b| a / b),
        ("rem", |a, b| a % b),
        ("pow", |a, b| a.pow(b)),
        ("min", |a, b| a.min(b)),
        ("max", |a, b| a.max(b)),
        ("sign", |a, b| a.sign() * 3 + b.abs()),
        ("select", |a, b| a.lt(b).or(a.eq(7)).select(a, b + 5)),
        ("le", |a, b| a.le(b).select(1, 0) + a),
        ("ne", |a, b| a.ne(b).not().select(a, 2)),
    ];
    let edges = [
        0,
        1,
        -1,
        2,
        3,
        -3,
        7,
        10,
        63,
        64,
        127,
        200,
        255,
        i64::from(i32::MAX),
        i64::from(i32::MIN),
        i64::MAX,
        i64::MIN,
    ];
    for dtype in [DType::I64, DType::I32, DType::U8] {
        for (name, formula) in two {
            let expr = build(|[a, b]| formula(a, b));
            let (code, program) =
                (lowered(&expr, &[dtype; 2]), expr.code.program("f", &[dtype; 2]).expect("the types fit"));
            for x in edges.map(|v| crate::expr::wrap(v, dtype)) {
                for y in edges.map(|v| crate::expr::wrap(v, dtype)) {
                    let got = run(&code, &[register(x, dtype), register(y, dtype)], &expr.args)[0];
                    let expected = program.eval(&Reals, &[Value::Int(x), Value::Int(y)], &expr.args);
                    assert_eq!(Value::Int(integer(got, dtype)), expected, "{name}({x}, {y}) in {dtype}");
                }
            }
        }
    }
}

#[test]
fn casts_agree_with_the_typed_reference() {
    let floats = [
        0.0,
        -0.0,
        0.4,
        -0.6,
        1.5,
        2.5,
        -2.9,
        254.7,
        256.0,
        1e5,
        65_519.0,
        65_520.0,
        3e9,
        -3e9,
        1e19,
        1e300,
        f64::INFINITY,
        f64::NAN,
    ];
    let ints = [
        0,
        1,
        -1,
        3,
        77,
        255,
        256,
        2049,
        16_777_217,
        33_685_505,
        i64::from(i32::MAX),
        i64::MAX - 511,
        i64::MAX,
        i64::MIN,
    ];
    for from in DType::ALL {
        for to in DType::ALL {
            let expr = build(|[x]| x.cast(to));
            let (code, program) = (lowered(&expr, &[from]), expr.code.program("f", &[from]).expect("the types fit"));
            let values: Vec<(Value<f64>, u64)> = if from.is_int() {
                ints.iter().map(|&v| crate::expr::wrap(v, from)).map(|v| (Value::Int(v), register(v, from))).collect()
            } else if from == DType::Bool {
                vec![(Value::Real(0.0), 0), (Value::Real(1.0), 1)]
            } else {
                floats.iter().map(|&v| Reals.cast(v, from)).map(|v| (Value::Real(v), float_register(v, from))).collect()
            };
            for (value, bits) in values {
                let got = run(&code, &[bits], &[])[0];
                match program.eval(&Reals, &[value], &[]) {
                    Value::Int(expected) => assert_eq!(integer(got, to), expected, "{value:?} from {from} to {to}"),
                    Value::Real(expected) => {
                        let expected = if to == DType::Bool { expected as u64 } else { float_register(expected, to) };
                        let is_nan = matches!(value, Value::Real(v) if v.is_nan()) && to.is_float();
                        assert!(
                            got == expected || is_nan,
                            "{value:?} from {from} to {to}: {got:x}, expected {expected:x}"
                        );
                    }
                }
            }
        }
    }
}

fn float_register(v: f64, dtype: DType) -> u64 {
    if dtype == DType::F64 { v.to_bits() } else { u64::from((v as f32).to_bits()) }
}

#[test]
fn truth_values_follow_their_tables() {
    type Table = (&'static str, fn(Sym, Sym) -> Sym, fn(bool, bool) -> bool);
    let tables: &[Table] = &[
        ("and", |a, b| a.and(b), |a, b| a & b),
        ("or", |a, b| a.or(b), |a, b| a | b),
        ("min", |a, b| a.min(b), |a, b| a & b),
        ("max", |a, b| a.max(b), |a, b| a | b),
        ("eq", |a, b| a.eq(b), |a, b| a == b),
        ("ne", |a, b| a.ne(b), |a, b| a != b),
        ("lt", |a, b| a.lt(b), |a, b| !a & b),
        ("le", |a, b| a.le(b), |a, b| a <= b),
        ("not", |a, b| a.not().and(b), |a, b| !a & b),
        ("select", |a, b| a.select(b, a), |a, b| if a { b } else { a }),
    ];
    for (name, formula, table) in tables {
        let code = lowered(&build(|[a, b]| formula(a, b)), &[DType::Bool; 2]);
        for (a, b) in [(false, false), (false, true), (true, false), (true, true)] {
            assert_eq!(run(&code, &[a.into(), b.into()], &[])[0], u64::from(table(a, b)), "{name}({a}, {b})");
        }
    }
}

#[test]
fn expressions_lowered_together_share_their_work() {
    let (a, b) = (build(|[x, y]| (x * 3.0).exp() + y), build(|[x, y]| (x * 3.0).exp() * y * 7.0));
    let inputs = [DType::F32; 2];
    let together = lower("f", &[a.clone(), a.clone()], &inputs).expect("the types fit");
    assert_eq!(together.results.len(), 2);
    // Their numbers are two arguments, so that the second exp stands for itself.
    assert_eq!(together.params.iter().map(|p| p.number).collect::<Vec<_>>(), [0, 1]);
    let shared = [build(|[x, y]| x.exp() + y), build(|[x, y]| x.exp() * y)];
    let (one, both) =
        (lowered(&shared[0], &inputs).instrs.len(), lower("f", &shared, &inputs).expect("the types fit").instrs.len());
    assert_eq!(both, one + 1);
    let code = lower("f", &[a, b], &inputs).expect("the types fit");
    let numbers = [Number::Float(3.0), Number::Float(3.0), Number::Float(7.0)];
    let results = run(&code, &[0.5f32.to_bits().into(), 2.0f32.to_bits().into()], &numbers);
    let e = math::exp(1.5f32);
    assert_eq!(results.iter().map(|&r| f32::from_bits(r as u32)).collect::<Vec<_>>(), [e + 2.0, e * 2.0 * 7.0]);
}

#[test]
fn a_number_is_one_parameter_per_type() {
    let expr = build(|[x, n]| {
        let three = Sym::from(3);
        (n * three).cast(DType::F32) + x * three + x * three
    });
    let code = lower("f", &[expr], &[DType::F32, DType::I64]).expect("the types fit");
    assert_eq!(code.params.iter().map(|p| (p.number, p.dtype)).collect::<Vec<_>>(), [(0, DType::I64), (0, DType::F32)]);
    assert_eq!(code.params[1].bits(Number::Int(3)), u64::from(3.0f32.to_bits()));
    assert_eq!(code.params[0].bits(Number::Int(-3)), -3i64 as u64);
}

#[test]
fn code_is_straight_and_short() {
    for (name, formula, ..) in FUNCTIONS {
        let expr = build(|[x]| formula(x));
        for inputs in [F32, F64] {
            let code = lowered(&expr, inputs);
            for (i, instr) in code.instrs.iter().enumerate() {
                assert!(instr.operands().iter().all(|&k| (k as usize) < i), "{name}: {instr:?} at {i}");
            }
            let used = |i: usize| {
                code.instrs.iter().any(|x| x.operands().contains(&(i as u32))) || code.results[0].0 == i as u32
            };
            assert!((0..code.instrs.len()).all(used), "{name} has dead code");
            assert!(code.instrs.len() < 450, "{name} in {:?}: {} instructions", inputs[0], code.instrs.len());
        }
    }
    let is_simple =
        lowered(&build(|[x]| x.relu()), F32).instrs.iter().all(|i| !matches!(i.op, LowOp::Fma | LowOp::Div));
    assert!(is_simple);
    assert_eq!(Unary::Exp.name(), "exp");
}
