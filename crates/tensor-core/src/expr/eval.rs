//! Evaluation in f64 (the reference's arithmetic) and over dual numbers (the derivative's check).

use super::{Binary, Code, Expr, Prim, Unary};
use crate::{DType, Element, Number};

/// A number that expressions can be evaluated over.
pub trait Scalar: Copy {
    /// A constant.
    fn constant(v: f64) -> Self;
    /// The plain value.
    fn value(self) -> f64;
    /// Applies a primitive of one operand.
    fn unary(op: Unary, x: Self) -> Self;
    /// Applies a primitive of two operands.
    fn binary(op: Binary, x: Self, y: Self) -> Self;
    /// Rounds to an element type.
    fn cast(self, dtype: DType) -> Self;
}

impl Scalar for f64 {
    fn constant(v: f64) -> Self {
        v
    }

    fn value(self) -> f64 {
        self
    }

    fn unary(op: Unary, x: f64) -> f64 {
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
            Unary::Erf => crate::math::erf(x),
            Unary::Floor => x.floor(),
            Unary::Ceil => x.ceil(),
            Unary::Round => x.round_ties_even(),
            Unary::Not => f64::from(x == 0.0),
        }
    }

    fn binary(op: Binary, x: f64, y: f64) -> f64 {
        let truth = |b: bool| f64::from(u8::from(b));
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
            Binary::Eq => truth(x == y),
            Binary::Ne => truth(x != y),
            Binary::Lt => truth(x < y),
            Binary::Le => truth(x <= y),
            Binary::And => truth(x != 0.0 && y != 0.0),
            Binary::Or => truth(x != 0.0 || y != 0.0),
        }
    }

    fn cast(self, dtype: DType) -> f64 {
        match dtype {
            DType::F64 => self,
            DType::F32 => f64::from(self as f32),
            DType::F16 => half::f16::from_f64(self).to_f64(),
            DType::BF16 => half::bf16::from_f64(self).to_f64(),
            DType::I64 => (self as i64) as f64,
            DType::I32 => f64::from(self as i32),
            DType::U8 => f64::from(self as u8),
            DType::Bool => Element::to_f64(self != 0.0),
        }
    }
}

/// A value and its derivative along one direction: exact derivatives by forward evaluation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dual {
    /// The value.
    pub value: f64,
    /// The derivative.
    pub slope: f64,
}

impl Dual {
    fn chain(value: f64, slope: f64, direction: f64) -> Self {
        // A direction of 0 stays 0 even where the slope is infinite.
        Self { value, slope: if direction == 0.0 { 0.0 } else { slope * direction } }
    }
}

impl Scalar for Dual {
    fn constant(v: f64) -> Self {
        Self { value: v, slope: 0.0 }
    }

    fn value(self) -> f64 {
        self.value
    }

    fn unary(op: Unary, x: Dual) -> Dual {
        let v = f64::unary(op, x.value);
        let slope = match op {
            Unary::Neg => -1.0,
            Unary::Abs => f64::unary(Unary::Sign, x.value),
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
        Dual::chain(v, slope, x.slope)
    }

    fn binary(op: Binary, x: Dual, y: Dual) -> Dual {
        let v = f64::binary(op, x.value, y.value);
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
            _ => (0.0, 0.0),
        };
        let part = |d: f64, s: f64| if s == 0.0 { 0.0 } else { d * s };
        Dual { value: v, slope: part(dx, x.slope) + part(dy, y.slope) }
    }

    fn cast(self, dtype: DType) -> Dual {
        let slope = if dtype.is_float() { self.slope } else { 0.0 };
        Dual { value: self.value.cast(dtype), slope }
    }
}

impl Code {
    /// The value over any [`Scalar`]; named formulas are expanded.
    pub fn eval<S: Scalar>(&self, inputs: &[S], args: &[Number]) -> S {
        let mut values: Vec<S> = Vec::with_capacity(self.nodes().len());
        for node in self.nodes() {
            let arg = |i: usize| values[node.args[i] as usize];
            let value = match node.prim {
                Prim::Input(i) => inputs[i as usize],
                Prim::Arg(i) | Prim::ArgInt(i) => S::constant(args[i as usize].to_f64()),
                Prim::Lit(bits) => S::constant(f64::from_bits(bits)),
                Prim::LitInt(v) => S::constant(v as f64),
                Prim::Unary(op) => S::unary(op, arg(0)),
                Prim::Binary(op) => S::binary(op, arg(0), arg(1)),
                Prim::Select => {
                    if arg(0).value() != 0.0 {
                        arg(1)
                    } else {
                        arg(2)
                    }
                }
                Prim::Cast(dtype) => arg(0).cast(dtype),
                Prim::Call(id) => {
                    let expansion = id.expansion();
                    let operands: Vec<S> = (0..node.prim.arity()).map(arg).collect();
                    expansion.code.eval(&operands, &expansion.args)
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
        self.code.eval(inputs, &self.args)
    }

    /// The exact derivative by input `wrt`, by dual numbers.
    pub fn eval_derivative(&self, inputs: &[f64], wrt: usize) -> f64 {
        let duals: Vec<Dual> = inputs
            .iter()
            .enumerate()
            .map(|(i, &value)| Dual { value, slope: f64::from(i == wrt) })
            .collect();
        self.code.eval(&duals, &self.args).slope
    }
}
