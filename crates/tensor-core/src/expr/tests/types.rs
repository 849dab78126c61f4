//! Type inference: what every dtype gives, and the errors' texts.

use crate::expr::{Prim, build};
use crate::{DType, Expr, Sym};
use DType::{BF16, Bool, F16, F32, F64, I32, I64, U8};

fn infer(expr: &Expr, inputs: &[DType]) -> Result<DType, String> {
    expr.code.program("f", inputs).map(|p| p.dtype()).map_err(|e| e.to_string())
}

/// One formula of one operand, or of two, over dtypes.
macro_rules! check {
    ($($name:literal: |$($x:ident),+| $formula:expr => [$($inputs:expr => $expected:expr),+ $(,)?];)+) => { $({
        let expr = build(|[$($x),+]| $formula);
        $(
            let expected: Result<DType, &str> = $expected;
            assert_eq!(infer(&expr, &$inputs), expected.map_err(String::from), "{} of {:?}", $name, $inputs);
        )+
    })+ };
}

#[test]
fn every_primitive_has_its_dtypes() {
    check! {
        "add": |x, y| x + y => [
            [F32, F32] => Ok(F32), [F16, F16] => Ok(F16), [U8, U8] => Ok(U8),
            [F32, F64] => Err("f: operands have different dtypes: lhs f32, rhs f64; cast one with .cast(..)"),
            [Bool, Bool] => Err("f: add needs a dtype other than bool: input bool; cast it with .cast(..)"),
        ];
        "exp": |x| x.exp() => [
            [BF16] => Ok(BF16),
            [I64] => Err("f: exp needs a float dtype: input i64; cast it with .cast(..)"),
        ];
        "neg": |x| -x => [
            [I32] => Ok(I32),
            [U8] => Err("f: neg needs a signed dtype: input u8; cast it with .cast(..)"),
            [Bool] => Err("f: neg needs a dtype other than bool: input bool; cast it with .cast(..)"),
        ];
        "floor": |x| x.floor() => [[I64] => Ok(I64), [F32] => Ok(F32)];
        "not": |x| x.not() => [
            [Bool] => Ok(Bool),
            [F32] => Err("f: not needs a bool dtype: input f32; cast it with .cast(..)"),
        ];
        "and": |x, y| x.and(y) => [
            [Bool, Bool] => Ok(Bool),
            [I64, I64] => Err("f: and needs a bool dtype: input i64; cast it with .cast(..)"),
        ];
        "max": |x, y| x.max(y) => [[Bool, Bool] => Ok(Bool), [I64, I64] => Ok(I64)];
        "lt": |x, y| x.lt(y) => [
            [F16, F16] => Ok(Bool),
            [I32, I64] => Err("f: operands have different dtypes: lhs i32, rhs i64; cast one with .cast(..)"),
        ];
        "select": |c, x| c.select(x, x) => [
            [Bool, I64] => Ok(I64),
            [F32, F32] => Err("f: the condition must be bool: condition f32"),
        ];
        "cast": |x| x.cast(F16) => [[I64] => Ok(F16), [Bool] => Ok(F16), [F16] => Ok(F16)];
    }
}

#[test]
fn numbers_take_the_dtype_of_their_partner() {
    check! {
        "x + 1.5": |x| x + 1.5 => [
            [F16] => Ok(F16), [F64] => Ok(F64),
            [I64] => Err("f: a float number needs a float tensor: tensor i64; cast it with .cast(..)"),
        ];
        "x + 7": |x| x + 7 => [[F16] => Ok(F16), [I64] => Ok(I64), [U8] => Ok(U8)];
        "numbers among themselves": |x| x * (Sym::from(3) + 0.25) => [[F32] => Ok(F32)];
        "x < 3": |x| x.lt(3) => [[I32] => Ok(Bool), [F32] => Ok(Bool)];
        "only a number": |x| { let _ = x; Sym::from(2.5) } => [[F16] => Ok(F16), [I64] => Ok(F32), [Bool] => Ok(F32)];
        "only an integer": |x| { let _ = x; Sym::from(7) } => [[I32] => Ok(I32), [Bool] => Ok(I64), [F64] => Ok(F64)];
        "select of numbers": |c| c.select(1, 0) => [[Bool] => Ok(I64)];
        "select of floats": |c, x| c.select(1.0, 0.0) + x => [[Bool, F64] => Ok(F64)];
        "numbers compared": |x| Sym::from(7).lt(Sym::from(0.3)).select(x, x) => [[F64] => Ok(F64), [I64] => Ok(I64)];
        "a number cast": |x| Sym::from(2.5).cast(F64) + x.cast(F64) => [[I64] => Ok(F64)];
    }
}

#[test]
fn one_number_used_at_two_types_is_written_twice() {
    let expr = build(|[x, n]| {
        let three = Sym::from(3);
        (n * three).cast(F32) + x * three
    });
    let program = expr.code.program("f", &[F32, I64]).expect("the types fit");
    let numbers: Vec<DType> =
        program.nodes.iter().filter(|n| matches!(n.prim, Prim::ArgInt(_))).map(|n| n.dtype).collect();
    assert_eq!(numbers, [I64, F32]);
}

#[test]
fn both_sides_of_a_comparison_have_one_type() {
    for inputs in [[I64], [F32], [Bool]] {
        let expr = build(|[x]| Sym::from(7).lt(Sym::from(0.3)).select(x, x));
        let program = expr.code.program("f", &inputs).expect("the types fit");
        for node in program.nodes.iter().filter(|n| matches!(n.prim, Prim::Binary(b) if b.is_comparison())) {
            let [a, b] = [node.args[0], node.args[1]].map(|k| program.nodes[k as usize].dtype);
            assert_eq!(a, b, "{inputs:?}");
            assert!(a.is_float(), "{inputs:?}: 0.3 is a float");
        }
    }
}

#[test]
fn idle_casts_vanish_and_rounding_ones_stay() {
    let casts = |expr: Expr, dtype: DType| {
        let program = expr.code.program("f", &[dtype]).expect("the types fit");
        program.nodes.iter().filter(|n| matches!(n.prim, Prim::Cast(_))).count()
    };
    assert_eq!(casts(build(|[x]| x.cast(F32).square()), F32), 0);
    assert_eq!(casts(build(|[x]| x.cast(F32)), F32), 0);
    assert_eq!(casts(build(|[x]| x.cast(F32).square()), F16), 1);
    assert_eq!(casts(build(|[x]| x.cast(F16)), F16), 0);
    assert_eq!(casts(build(|[x]| x.square().cast(F16) * x), F16), 1, "rounds what is computed in f32");
}

#[test]
fn programs_are_cached_per_types() {
    let expr = build(|[x, y]| (x * y).silu() - 0.125);
    let program = |dtype: DType| expr.code.program("f", &[dtype, dtype]).expect("the types fit");
    for dtype in [F32, F64, F16, F32, F64] {
        assert!(std::sync::Arc::ptr_eq(&program(dtype), &program(dtype)), "{dtype}");
        assert!(program(dtype).nodes.iter().all(|n| n.dtype == dtype && !matches!(n.prim, Prim::Call(_))));
    }
}
