//! Elementwise functions of one or two tensors or numbers.

use std::sync::OnceLock;

use smallvec::{SmallVec, smallvec};

use super::first;
use crate::expr::build;
use crate::op::Map;
use crate::{DType, Error, Expr, Number, Op, Param, Result, Sym, Tensor, execute};

/// The right-hand side of an elementwise op: a tensor, a parameter, or a number that takes the tensor's dtype.
#[derive(Clone, Copy)]
pub enum Operand<'a> {
    /// A tensor; its shape broadcasts.
    Tensor(&'a Tensor),
    /// A number; a float against an integer tensor is an error.
    Number(Number),
}

impl<'a> From<&'a Tensor> for Operand<'a> {
    fn from(x: &'a Tensor) -> Self {
        Self::Tensor(x)
    }
}

impl<'a> From<&&'a Tensor> for Operand<'a> {
    fn from(x: &&'a Tensor) -> Self {
        Self::Tensor(x)
    }
}

impl<'a> From<&'a Param> for Operand<'a> {
    fn from(x: &'a Param) -> Self {
        Self::Tensor(x)
    }
}

macro_rules! from_numbers {
    ($($t:ty),*) => { $(impl From<$t> for Operand<'_> {
        fn from(v: $t) -> Self { Self::Number(v.into()) }
    })* };
}
from_numbers!(Number, f64, f32, i64, i32, u8, usize, bool, half::f16, half::bf16);

/// A function of two operands: its expression over two tensors, and over one tensor and one number of either kind.
struct Two {
    tensors: OnceLock<Expr>,
    float: OnceLock<Expr>,
    int: OnceLock<Expr>,
}

impl Two {
    const fn new() -> Self {
        Self { tensors: OnceLock::new(), float: OnceLock::new(), int: OnceLock::new() }
    }

    fn run(&self, name: &'static str, x: &Tensor, rhs: Operand<'_>, f: fn(Sym, Sym) -> Sym) -> Result<Tensor> {
        match rhs {
            Operand::Tensor(y) => {
                let expr = self.tensors.get_or_init(|| build(|[x, y]| f(x, y)));
                first(execute(&Op::Map(Map::new(name, expr.clone())), &[x, y]))
            }
            Operand::Number(v @ Number::Float(_)) => {
                let expr = self.float.get_or_init(|| build(|[x]| f(x, Sym::parameter(0))));
                x.apply(name, expr, &[v])
            }
            Operand::Number(v @ Number::Int(_)) => {
                let expr = self.int.get_or_init(|| build(|[x]| f(x, Sym::int_parameter(0))));
                x.apply(name, expr, &[v])
            }
        }
    }
}

impl Tensor {
    /// Runs an expression of one input with these run-time numbers.
    pub(crate) fn apply(&self, name: &'static str, expr: &Expr, args: &[Number]) -> Result<Tensor> {
        let expr = Expr { code: expr.code.clone(), args: SmallVec::from_slice(args) };
        self.run(&Op::Map(Map { name, exprs: smallvec![expr] }))
    }
}

