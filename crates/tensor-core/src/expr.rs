//! Elementwise work as data: a small expression graph over scalar primitives.
//!
//! A formula is written once in Rust over a [`Sym`]; evaluation, derivatives, type rules and every
//! backend's kernels are interpreters of the graph it builds. [`Code`] is the structure (interned, so that
//! kernels are cached by it); [`Expr`] adds the run-time numbers.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use smallvec::SmallVec;

use crate::{DType, Number};

mod bounded;
mod derivative;
mod eval;
mod formula;
pub mod lower;
mod reference;
mod symbol;
mod types;

pub use bounded::{Accuracy, Bounded, Bounds, largest, smallest_normal, ulp};
pub use eval::{Algebra, Dual, Duals, Reals};
pub use formula::{FORMULAS, Formula, FormulaId, named};
pub use reference::{Value, int_binary, int_unary, wrap};
pub(crate) use symbol::build_with_args;
pub use symbol::{Sym, build, build_with};
pub use types::{Program, TypedNode};

/// One scalar primitive.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Prim {
    /// The i-th input.
    Input(u32),
    /// The i-th run-time number, a float.
    Arg(u32),
    /// The i-th run-time number, an integer: it takes its partner's type.
    ArgInt(u32),
    /// A float constant, as its bits: part of the structure.
    Lit(u64),
    /// An integer constant: it takes its partner's type.
    LitInt(i64),
    /// One operand.
    Unary(Unary),
    /// Two operands.
    Binary(Binary),
    /// `condition ? a : b`.
    Select,
    /// Conversion: float to integer truncates and saturates, NaN gives 0; to bool is `x != 0`.
    Cast(DType),
    /// A named formula with up to three operands, expanded only when lowered.
    Call(FormulaId),
}

/// The primitives of one operand.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[allow(missing_docs)]
pub enum Unary {
    Neg,
    Abs,
    Sign,
    Exp,
    ExpM1,
    Ln,
    Ln1p,
    Sqrt,
    Rsqrt,
    Recip,
    Sin,
    Cos,
    Tanh,
    Erf,
    Floor,
    Ceil,
    /// Half to even.
    Round,
    /// Logical; takes and gives bool.
    Not,
}

impl Unary {
    /// The name in errors, and in [`crate::math::BOUNDS`].
    pub const fn name(self) -> &'static str {
        match self {
            Self::Neg => "neg",
            Self::Abs => "abs",
            Self::Sign => "sign",
            Self::Exp => "exp",
            Self::ExpM1 => "exp_m1",
            Self::Ln => "ln",
            Self::Ln1p => "ln_1p",
            Self::Sqrt => "sqrt",
            Self::Rsqrt => "rsqrt",
            Self::Recip => "recip",
            Self::Sin => "sin",
            Self::Cos => "cos",
            Self::Tanh => "tanh",
            Self::Erf => "erf",
            Self::Floor => "floor",
            Self::Ceil => "ceil",
            Self::Round => "round",
            Self::Not => "not",
        }
    }
}

/// The primitives of two operands.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[allow(missing_docs)]
pub enum Binary {
    Add,
    Sub,
    Mul,
    /// Integers: floors; by zero gives 0.
    Div,
    /// `a − b·floor(a/b)`: the divisor's sign, floats too; integers by zero give 0.
    Rem,
    /// Integers wrap; a negative exponent truncates the quotient: 0 but for ±1.
    Pow,
    /// NaN propagates.
    Min,
    /// NaN propagates.
    Max,
    Eq,
    /// Unordered: true when either is NaN.
    Ne,
    Lt,
    Le,
    And,
    Or,
}

impl Binary {
    /// The name in errors, and in [`crate::math::BOUNDS`].
    pub const fn name(self) -> &'static str {
        match self {
            Self::Add => "add",
            Self::Sub => "sub",
            Self::Mul => "mul",
            Self::Div => "div",
            Self::Rem => "rem",
            Self::Pow => "pow",
            Self::Min => "min",
            Self::Max => "max",
            Self::Eq => "eq",
            Self::Ne => "ne",
            Self::Lt => "lt",
            Self::Le => "le",
            Self::And => "and",
            Self::Or => "or",
        }
    }

    /// Whether it compares: its operands have a type of their own, its value is bool.
    pub const fn is_comparison(self) -> bool {
        matches!(self, Self::Eq | Self::Ne | Self::Lt | Self::Le)
    }
}

