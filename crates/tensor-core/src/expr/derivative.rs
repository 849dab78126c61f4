//! Symbolic derivatives: for input i, the formula of cotangent · ∂value/∂input i.
//!
//! Slopes are built forward, node by node, so that a `select` picks between the slopes of its branches. Factors, the
//! cotangent the last of them, are multiplied into the branches of such a select and not onto it: a branch not taken
//! adds 0, never 0·∞.

use std::f64::consts::FRAC_2_SQRT_PI;
use std::sync::Arc;

use super::symbol::build_with_args;
use super::{Binary, Code, Expr, Prim, Sym, Unary};
use crate::{DType, Number};

/// A slope: nothing, exactly one, or a formula.
#[derive(Clone, Copy)]
enum Slope {
    Zero,
    One,
    Is(Sym),
}

use Slope::{Is, One, Zero};

impl Slope {
    fn sym(self) -> Sym {
        match self {
            Zero => Sym::lit(0.0),
            One => Sym::lit(1.0),
            Is(s) => s,
        }
    }

    /// This slope times a factor; the factor is not even built when the slope is zero.
    fn times(self, factor: impl FnOnce() -> Sym) -> Slope {
        match self {
            Zero => Zero,
            One => Is(factor()),
            Is(s) => Is(product(s, factor())),
        }
    }

    fn negated(self) -> Slope {
        match self {
            Zero => Zero,
            One => Is(Sym::lit(-1.0)),
            Is(s) => Is(product(s, Sym::lit(-1.0))),
        }
    }

    fn plus(self, other: Slope) -> Slope {
        match (self, other) {
            (Zero, s) | (s, Zero) => s,
            (a, b) => Is(a.sym() + b.sym()),
        }
    }

    fn select(condition: Sym, a: Slope, b: Slope) -> Slope {
        match (a, b) {
            (Zero, Zero) => Zero,
            (One, One) => One,
            (a, b) => Is(condition.select(a.sym(), b.sym())),
        }
    }
}

impl Code {
    /// For every input the vector–Jacobian product: a formula over the inputs and, last, the cotangent, with
    /// this expression's numbers as arguments; `None` where the derivative is zero everywhere. Cached.
    ///
    /// It has the cotangent's dtype, that of the value: where an input has another float dtype, cast the result.
    pub fn derivatives(self: &Arc<Self>) -> &[Option<Arc<Code>>] {
        self.derivatives.get_or_init(|| (0..self.n_inputs()).map(|i| self.derivative(i)).collect())
    }

    fn derivative(&self, wrt: usize) -> Option<Arc<Code>> {
        let n = self.n_inputs();
        let n_args = self
            .nodes()
            .iter()
            .map(|node| if let Prim::Arg(i) | Prim::ArgInt(i) = node.prim { i as usize + 1 } else { 0 })
            .max()
            .unwrap_or(0);
        let mut is_zero = false;
        // The arguments' values do not matter for the structure; only that their positions stay taken.
        let expr = build_with_args(n + 1, &vec![Number::Int(0); n_args], |inputs| {
            let slope = self.slope(&inputs[..n], wrt);
            is_zero = matches!(slope, Zero);
            scaled(slope, inputs[n])
        });
        assert_eq!(expr.args.len(), n_args, "invariant: derivative rules use literals, not run-time numbers");
        (!is_zero).then_some(expr.code)
    }

    fn slope(&self, inputs: &[Sym], wrt: usize) -> Slope {
        let mut values: Vec<Sym> = Vec::with_capacity(self.nodes().len());
        let mut slopes: Vec<Slope> = Vec::with_capacity(self.nodes().len());
        for node in self.nodes() {
            let arg: Vec<Sym> = node.operands().iter().map(|&k| values[k as usize]).collect();
            let slope: Vec<Slope> = node.operands().iter().map(|&k| slopes[k as usize]).collect();
            let value = if let Prim::Input(i) = node.prim { inputs[i as usize] } else { Sym::raw(node.prim, &arg) };
            values.push(value);
            slopes.push(match node.prim {
                Prim::Input(i) if i as usize == wrt => One,
                Prim::Input(_) | Prim::Arg(_) | Prim::ArgInt(_) | Prim::Lit(_) | Prim::LitInt(_) => Zero,
                _ if slope.iter().all(|s| matches!(s, Zero)) => Zero,
                Prim::Unary(op) => unary(op, arg[0], value, slope[0]),
                Prim::Binary(op) => binary(op, arg[0], arg[1], value, slope[0], slope[1]),
                Prim::Select => Slope::select(arg[0], slope[1], slope[2]),
                Prim::Cast(dtype) => cast(dtype, slope[0]),
                Prim::Call(id) => {
                    let partials = (id.formula().partials)(&arg, value);
                    partials.iter().zip(&slope).fold(Zero, |sum, (&partial, s)| sum.plus(s.times(|| partial)))
                }
            });
        }
        slopes[slopes.len() - 1]
    }
}

