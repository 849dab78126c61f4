//! Evaluation of an expression over any kind of number: f64 (the reference's arithmetic), dual numbers (the
//! derivative's check), bounds on the rounding error.

use super::{Binary, Code, Expr, Prim, Unary};
use crate::{DType, Element, Number, math};

/// A kind of number that expressions can be evaluated over. Truth values are 0 and 1.
pub trait Algebra {
    /// A number of this kind.
    type Value: Copy;
    /// A constant of an element type.
    fn constant(&self, v: f64, dtype: DType) -> Self::Value;
    /// The plain value.
    fn plain(&self, x: Self::Value) -> f64;
    /// Applies a primitive to one operand of an element type.
    fn unary(&self, op: Unary, x: Self::Value, dtype: DType) -> Self::Value;
    /// Applies a primitive to two operands of an element type.
    fn binary(&self, op: Binary, x: Self::Value, y: Self::Value, dtype: DType) -> Self::Value;
    /// Converts to an element type.
    fn cast(&self, x: Self::Value, dtype: DType) -> Self::Value;
    /// `condition ? a : b`.
    fn select(&self, condition: Self::Value, a: Self::Value, b: Self::Value) -> Self::Value {
        if self.plain(condition) != 0.0 { a } else { b }
    }
}

/// f64: the reference.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reals;

impl Algebra for Reals {
    type Value = f64;

    fn constant(&self, v: f64, dtype: DType) -> f64 {
        if dtype == DType::Bool { f64::from(v != 0.0) } else { v }
    }

    fn plain(&self, x: f64) -> f64 {
        x
    }

    fn unary(&self, op: Unary, x: f64, _: DType) -> f64 {
        match op {
            Unary::Neg => -x,
            Unary::Abs => x.abs(),
            Unary::Sign if x == 0.0 || x.is_nan() => x,
            Unary::Sign => x.signum(),
            Unary::Exp => x.exp(),
            Unary::ExpM1 => x.exp_m1(),
            Unary::Ln => x.ln(),
            Unary::Ln1p => x.ln_1p(),
            Unary::Sqrt => x.sqrt(),
            Unary::Rsqrt => 1.0 / x.sqrt(),
            Unary::Recip => 1.0 / x,
            Unary::Sin => x.sin(),
            Unary::Cos => x.cos(),
            Unary::Tanh => x.tanh(),
            Unary::Erf => math::erf(x),
            Unary::Floor => x.floor(),
            Unary::Ceil => x.ceil(),
            Unary::Round => x.round_ties_even(),
            Unary::Not => f64::from(x == 0.0),
        }
    }

    fn binary(&self, op: Binary, x: f64, y: f64, _: DType) -> f64 {
        match op {
            Binary::Add => x + y,
            Binary::Sub => x - y,
            Binary::Mul => x * y,
            Binary::Div => x / y,
            Binary::Rem => {
                let r = x % y;
                if r != 0.0 && (r < 0.0) != (y < 0.0) { r + y } else { r }
            }
            Binary::Pow => x.powf(y),
            Binary::Min if x.is_nan() || y.is_nan() => f64::NAN,
            Binary::Max if x.is_nan() || y.is_nan() => f64::NAN,
            Binary::Min => x.min(y),
            Binary::Max => x.max(y),
            Binary::Eq => f64::from(x == y),
            Binary::Ne => f64::from(x != y),
            Binary::Lt => f64::from(x < y),
            Binary::Le => f64::from(x <= y),
            Binary::And => f64::from(x != 0.0 && y != 0.0),
            Binary::Or => f64::from(x != 0.0 || y != 0.0),
        }
    }

    fn cast(&self, x: f64, dtype: DType) -> f64 {
        match dtype {
            DType::F64 => x,
            DType::F32 => f64::from(x as f32),
            DType::F16 => <half::f16 as Element>::from_f64(x).to_f64(),
            DType::BF16 => <half::bf16 as Element>::from_f64(x).to_f64(),
            DType::I64 => (x as i64) as f64,
            DType::I32 => f64::from(x as i32),
            DType::U8 => f64::from(x as u8),
            DType::Bool => Element::to_f64(x != 0.0),
        }
    }
}

/// Dual numbers: exact derivatives by forward evaluation.
#[derive(Clone, Copy, Debug, Default)]
pub struct Duals;

/// A value and its derivative along one direction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dual {
    /// The value.
    pub value: f64,
    /// The derivative.
    pub slope: f64,
}

/// A slope times a direction, where nothing times anything is nothing, however infinite.
fn times(slope: f64, direction: f64) -> f64 {
    if slope == 0.0 || direction == 0.0 { 0.0 } else { slope * direction }
}

impl Algebra for Duals {
    type Value = Dual;