impl Prim {
    /// How many operands it takes.
    pub fn arity(self) -> usize {
        match self {
            Self::Input(_) | Self::Arg(_) | Self::ArgInt(_) | Self::Lit(_) | Self::LitInt(_) => 0,
            Self::Unary(_) | Self::Cast(_) => 1,
            Self::Binary(_) => 2,
            Self::Select => 3,
            Self::Call(id) => id.formula().arity,
        }
    }
}

/// A primitive and the nodes it reads; every operand stands before its user.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Node {
    /// What is computed.
    pub prim: Prim,
    /// The operands' positions; those past the arity are 0.
    pub args: [u32; 3],
}

impl Node {
    /// The operands' positions.
    pub fn operands(&self) -> &[u32] {
        &self.args[..self.prim.arity()]
    }
}

/// The structure of an expression: nodes in order, the last one its value. Interned: equal structures are one object.
#[derive(Debug)]
pub struct Code {
    nodes: Vec<Node>,
    n_inputs: usize,
    id: u64,
    programs: Programs,
    derivatives: OnceLock<Vec<Option<Arc<Code>>>>,
    derivative_reads: OnceLock<u32>,
}

/// A program and the input types that it is for.
type Typed = (SmallVec<[DType; 4]>, Arc<Program>);

/// The programs made so far: the first one is found without a lock.
#[derive(Debug, Default)]
struct Programs {
    first: OnceLock<Typed>,
    more: Mutex<Vec<Typed>>,
}

impl Code {
    /// The nodes; the last is the value.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// How many inputs it was declared over (it may read fewer).
    pub fn n_inputs(&self) -> usize {
        self.n_inputs
    }

    /// A number that is the same for equal structures within a process: the key of kernel caches.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Whether input `i` is read.
    pub fn reads(&self, i: usize) -> bool {
        self.nodes.iter().any(|n| n.prim == Prim::Input(i as u32))
    }

    /// Bit i: some derivative reads the value of input i (of those below 32).
    pub fn derivative_reads(self: &Arc<Self>) -> u32 {
        *self.derivative_reads.get_or_init(|| {
            let codes = self.derivatives().iter().flatten();
            codes.flat_map(|code| code.nodes()).fold(0, |mask, node| match node.prim {
                Prim::Input(i) if (i as usize) < self.n_inputs && i < 32 => mask | 1 << i,
                _ => mask,
            })
        })
    }

    /// Whether the value is input `i`, unchanged.
    pub fn is_input(&self, i: usize) -> bool {
        matches!(self.nodes[..], [Node { prim: Prim::Input(k), .. }] if k as usize == i)
    }
}

/// An expression: interned structure and this use's run-time numbers.
#[derive(Debug)]
pub struct Expr {
    /// The structure.
    pub code: Arc<Code>,
    /// The numbers that `Arg(i)` and `ArgInt(i)` stand for.
    pub args: SmallVec<[Number; 2]>,
}

impl Clone for Expr {
    fn clone(&self) -> Self {
        Self { code: self.code.clone(), args: SmallVec::from_slice(&self.args) }
    }
}

impl Expr {
    /// The expression that is its only input.
    pub fn identity() -> Self {
        static IDENTITY: OnceLock<Expr> = OnceLock::new();
        IDENTITY.get_or_init(|| build(|[x]| x)).clone()
    }

    /// Whether this is one input, unchanged.
    pub fn is_identity(&self) -> bool {
        self.code.n_inputs == 1 && self.code.is_input(0)
    }
}

/// The one object for this structure.
fn intern(nodes: Vec<Node>, n_inputs: usize) -> Arc<Code> {
    type Table = HashMap<u64, SmallVec<[Arc<Code>; 1]>>;
    static TABLE: OnceLock<Mutex<Table>> = OnceLock::new();
    let mut hasher = DefaultHasher::new();
    (&nodes, n_inputs).hash(&mut hasher);
    let mut table = TABLE.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner);
    let n_codes = table.len() as u64;
    let same_hash = table.entry(hasher.finish()).or_default();
    if let Some(code) = same_hash.iter().find(|c| c.nodes == nodes && c.n_inputs == n_inputs) {
        return code.clone();
    }
    let id = (n_codes << 8) | same_hash.len() as u64;
    let code = Arc::new(Code {
        nodes,
        n_inputs,
        id,
        programs: Programs::default(),
        derivatives: OnceLock::new(),
        derivative_reads: OnceLock::new(),
    });
    same_hash.push(code.clone());
    code
}

#[cfg(test)]
mod tests;