/// cotangent · slope.
fn scaled(slope: Slope, cotangent: Sym) -> Sym {
    match slope {
        Zero => Sym::lit(0.0),
        One => cotangent,
        Is(s) => product(s, cotangent),
    }
}

/// a · b, taken into the branches of a factor that is masked.
fn product(a: Sym, b: Sym) -> Sym {
    match (literal(a), literal(b)) {
        (Some(0.0), _) | (_, Some(1.0)) => a,
        (_, Some(0.0)) | (Some(1.0), _) => b,
        _ if is_masked(a) => spread(a, b),
        _ if is_masked(b) => spread(b, a),
        (Some(-1.0), _) => -b,
        (_, Some(-1.0)) => -a,
        _ => b * a,
    }
}

fn spread(masked: Sym, factor: Sym) -> Sym {
    match masked.node() {
        (Prim::Select, [c, a, b]) => c.select(product(a, factor), product(b, factor)),
        (Prim::Binary(_), [a, b, _]) => product(a, factor) + product(b, factor),
        _ => unreachable!("invariant: a select or a sum"),
    }
}

/// Whether it is a select with a branch of 0, or a sum of such.
fn is_masked(s: Sym) -> bool {
    match s.node() {
        (Prim::Select, [_, a, b]) => [a, b].into_iter().any(|s| literal(s) == Some(0.0) || is_masked(s)),
        (Prim::Binary(Binary::Add), [a, b, _]) => is_masked(a) || is_masked(b),
        _ => false,
    }
}

fn literal(s: Sym) -> Option<f64> {
    match s.node().0 {
        Prim::Lit(bits) => Some(f64::from_bits(bits)),
        Prim::LitInt(v) => Some(v as f64),
        _ => None,
    }
}

fn cast(dtype: DType, slope: Slope) -> Slope {
    match slope {
        _ if !dtype.is_float() => Zero,
        Is(s) => Is(s.cast(dtype)),
        other => other,
    }
}

fn unary(op: Unary, x: Sym, y: Sym, dx: Slope) -> Slope {
    match op {
        Unary::Neg => dx.negated(),
        Unary::Abs => dx.times(|| x.sign()),
        Unary::Exp => dx.times(|| y),
        Unary::ExpM1 => dx.times(|| x.exp()),
        Unary::Ln => dx.times(|| x.recip()),
        Unary::Ln1p => dx.times(|| (x + 1).recip()),
        Unary::Sqrt => dx.times(|| Sym::lit(0.5) / y),
        Unary::Rsqrt => dx.times(|| Sym::lit(-0.5) * y / x),
        Unary::Recip => dx.times(|| -(y * y)),
        Unary::Sin => dx.times(|| x.cos()),
        Unary::Cos => dx.times(|| -x.sin()),
        Unary::Tanh => dx.times(|| (1 - y) * (1 + y)),
        Unary::Erf => dx.times(|| Sym::lit(FRAC_2_SQRT_PI) * (-(x * x)).exp()),
        Unary::Sign | Unary::Floor | Unary::Ceil | Unary::Round | Unary::Not => Zero,
    }
}

fn binary(op: Binary, a: Sym, b: Sym, y: Sym, da: Slope, db: Slope) -> Slope {
    match op {
        Binary::Add => da.plus(db),
        Binary::Sub => da.plus(db.negated()),
        Binary::Mul => da.times(|| b).plus(db.times(|| a)),
        Binary::Div => da.times(|| b.recip()).plus(db.times(|| -(y / b))),
        Binary::Rem => da.plus(db.times(|| -(a / b).floor())),
        Binary::Pow => {
            let by_base = da.times(|| b.eq(0).select(Sym::lit(0.0), b * a.pow(b - 1)));
            let by_exponent = db.times(|| a.eq(0).and(b.ge(0)).select(Sym::lit(0.0), y * a.ln()));
            by_base.plus(by_exponent)
        }
        // Of equals the first has the gradient.
        Binary::Min => Slope::select(b.lt(a), db, da),
        Binary::Max => Slope::select(a.lt(b), db, da),
        Binary::Eq | Binary::Ne | Binary::Lt | Binary::Le | Binary::And | Binary::Or => Zero,
    }
}

impl Expr {
    /// The vector–Jacobian product for input `i` as an expression over the inputs and the cotangent.
    pub fn derivative(&self, i: usize) -> Option<Expr> {
        self.code.derivatives()[i].as_ref().map(|code| Expr { code: code.clone(), args: self.args.clone() })
    }
}
