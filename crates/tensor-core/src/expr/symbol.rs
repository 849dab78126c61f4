//! The `Copy` symbol that formulas are written over, and the arena that records what they do.

use std::cell::RefCell;
use std::marker::PhantomData;
use std::ops::{Add, Div, Mul, Neg, Not, Rem, Sub};

use smallvec::SmallVec;

use super::{Binary, Expr, FormulaId, Node, Prim, Unary, intern};
use crate::{DType, Number};

/// A value inside a formula: `|x| x * x.sigmoid()` receives and returns one.
///
/// The operators and methods record what is computed. A symbol belongs to the closure that received it;
/// using it in another one panics.
#[derive(Clone, Copy, Debug)]
pub struct Sym {
    node: u32,
    arena: u64,
    /// Arenas are numbered per thread: a symbol stays on its own.
    thread: PhantomData<*const ()>,
}

#[derive(Default)]
struct Arena {
    id: u64,
    nodes: Vec<Node>,
    args: SmallVec<[Number; 2]>,
}

thread_local! {
    static ARENA: RefCell<Arena> = RefCell::default();
    static LAST_ID: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

/// Puts the enclosing closure's arena back, after a panic too.
struct Restore(Option<Arena>);

impl Drop for Restore {
    fn drop(&mut self) {
        if let Some(outer) = self.0.take() {
            ARENA.with_borrow_mut(|arena| *arena = outer);
        }
    }
}

/// Builds the expression that `formula` computes from `N` inputs.
///
/// # Example: a formula, its value and its derivative
/// ```
/// use tensor_core::expr::build;
///
/// let mish = build(|[x]| x * x.softplus().tanh());
/// assert!((mish.eval_f64(&[1.0]) - 0.865_098_388).abs() < 1e-9);
/// let slope = mish.derivative(0).expect("mish has a slope");
/// // The last operand of a derivative is the cotangent.
/// assert!((slope.eval_f64(&[1.0, 1.0]) - mish.eval_derivative(&[1.0], 0)).abs() < 1e-12);
/// ```
///
/// # Panics
/// If a symbol of another closure is used inside this one, and if `formula` panics.
pub fn build<const N: usize>(formula: impl FnOnce([Sym; N]) -> Sym) -> Expr {
    build_dyn(N, |inputs| formula(std::array::from_fn(|i| inputs[i])))
}

/// [`build`] for a number of inputs known at run time, and over numbers that stay run-time arguments whatever their values:
/// the expression's first `args`, which may be replaced to use the same structure again.
///
/// # Panics
/// As [`build`].
pub fn build_with(n_inputs: usize, numbers: &[f64], formula: impl FnOnce(&[Sym], &[Sym]) -> Sym) -> Expr {
    let args: SmallVec<[Number; 8]> = numbers.iter().map(|&v| Number::Float(v)).collect();
    build_with_args(n_inputs, &args, |inputs| {
        let numbers: SmallVec<[Sym; 8]> = (0..numbers.len()).map(Sym::parameter).collect();
        formula(inputs, &numbers)
    })
}

/// [`build`] for a number of inputs known at run time.
pub(crate) fn build_dyn(n_inputs: usize, formula: impl FnOnce(&[Sym]) -> Sym) -> Expr {
    build_with_args(n_inputs, &[], formula)
}

/// [`build_dyn`] whose run-time numbers start with `args`, so that [`Sym::raw`] nodes may refer to them.
pub(crate) fn build_with_args(n_inputs: usize, args: &[Number], formula: impl FnOnce(&[Sym]) -> Sym) -> Expr {
    let id = LAST_ID.with(|last| {
        last.set(last.get() + 1);
        last.get()
    });
    let fresh = Arena { id, nodes: Vec::with_capacity(16), args: SmallVec::from_slice(args) };
    let _restore = Restore(Some(ARENA.with_borrow_mut(|arena| std::mem::replace(arena, fresh))));
    let inputs: SmallVec<[Sym; 4]> = (0..n_inputs).map(|i| push(Prim::Input(i as u32), &[])).collect();
    let value = formula(&inputs);
    ARENA.with_borrow_mut(|arena| {
        assert!(value.arena == arena.id, "a formula returned a symbol of another closure");
        let nodes = live(&arena.nodes, value.node as usize);
        Expr { code: intern(nodes, n_inputs), args: std::mem::take(&mut arena.args) }
    })
}

/// The nodes that `root` needs, in order, renumbered.
fn live(nodes: &[Node], root: usize) -> Vec<Node> {
    let mut needed = vec![false; root + 1];
    needed[root] = true;
    for i in (0..=root).rev() {
        if needed[i] {
            nodes[i].operands().iter().for_each(|&k| needed[k as usize] = true);
        }
    }
    let mut renumbered = vec![0u32; root + 1];
    let mut kept = Vec::with_capacity(root + 1);
    for i in (0..=root).filter(|&i| needed[i]) {
        let mut node = nodes[i];
        for k in 0..node.prim.arity() {
            node.args[k] = renumbered[node.args[k] as usize];
        }
        renumbered[i] = kept.len() as u32;
        kept.push(node);
    }
    kept
}

/// Records a node, or finds the equal one among the latest.
fn push(prim: Prim, operands: &[Sym]) -> Sym {
    ARENA.with_borrow_mut(|arena| {
        let mut args = [0; 3];
        for (arg, sym) in args.iter_mut().zip(operands) {
            assert!(sym.arena == arena.id, "a symbol was used outside the closure that received it");
            *arg = sym.node;
        }
        let node = Node { prim, args };
        let first = arena.nodes.len().saturating_sub(64);
        let found = arena.nodes[first..].iter().position(|n| *n == node);
        let position = found.map_or(arena.nodes.len(), |i| first + i);
        if found.is_none() {
            arena.nodes.push(node);
        }
        Sym { node: position as u32, arena: arena.id, thread: PhantomData }
    })
}

impl Sym {
    /// A constant that is part of the structure, however odd its value: for coefficients of formulas.
    ///
    /// Structures and their kernels are kept for good: a number that changes from call to call is written as it is.
    pub fn lit(v: f64) -> Self {
        push(Prim::Lit(v.to_bits()), &[])
    }

    /// Any node; its operands belong to this closure.
    pub(crate) fn raw(prim: Prim, operands: &[Sym]) -> Self {
        push(prim, operands)
    }

    /// The `i`-th run-time number, a float handed over when the expression is used.
    pub(crate) fn parameter(i: usize) -> Self {
        push(Prim::Arg(i as u32), &[])
    }

    /// The `i`-th run-time number, an integer handed over when the expression is used.
    pub(crate) fn int_parameter(i: usize) -> Self {
        push(Prim::ArgInt(i as u32), &[])
    }

    /// The primitive and operands behind this symbol.
    pub(crate) fn node(self) -> (Prim, [Sym; 3]) {
        ARENA.with_borrow(|arena| {
            let node = arena.nodes[self.node as usize];
            (node.prim, node.args.map(|node| Sym { node, arena: arena.id, thread: PhantomData }))
        })
    }

    pub(crate) fn call(id: FormulaId, operands: &[Sym]) -> Self {
        push(Prim::Call(id), operands)
    }

    /// `self ? a : b`; the branch not taken adds nothing, to the gradient neither.
    pub fn select(self, a: impl Into<Sym>, b: impl Into<Sym>) -> Self {
        push(Prim::Select, &[self, a.into(), b.into()])
    }

    /// Conversion to another element type.
    pub fn cast(self, dtype: DType) -> Self {
        push(Prim::Cast(dtype), &[self])
    }

    /// `self > other`.
    pub fn gt(self, other: impl Into<Sym>) -> Self {
        other.into().lt(self)
    }

    /// `self ≥ other`.
    pub fn ge(self, other: impl Into<Sym>) -> Self {
        other.into().le(self)
    }

    /// `self · self`.
    pub fn square(self) -> Self {
        self * self
    }

    /// True where the value is NaN.
    pub fn is_nan(self) -> Self {
        self.ne(self)
    }

    /// True where the value is neither NaN nor infinite.
    pub fn is_finite(self) -> Self {
        self.abs().lt(Self::lit(f64::INFINITY))
    }

    /// `min(max(self, low), high)`.
    pub fn clamp(self, low: impl Into<Sym>, high: impl Into<Sym>) -> Self {
        self.max(low).min(high)
    }
}

macro_rules! unary {
    ($($(#[$doc:meta])* $name:ident = $prim:ident;)*) => { impl Sym { $(
        $(#[$doc])*
        pub fn $name(self) -> Self { push(Prim::Unary(Unary::$prim), &[self]) }
    )* } };
}
unary! {
    /// |x|.
    abs = Abs;
    /// −1, 0 or 1; NaN stays.
    sign = Sign;
    /// eˣ.
    exp = Exp;
    /// eˣ − 1, accurate near 0.
    exp_m1 = ExpM1;
    /// The natural logarithm.
    ln = Ln;
    /// ln(1 + x), accurate near 0.
    ln_1p = Ln1p;
    /// √x.
    sqrt = Sqrt;
    /// 1/√x.
    rsqrt = Rsqrt;
    /// 1/x.
    recip = Recip;
    /// sin x, x in radians.
    sin = Sin;
    /// cos x, x in radians.
    cos = Cos;
    /// The hyperbolic tangent.
    tanh = Tanh;
    /// The error function 2/√π ∫₀ˣ e^(−t²) dt.
    erf = Erf;
    /// The largest integer not above x.
    floor = Floor;
    /// The smallest integer not below x.
    ceil = Ceil;
    /// The nearest integer, halves to even.
    round = Round;
    /// Logical not; also `!x`.
    #[allow(clippy::should_implement_trait)]
    not = Not;
}

macro_rules! binary {
    ($($(#[$doc:meta])* $name:ident = $prim:ident;)*) => { impl Sym { $(
        $(#[$doc])*
        pub fn $name(self, other: impl Into<Sym>) -> Self {
            push(Prim::Binary(Binary::$prim), &[self, other.into()])
        }
    )* } };
}
binary! {
    /// selfʸ.
    pow = Pow;
    /// The smaller; NaN propagates; of equals the first.
    min = Min;
    /// The larger; NaN propagates; of equals the first.
    max = Max;
    /// Equal.
    eq = Eq;
    /// Not equal; true when either is NaN.
    ne = Ne;
    /// Less.
    lt = Lt;
    /// Less or equal.
    le = Le;
    /// Logical and.
    and = And;
    /// Logical or.
    or = Or;
}

impl Not for Sym {
    type Output = Self;
    fn not(self) -> Self {
        push(Prim::Unary(Unary::Not), &[self])
    }
}

impl Neg for Sym {
    type Output = Self;
    fn neg(self) -> Self {
        push(Prim::Unary(Unary::Neg), &[self])
    }
}

macro_rules! operators {
    ($($trait:ident $name:ident),*) => { $(
        impl<R: Into<Sym>> $trait<R> for Sym {
            type Output = Sym;
            fn $name(self, other: R) -> Sym { push(Prim::Binary(Binary::$trait), &[self, other.into()]) }
        }
        // One float and one integer type: with two, `1 - x` leaves the literal's type open.
        operators!(@numbers $trait $name: f64 i32);
    )* };
    (@numbers $trait:ident $name:ident: $($t:ty)*) => { $(
        impl $trait<Sym> for $t {
            type Output = Sym;
            fn $name(self, other: Sym) -> Sym { Sym::from(self).$name(other) }
        }
    )* };
}
operators!(Add add, Sub sub, Mul mul, Div div, Rem rem);

impl From<Number> for Sym {
    /// 0, ±1, 2 and ½ become part of the structure; every other number is a run-time argument.
    fn from(number: Number) -> Self {
        match number {
            Number::Float(v) if [0.0, 1.0, -1.0, 2.0, 0.5].contains(&v) && !(v == 0.0 && v.is_sign_negative()) => {
                Self::lit(v)
            }
            Number::Int(v @ -1..=2) => push(Prim::LitInt(v), &[]),
            _ => {
                let i = ARENA.with_borrow_mut(|arena| {
                    arena.args.push(number);
                    arena.args.len() as u32 - 1
                });
                push(if matches!(number, Number::Int(_)) { Prim::ArgInt(i) } else { Prim::Arg(i) }, &[])
            }
        }
    }
}

macro_rules! from_numbers {
    ($($t:ty),*) => { $(impl From<$t> for Sym {
        fn from(v: $t) -> Self { Number::from(v).into() }
    })* };
}
from_numbers!(f64, f32, i32, i64, usize);