macro_rules! unary {
    ($($(#[$doc:meta])* $name:ident = |$x:ident| $value:expr;)*) => { impl Tensor { $(
        $(#[$doc])*
        pub fn $name(&self) -> Result<Tensor> {
            static EXPR: OnceLock<Expr> = OnceLock::new();
            self.apply(stringify!($name), EXPR.get_or_init(|| build(|[$x]| $value)), &[])
        }
    )* } };
}

unary! {
    /// −x, elementwise.
    neg = |x| -x;
    /// |x|, elementwise. The slope at 0 is 0.
    abs = |x| x.abs();
    /// −1, 0 or 1 by sign, elementwise; NaN stays.
    sign = |x| x.sign();
    /// eˣ, elementwise.
    exp = |x| x.exp();
    /// eˣ − 1, accurate near 0, elementwise.
    exp_m1 = |x| x.exp_m1();
    /// The natural logarithm, elementwise.
    ln = |x| x.ln();
    /// ln(1 + x), accurate near 0, elementwise.
    ln_1p = |x| x.ln_1p();
    /// √x, elementwise.
    sqrt = |x| x.sqrt();
    /// 1/√x, elementwise.
    rsqrt = |x| x.rsqrt();
    /// 1/x, elementwise.
    recip = |x| x.recip();
    /// x², elementwise.
    square = |x| x.square();
    /// sin x, x in radians, elementwise.
    sin = |x| x.sin();
    /// cos x, x in radians, elementwise.
    cos = |x| x.cos();
    /// The hyperbolic tangent, elementwise.
    tanh = |x| x.tanh();
    /// The error function 2/√π ∫₀ˣ e^(−t²) dt, elementwise.
    erf = |x| x.erf();
    /// The largest integer not above x, elementwise.
    floor = |x| x.floor();
    /// The smallest integer not below x, elementwise.
    ceil = |x| x.ceil();
    /// The nearest integer, halves to even, elementwise.
    round = |x| x.round();
    /// True where NaN, elementwise.
    is_nan = |x| x.is_nan();
    /// True where neither NaN nor infinite, elementwise.
    is_finite = |x| x.is_finite();
    /// Not x, elementwise, for bool.
    logical_not = |x| x.not();
}

macro_rules! binary {
    ($($(#[$doc:meta])* $name:ident = |$x:ident, $y:ident| $value:expr;)*) => { impl Tensor { $(
        $(#[$doc])*
        ///
        /// `rhs` is a tensor or a number; shapes broadcast.
        ///
        /// # Errors
        /// If the shapes do not broadcast, or the dtypes differ or have no such function.
        pub fn $name<'a>(&self, rhs: impl Into<Operand<'a>>) -> Result<Tensor> {
            static TWO: Two = Two::new();
            TWO.run(stringify!($name), self, rhs.into(), |$x, $y| $value)
        }
    )* } };
}

binary! {
    /// x + y, elementwise.
    add = |x, y| x + y;
    /// x − y, elementwise.
    sub = |x, y| x - y;
    /// x·y, elementwise.
    mul = |x, y| x * y;
    /// x/y, elementwise. Integers floor; by zero they give 0.
    div = |x, y| x / y;
    /// x − y·⌊x/y⌋, elementwise: the divisor's sign. Integers by zero give 0.
    rem = |x, y| x % y;
    /// The larger, elementwise; NaN propagates; of equals the first has the gradient.
    maximum = |x, y| x.max(y);
    /// The smaller, elementwise; NaN propagates; of equals the first has the gradient.
    minimum = |x, y| x.min(y);
    /// x = y, elementwise (→ bool).
    eq = |x, y| x.eq(y);
    /// x ≠ y, elementwise (→ bool); true where either is NaN.
    ne = |x, y| x.ne(y);
    /// x < y, elementwise (→ bool).
    lt = |x, y| x.lt(y);
    /// x ≤ y, elementwise (→ bool).
    le = |x, y| x.le(y);
    /// x > y, elementwise (→ bool).
    gt = |x, y| x.gt(y);
    /// x ≥ y, elementwise (→ bool).
    ge = |x, y| x.ge(y);
    /// x and y, elementwise, for bool.
    logical_and = |x, y| x.and(y);
    /// x or y, elementwise, for bool.
    logical_or = |x, y| x.or(y);
}

impl Tensor {
    /// `lhs op self` for the operators with a number on the left.
    pub(super) fn reversed(&self, name: &'static str, lhs: Operand<'_>) -> Result<Tensor> {
        static SUB: Two = Two::new();
        static DIV: Two = Two::new();
        match name {
            "sub" => SUB.run(name, self, lhs, |x, y| y - x),
            "div" => DIV.run(name, self, lhs, |x, y| y / x),
            "mul" => self.mul(lhs),
            _ => self.add(lhs),
        }
    }

    /// xʸ, elementwise.
    ///
    /// Integers wrap; a negative exponent gives the quotient 1/x^|y| truncated: 0 but for x = ±1. A number 2 or 3 is
    /// multiplied out.
    ///
    /// # Errors
    /// If the shapes do not broadcast, or the dtypes differ or are bool.
    pub fn pow<'a>(&self, exponent: impl Into<Operand<'a>>) -> Result<Tensor> {
        static POW: Two = Two::new();
        static SQUARE: OnceLock<Expr> = OnceLock::new();
        static CUBE: OnceLock<Expr> = OnceLock::new();
        match exponent.into() {
            Operand::Number(v) if v.to_f64() == 2.0 && v.fits(self.dtype()) => {
                self.apply("pow", SQUARE.get_or_init(|| build(|[x]| x * x)), &[])
            }
            Operand::Number(v) if v.to_f64() == 3.0 && v.fits(self.dtype()) => {
                self.apply("pow", CUBE.get_or_init(|| build(|[x]| x * x * x)), &[])
            }
            exponent => POW.run("pow", self, exponent, |x, y| x.pow(y)),
        }
    }

    /// min(max(x, low), high), elementwise; NaN stays. The slope is 1 within the bounds (both included), else 0.
    ///
    /// # Errors
    /// If `low > high`, or a float bound meets an integer tensor.
    pub fn clamp(&self, low: impl Into<Number>, high: impl Into<Number>) -> Result<Tensor> {
        let (low, high) = (low.into(), high.into());
        if low.to_f64() > high.to_f64() {
            return Err(Error::value("clamp", format!("low must not exceed high: low {low}, high {high}")));
        }
        static FLOAT: OnceLock<Expr> = OnceLock::new();
        static INT: OnceLock<Expr> = OnceLock::new();
        match (low, high) {
            (Number::Int(_), Number::Int(_)) => {
                let expr = INT.get_or_init(|| build(|[x]| x.clamp(Sym::int_parameter(0), Sym::int_parameter(1))));
                self.apply("clamp", expr, &[low, high])
            }
            _ => {
                let expr = FLOAT.get_or_init(|| build(|[x]| x.clamp(Sym::parameter(0), Sym::parameter(1))));
                self.apply("clamp", expr, &[low, high])
            }
        }
    }

    /// `self ? a : b`, elementwise; this tensor is bool. Shapes broadcast; `a` and `b` are tensors or numbers.
    ///
    /// # Gradient
    /// That of the branch taken; the other adds nothing, however infinite.
    ///
    /// # Errors
    /// If this tensor is not bool, the shapes do not broadcast, or the branches' dtypes differ.
    pub fn select<'a, 'b>(&self, a: impl Into<Operand<'a>>, b: impl Into<Operand<'b>>) -> Result<Tensor> {
        static BOTH: OnceLock<Expr> = OnceLock::new();
        let expr = match (a.into(), b.into()) {
            (Operand::Tensor(a), Operand::Tensor(b)) => {
                let expr = BOTH.get_or_init(|| build(|[c, a, b]| c.select(a, b)));
                return first(execute(&Op::Map(Map::new("select", expr.clone())), &[self, a, b]));
            }
            (Operand::Tensor(a), Operand::Number(b)) => (build(|[c, a]| c.select(a, b)), Some(a)),
            (Operand::Number(a), Operand::Tensor(b)) => (build(|[c, b]| c.select(a, b)), Some(b)),
            (Operand::Number(a), Operand::Number(b)) => (build(|[c]| c.select(a, b)), None),
        };
        match expr {
            (expr, Some(x)) => first(execute(&Op::Map(Map::new("select", expr)), &[self, x])),
            (expr, None) => self.run(&Op::Map(Map::new("select", expr))),
        }
    }

    /// Whether |x − y| ≤ atol + rtol·|y| everywhere, equal infinities included; NaN is close to nothing. Waits.
    ///
    /// # Errors
    /// If the shapes do not broadcast, the dtypes differ, or the device fails.
    pub fn allclose(&self, other: &Tensor, rtol: f64, atol: f64) -> Result<bool> {
        let (x, y) = if self.dtype().is_float() {
            (self.clone(), other.clone())
        } else {
            if self.dtype() != other.dtype() {
                self.eq(other)?;
            }
            (self.cast(DType::F64)?, other.cast(DType::F64)?)
        };
        let close = super::map::zip_named("allclose", &x, &y, |x, y| {
            let near = (x - y).abs().le(y.abs() * rtol + atol);
            x.eq(y).or(near.and(y.is_finite()))
        })?;
        close.all(..)?.item()
    }
}
