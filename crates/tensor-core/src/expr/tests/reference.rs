//! The typed reference: integers wrap, floor and saturate as the contract says.

use crate::expr::{Reals, Value, build};
use crate::{DType, Expr, Sym};
use DType::{F16, F32, I32, I64, U8};

fn ints(expr: &Expr, dtype: DType, inputs: &[i64]) -> Value<f64> {
    let dtypes = vec![dtype; inputs.len()];
    let values: Vec<Value<f64>> = inputs.iter().map(|&v| Value::Int(v)).collect();
    expr.code.program("f", &dtypes).expect("the types fit").eval(&Reals, &values, &expr.args)
}

#[test]
fn integers_follow_the_contract() {
    let two: &[(&str, fn(Sym, Sym) -> Sym, DType, [i64; 2], i64)] = &[
        ("add wraps", |a, b| a + b, I64, [i64::MAX, 1], i64::MIN),
        ("add wraps at its width", |a, b| a + b, I32, [i32::MAX as i64, 1], i32::MIN as i64),
        ("sub wraps at its width", |a, b| a - b, U8, [3, 5], 254),
        ("mul wraps at its width", |a, b| a * b, U8, [16, 17], 16),
        ("div floors", |a, b| a / b, I64, [-7, 2], -4),
        ("div floors", |a, b| a / b, I64, [7, -2], -4),
        ("div of exact", |a, b| a / b, I64, [-8, 2], -4),
        ("div by zero", |a, b| a / b, I32, [5, 0], 0),
        ("div overflow", |a, b| a / b, I32, [i32::MIN as i64, -1], i32::MIN as i64),
        ("rem has the divisor's sign", |a, b| a % b, I64, [-2, 3], 1),
        ("rem has the divisor's sign", |a, b| a % b, I64, [2, -3], -1),
        ("rem by zero", |a, b| a % b, I64, [5, 0], 0),
        ("rem", |a, b| a % b, I64, [20, 7], 6),
        ("pow", |a, b| a.pow(b), I64, [-3, 3], -27),
        ("pow wraps", |a, b| a.pow(b), I32, [10, 10], 10i64.pow(10) as i32 as i64),
        ("pow of a negative exponent", |a, b| a.pow(b), I64, [2, -1], 0),
        ("pow of a negative exponent", |a, b| a.pow(b), I64, [-1, -3], -1),
        ("max", |a, b| a.max(b), I64, [-5, -7], -5),
    ];
    for (name, formula, dtype, inputs, expected) in two {
        let expr = build(|[a, b]| formula(a, b));
        assert_eq!(ints(&expr, *dtype, inputs), Value::Int(*expected), "{name}: {inputs:?} in {dtype}");
    }
    assert_eq!(ints(&build(|[a]| a.abs()), I32, &[i32::MIN as i64]), Value::Int(i32::MIN as i64));
    assert_eq!(ints(&build(|[a]| a.lt(300)), U8, &[3]), Value::Real(1.0), "a number wraps to 44");
}

#[test]
fn casts_truncate_saturate_and_turn_nan_to_zero() {
    let cases = [
        (-2.9, I64, -2),
        (2.9, I32, 2),
        (1e300, I64, i64::MAX),
        (-1e300, I32, i32::MIN as i64),
        (300.0, U8, 255),
        (-1.0, U8, 0),
        (f64::NAN, I64, 0),
    ];
    for (v, dtype, expected) in cases {
        let expr = build(|[x]| x.cast(dtype));
        let program = expr.code.program("f", &[DType::F64]).expect("the types fit");
        assert_eq!(program.eval(&Reals, &[Value::Real(v)], &[]), Value::Int(expected), "{v} to {dtype}");
    }
    let float = |from: DType, to: DType, v: Value<f64>| {
        let expr = build(|[x]| x.cast(to));
        expr.code.program("f", &[from]).expect("the types fit").eval(&Reals, &[v], &[])
    };
    assert_eq!(float(I64, F32, Value::Int(16_777_217)), Value::Real(16_777_216.0));
    assert_eq!(float(F32, F16, Value::Real(1.0 + 1.0 / 4096.0)), Value::Real(1.0));
    assert_eq!(float(F32, DType::Bool, Value::Real(f64::NAN)), Value::Real(1.0));
}
