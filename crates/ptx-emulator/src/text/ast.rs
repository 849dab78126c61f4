//! A module as it is written: names are not resolved, opcodes not looked at.

use crate::error::Pos;
use crate::types::{Space, Ty};

#[derive(Debug, Default)]
pub(crate) struct Ast<'a> {
    pub(crate) version: (u32, u32),
    pub(crate) target: Vec<&'a str>,
    pub(crate) vars: Vec<Var<'a>>,
    pub(crate) funcs: Vec<Func<'a>>,
    pub(crate) warnings: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum VarSpace {
    Reg,
    Memory(Space),
}

#[derive(Clone, Debug)]
pub(crate) struct Var<'a> {
    pub(crate) space: VarSpace,
    pub(crate) is_extern: bool,
    pub(crate) align: Option<u32>,
    pub(crate) ty: Ty,
    pub(crate) vector: u32,
    pub(crate) name: &'a str,
    /// `<n>` after the name: n names with a number behind.
    pub(crate) range: Option<u32>,
    /// Sizes of the array; the first may be open.
    pub(crate) dims: Vec<Option<u64>>,
    pub(crate) init: Option<Init<'a>>,
    /// The `.ptr` attribute of a kernel parameter.
    pub(crate) is_pointer: bool,
    pub(crate) pos: Pos,
}

#[derive(Clone, Debug)]
pub(crate) enum Init<'a> {
    List(Vec<Init<'a>>),
    Const(Const),
    /// The address of a variable or function, plus an offset.
    Symbol(&'a str, i64, Pos),
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Const {
    Int(u64),
    F32(u32),
    F64(u64),
}

#[derive(Debug)]
pub(crate) struct Func<'a> {
    pub(crate) is_entry: bool,
    pub(crate) name: &'a str,
    pub(crate) rets: Vec<Var<'a>>,
    pub(crate) params: Vec<Var<'a>>,
    /// Nothing for a declaration.
    pub(crate) body: Option<Vec<Item<'a>>>,
    pub(crate) max_threads: Option<[u32; 3]>,
    pub(crate) required_threads: Option<[u32; 3]>,
    pub(crate) pos: Pos,
}

#[derive(Debug)]
pub(crate) enum Item<'a> {
    Var(Var<'a>),
    Label(&'a str, Pos),
    Scope(Vec<Item<'a>>),
    Stmt(Stmt<'a>),
    /// `.branchtargets` and `.calltargets`.
    Targets(&'a str, Vec<&'a str>, Pos),
    Prototype(&'a str),
}

#[derive(Debug)]
pub(crate) struct Stmt<'a> {
    /// The guard: its register, and whether it is negated.
    pub(crate) guard: Option<(&'a str, bool)>,
    pub(crate) opcode: &'a str,
    pub(crate) mods: Vec<&'a str>,
    pub(crate) operands: Vec<Operand<'a>>,
    pub(crate) pos: Pos,
}

#[derive(Clone, Debug)]
pub(crate) struct Operand<'a> {
    pub(crate) kind: Kind<'a>,
    pub(crate) pos: Pos,
}

#[derive(Clone, Debug)]
pub(crate) enum Kind<'a> {
    /// A name, and the component behind its dot.
    Name(&'a str, Option<&'a str>),
    /// A name plus an offset.
    NameOffset(&'a str, i64),
    Const(Const),
    /// `!p`
    Not(&'a str),
    /// `p|q`
    Pair(&'a str, &'a str),
    /// `{a, b}`
    Vector(Vec<Operand<'a>>),
    /// `(a, b)`
    List(Vec<Operand<'a>>),
    /// `[base + offset]`; no base for a constant address.
    Address(Option<&'a str>, i64),
    /// `[base, {…}]` and other addresses of tensors.
    Tensor,
}
