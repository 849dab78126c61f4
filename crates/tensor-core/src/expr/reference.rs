//! Typed evaluation: floats over any algebra, integers in i64 that wraps at their width. What parity compares with.

use super::{Algebra, Binary, Prim, Program, Unary};
use crate::{DType, Element, Number};

/// A value of one element type.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<V> {
    /// A float or a truth value (0 or 1).
    Real(V),
    /// An integer.
    Int(i64),
}

/// What an integer of this width keeps of `v`.
pub fn wrap(v: i64, dtype: DType) -> i64 {
    match dtype {
        DType::I32 => i64::from(v as i32),
        DType::U8 => i64::from(v as u8),
        _ => v,
    }
}

/// A primitive of one integer, in the width of its type.
pub fn int_unary(op: Unary, x: i64, dtype: DType) -> i64 {
    let v = match op {
        Unary::Neg => x.wrapping_neg(),
        Unary::Abs => x.wrapping_abs(),
        Unary::Sign => x.signum(),
        Unary::Floor | Unary::Ceil | Unary::Round => x,
        _ => unreachable!("invariant: {op:?} is not defined for integers"),
    };
    wrap(v, dtype)
}

/// Arithmetic of two integers, in the width of their type.
pub fn int_binary(op: Binary, x: i64, y: i64, dtype: DType) -> i64 {
    let v = match op {
        Binary::Add => x.wrapping_add(y),
        Binary::Sub => x.wrapping_sub(y),
        Binary::Mul => x.wrapping_mul(y),
        Binary::Div if y == 0 => 0,
        Binary::Rem if y == 0 => 0,
        Binary::Div => {
            let (q, r) = (x.wrapping_div(y), x.wrapping_rem(y));
            if r != 0 && (r < 0) != (y < 0) { q.wrapping_sub(1) } else { q }
        }
        Binary::Rem => {
            let r = x.wrapping_rem(y);
            if r != 0 && (r < 0) != (y < 0) { r.wrapping_add(y) } else { r }
        }
        Binary::Pow => int_pow(x, y),
        Binary::Min => x.min(y),
        Binary::Max => x.max(y),
        _ => unreachable!("invariant: {op:?} does not give an integer"),
    };
    wrap(v, dtype)
}

/// xʸ, wrapping; for a negative y the truncated quotient 1/x^|y|, and 0 for x = 0.
fn int_pow(x: i64, y: i64) -> i64 {
    if y < 0 {
        return match x {
            1 => 1,
            -1 => 1 - 2 * (y & 1),
            _ => 0,
        };
    }
    let (mut base, mut left, mut power) = (x, y, 1i64);
    while left > 0 {
        if left & 1 == 1 {
            power = power.wrapping_mul(base);
        }
        base = base.wrapping_mul(base);
        left >>= 1;
    }
    power
}

impl Program {
    /// The value for inputs of the program's types and these run-time numbers.
    pub fn eval<A: Algebra>(&self, algebra: &A, inputs: &[Value<A::Value>], args: &[Number]) -> Value<A::Value> {
        let mut values: Vec<Value<A::Value>> = Vec::with_capacity(self.nodes.len());
        for node in &self.nodes {
            let arg = |i: usize| values[node.args[i] as usize];
            let operand_dtype = || self.nodes[node.args[0] as usize].dtype;
            let real = |i: usize| match arg(i) {
                Value::Real(v) => v,
                Value::Int(v) => algebra.constant(v as f64, DType::F64),
            };
            let number = |number: Number| {
                if node.dtype.is_int() {
                    Value::Int(wrap(number.to_i64(), node.dtype))
                } else {
                    Value::Real(algebra.constant(number.to_f64(), node.dtype))
                }
            };
            values.push(match node.prim {
                Prim::Input(i) => inputs[i as usize],
                Prim::Arg(i) | Prim::ArgInt(i) => number(args[i as usize]),
                Prim::Lit(bits) => number(Number::Float(f64::from_bits(bits))),
                Prim::LitInt(v) => number(Number::Int(v)),
                Prim::Unary(op) => match arg(0) {
                    Value::Int(x) => Value::Int(int_unary(op, x, node.dtype)),
                    Value::Real(x) => Value::Real(algebra.unary(op, x, operand_dtype())),
                },
                Prim::Binary(op) => match (arg(0), arg(1)) {
                    (Value::Int(x), Value::Int(y)) => match compare(op, x, y) {
                        Some(truth) => Value::Real(algebra.constant(f64::from(truth), DType::Bool)),
                        None => Value::Int(int_binary(op, x, y, node.dtype)),
                    },
                    _ => Value::Real(algebra.binary(op, real(0), real(1), operand_dtype())),
                },
                Prim::Select => match (arg(1), arg(2)) {
                    (Value::Int(a), Value::Int(b)) => Value::Int(if algebra.plain(real(0)) != 0.0 { a } else { b }),
                    _ => Value::Real(algebra.select(real(0), real(1), real(2))),
                },
                Prim::Cast(to) if to.is_int() => Value::Int(match arg(0) {
                    Value::Int(v) => wrap(v, to),
                    Value::Real(v) => saturate(algebra.plain(v), to),
                }),
                Prim::Cast(to) => Value::Real(match arg(0) {
                    Value::Int(v) if to == DType::Bool => algebra.constant(f64::from(v != 0), to),
                    Value::Int(v) => algebra.cast(algebra.constant(v as f64, DType::F64), to),
                    Value::Real(v) => algebra.cast(v, to),
                }),
                Prim::Call(_) => unreachable!("invariant: programs have their formulas expanded"),
            });
        }
        *values.last().expect("invariant: a program has a node")
    }
}

fn compare(op: Binary, x: i64, y: i64) -> Option<bool> {
    match op {
        Binary::Eq => Some(x == y),
        Binary::Ne => Some(x != y),
        Binary::Lt => Some(x < y),
        Binary::Le => Some(x <= y),
        _ => None,
    }
}

/// Truncated, saturated, NaN to 0.
fn saturate(v: f64, dtype: DType) -> i64 {
    match dtype {
        DType::I32 => i64::from(<i32 as Element>::from_f64(v)),
        DType::U8 => i64::from(<u8 as Element>::from_f64(v)),
        _ => <i64 as Element>::from_f64(v),
    }
}