    fn constant(&self, v: f64, _: DType) -> Dual {
        Dual { value: v, slope: 0.0 }
    }

    fn plain(&self, x: Dual) -> f64 {
        x.value
    }

    fn unary(&self, op: Unary, x: Dual, dtype: DType) -> Dual {
        let v = Reals.unary(op, x.value, dtype);
        let slope = match op {
            Unary::Neg => -1.0,
            Unary::Abs => Reals.unary(Unary::Sign, x.value, dtype),
            Unary::Exp => v,
            Unary::ExpM1 => x.value.exp(),
            Unary::Ln => 1.0 / x.value,
            Unary::Ln1p => 1.0 / (1.0 + x.value),
            Unary::Sqrt => 0.5 / v,
            Unary::Rsqrt => -0.5 * v / x.value,
            Unary::Recip => -v * v,
            Unary::Sin => x.value.cos(),
            Unary::Cos => -x.value.sin(),
            Unary::Tanh => 1.0 / x.value.cosh().powi(2),
            Unary::Erf => std::f64::consts::FRAC_2_SQRT_PI * (-x.value * x.value).exp(),
            Unary::Sign | Unary::Floor | Unary::Ceil | Unary::Round | Unary::Not => 0.0,
        };
        Dual { value: v, slope: times(slope, x.slope) }
    }

    fn binary(&self, op: Binary, x: Dual, y: Dual, dtype: DType) -> Dual {
        let v = Reals.binary(op, x.value, y.value, dtype);
        let (dx, dy) = match op {
            Binary::Add => (1.0, 1.0),
            Binary::Sub => (1.0, -1.0),
            Binary::Mul => (y.value, x.value),
            Binary::Div => (1.0 / y.value, -v / y.value),
            Binary::Rem => (1.0, -(x.value / y.value).floor()),
            Binary::Pow => {
                let dx = if y.value == 0.0 { 0.0 } else { y.value * x.value.powf(y.value - 1.0) };
                let dy = if x.value == 0.0 && y.value >= 0.0 { 0.0 } else { v * x.value.ln() };
                (dx, dy)
            }
            Binary::Min => (f64::from(x.value <= y.value), f64::from(y.value < x.value)),
            Binary::Max => (f64::from(x.value >= y.value), f64::from(y.value > x.value)),
            Binary::Eq | Binary::Ne | Binary::Lt | Binary::Le | Binary::And | Binary::Or => (0.0, 0.0),
        };
        Dual { value: v, slope: times(dx, x.slope) + times(dy, y.slope) }
    }

    fn cast(&self, x: Dual, dtype: DType) -> Dual {
        let slope = if dtype.is_float() { x.slope } else { 0.0 };
        Dual { value: Reals.cast(x.value, dtype), slope }
    }
}

impl Code {
    /// The value over any algebra, untyped: everything counts as f64. Named formulas are expanded.
    pub fn eval<A: Algebra>(&self, algebra: &A, inputs: &[A::Value], args: &[Number]) -> A::Value {
        let dtype = DType::F64;
        let mut values: Vec<A::Value> = Vec::with_capacity(self.nodes().len());
        for node in self.nodes() {
            let arg = |i: usize| values[node.args[i] as usize];
            let value = match node.prim {
                Prim::Input(i) => inputs[i as usize],
                Prim::Arg(i) | Prim::ArgInt(i) => algebra.constant(args[i as usize].to_f64(), dtype),
                Prim::Lit(bits) => algebra.constant(f64::from_bits(bits), dtype),
                Prim::LitInt(v) => algebra.constant(v as f64, dtype),
                Prim::Unary(op) => algebra.unary(op, arg(0), dtype),
                Prim::Binary(op) => algebra.binary(op, arg(0), arg(1), dtype),
                Prim::Select => algebra.select(arg(0), arg(1), arg(2)),
                Prim::Cast(dtype) => algebra.cast(arg(0), dtype),
                Prim::Call(id) => {
                    let operands: Vec<A::Value> = (0..node.prim.arity()).map(arg).collect();
                    id.expansion().code.eval(algebra, &operands, &[])
                }
            };
            values.push(value);
        }
        *values.last().expect("invariant: an expression has a node")
    }
}

impl Expr {
    /// The value in f64.
    pub fn eval_f64(&self, inputs: &[f64]) -> f64 {
        self.code.eval(&Reals, inputs, &self.args)
    }

    /// The exact derivative by input `wrt`, by dual numbers.
    pub fn eval_derivative(&self, inputs: &[f64], wrt: usize) -> f64 {
        let dual = |(i, &value): (usize, &f64)| Dual { value, slope: f64::from(i == wrt) };
        let duals: Vec<Dual> = inputs.iter().enumerate().map(dual).collect();
        self.code.eval(&Duals, &duals, &self.args).slope
    }
}
