//! Lowering: expressions for given types as straight-line code over 32- and 64-bit registers, transcendentals included.
//!
//! This is what PTX and WGSL are printed from, one line per instruction. The math library runs once over symbolic
//! numbers that record what they are asked for, so that a printed kernel does the same operations in the
//! same order as the CPU. A printer must not contract [`LowOp::Mul`] and [`LowOp::Add`].

use std::sync::Arc;

use smallvec::SmallVec;

use super::{Expr, Prim, Program, TypedNode};
use crate::{DType, Number, Result};

mod convert;
mod integer;
mod real;
mod symbolic;

use symbolic::{Lane, Recorder};

/// The type of a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LowType {
    /// f32; also f16 and bf16, which are widened when loaded and rounded when stored.
    F32,
    /// f64.
    F64,
    /// A signed 32-bit integer, or the bits of an f32; also u8.
    I32,
    /// A signed 64-bit integer, or the bits of an f64.
    I64,
    /// A truth value.
    Bool,
}

impl LowType {
    /// The register that elements of a type are computed in.
    pub const fn of(dtype: DType) -> Self {
        match dtype {
            DType::F64 => Self::F64,
            DType::F32 | DType::F16 | DType::BF16 => Self::F32,
            DType::I64 => Self::I64,
            DType::I32 | DType::U8 => Self::I32,
            DType::Bool => Self::Bool,
        }
    }
}

/// What an instruction does; the types of its operands are those of the instructions they name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LowOp {
    /// The i-th input's element, converted to the register's type: 16-bit floats widen, u8 extends with zeros, bool is
    /// `byte ≠ 0`.
    Input(u32),
    /// The i-th of [`Lowered::params`].
    Param(u32),
    /// These bits.
    Const(u64),
    /// a + b; integers wrap.
    Add,
    /// a − b; integers wrap.
    Sub,
    /// a · b; the low half for integers.
    Mul,
    /// The high half of the product of two integers taken as unsigned.
    MulHigh,
    /// a / b, floats, rounded to nearest.
    Div,
    /// a / b towards 0, signed integers; b is neither 0 nor −1.
    DivTrunc,
    /// −a.
    Neg,
    /// |a|.
    Abs,
    /// √a.
    Sqrt,
    /// The largest integer not above a.
    Floor,
    /// The smallest integer not below a.
    Ceil,
    /// The nearest integer, ties to even.
    RoundEven,
    /// a · b + c, rounded once where the target can.
    Fma,
    /// a · b − c exactly, c = a · b rounded ([`crate::math::Real::mul_error`]).
    MulError,
    /// a, not to be regrouped with what is around it.
    Keep,
    /// a < b: floats (false for NaN) and signed integers.
    Lt,
    /// a ≤ b: floats (false for NaN) and signed integers.
    Le,
    /// a = b: floats (false for NaN) and integers.
    Eq,
    /// a < b, integers taken as unsigned.
    LtUnsigned,
    /// a ? b : c, of any type.
    Select,
    /// Bit by bit; of truth values too.
    And,
    /// Bit by bit; of truth values too.
    Or,
    /// Bit by bit; of truth values too.
    Xor,
    /// Not, of a truth value.
    Not,
    /// To the left by a constant.
    Shl(u32),
    /// To the right by a constant, filling with the sign.
    Shr(u32),
    /// To the right by a constant, filling with zeros.
    ShrLogical(u32),
    /// To the left by b.
    ShlBy,
    /// To the right by b, filling with zeros.
    ShrLogicalBy,
    /// A float's bits as an integer of its width.
    ToBits,
    /// The float of these bits.
    FromBits,
    /// An integral float of small magnitude as an integer of its width ([`crate::math::Real::to_int`]).
    ToInt,
    /// An integer of small magnitude as a float of its width ([`crate::math::Real::from_int`]).
    FromInt,
    /// Between floats, rounding to nearest; between integers, extending the sign or dropping the upper half.
    Convert,
    /// The nearest float to a signed integer.
    FromSigned,
    /// A float as a signed integer: truncates, saturates, NaN gives 0.
    Truncate,
    /// The nearest f16 or bf16 of an f32 or f64, as an f32.
    RoundTo(DType),
}

impl LowOp {
    /// How many operands it takes.
    pub const fn arity(self) -> usize {
        match self {
            Self::Input(_) | Self::Param(_) | Self::Const(_) => 0,
            Self::Neg
            | Self::Abs
            | Self::Sqrt
            | Self::Floor
            | Self::Ceil
            | Self::RoundEven
            | Self::Keep
            | Self::Not
            | Self::Shl(_)
            | Self::Shr(_)
            | Self::ShrLogical(_)
            | Self::ToBits
            | Self::FromBits
            | Self::ToInt
            | Self::FromInt
            | Self::Convert
            | Self::FromSigned
            | Self::Truncate
            | Self::RoundTo(_) => 1,
            Self::Fma | Self::MulError | Self::Select => 3,
            _ => 2,
        }
    }
}

/// One instruction; it defines the register of its own position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Instr {
    /// What it does.
    pub op: LowOp,
    /// The type of its result.
    pub ty: LowType,
    /// The registers of its operands; those past the arity are 0.
    pub args: [u32; 3],
}

impl Instr {
    /// The registers of its operands.
    pub fn operands(&self) -> &[u32] {
        &self.args[..self.op.arity()]
    }
}

/// A run-time number as a kernel receives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Param {
    /// Its position among the numbers of all expressions, one after the other.
    pub number: u32,
    /// The type that it takes.
    pub dtype: DType,
}

impl Param {
    /// The bits of the register that holds `number`.
    pub fn bits(self, number: Number) -> u64 {
        match LowType::of(self.dtype) {
            LowType::F64 => number.to_f64().to_bits(),
            LowType::F32 => u64::from((number.to_f64() as f32).to_bits()),
            LowType::I64 => number.to_i64() as u64,
            LowType::I32 => u64::from(super::wrap(number.to_i64(), self.dtype) as u32),
            LowType::Bool => u64::from(number.to_f64() != 0.0),
        }
    }
}

/// Expressions as straight-line code.
#[derive(Clone, Debug, PartialEq)]
pub struct Lowered {
    /// The instructions; each reads only earlier ones.
    pub instrs: Vec<Instr>,
    /// The run-time numbers, each once for every type that it takes.
    pub params: Vec<Param>,
    /// For every expression the register of its value, and the type to store it in.
    pub results: SmallVec<[(u32, DType); 1]>,
}

/// Lowers expressions over the same inputs together: what they share is computed once.
///
/// # Errors
/// If the types do not fit ([`super::Code::program`]).
pub fn lower(op: &'static str, exprs: &[Expr], inputs: &[DType]) -> Result<Lowered> {
    let programs: Vec<Arc<Program>> = exprs.iter().map(|e| e.code.program(op, inputs)).collect::<Result<_>>()?;
    let mut recorder = Recorder::start();
    let mut first_number = 0;
    let mut results: SmallVec<[(u32, DType); 1]> = SmallVec::new();
    for (expr, program) in exprs.iter().zip(&programs) {
        let mut lanes: Vec<Lane> = Vec::with_capacity(program.nodes.len());
        for node in &program.nodes {
            let lane = lower_node(node, program, &lanes, first_number);
            lanes.push(lane);
        }
        let value = lanes.last().expect("invariant: a program has a node").register();
        results.push((value, program.dtype()));
        first_number += expr.args.len() as u32;
    }
    let (instrs, params) = recorder.finish();
    Ok(live(instrs, params, results))
}

fn lower_node(node: &TypedNode, program: &Program, lanes: &[Lane], first_number: u32) -> Lane {
    let arg = |i: usize| lanes[node.args[i] as usize];
    let dtype_of = |i: usize| program.nodes[node.args[i] as usize].dtype;
    match node.prim {
        Prim::Input(i) => Lane::input(i, node.dtype),
        Prim::Arg(i) | Prim::ArgInt(i) => Lane::param(Param { number: first_number + i, dtype: node.dtype }),
        Prim::Lit(bits) => Lane::number(Number::Float(f64::from_bits(bits)), node.dtype),
        Prim::LitInt(v) => Lane::number(Number::Int(v), node.dtype),
        Prim::Unary(op) => match arg(0) {
            Lane::F32(x) => Lane::F32(real::unary(op, x)),
            Lane::F64(x) => Lane::F64(real::unary(op, x)),
            Lane::I32(x) => Lane::I32(integer::unary(op, x)),
            Lane::I64(x) => Lane::I64(integer::unary(op, x)),
            Lane::Bool(x) => Lane::Bool(!x),
        },
        Prim::Binary(op) => match (arg(0), arg(1)) {
            (Lane::F32(x), Lane::F32(y)) if op.is_comparison() => Lane::Bool(real::compare(op, x, y)),
            (Lane::F64(x), Lane::F64(y)) if op.is_comparison() => Lane::Bool(real::compare(op, x, y)),
            (Lane::I32(x), Lane::I32(y)) if op.is_comparison() => Lane::Bool(integer::compare(op, x, y)),
            (Lane::I64(x), Lane::I64(y)) if op.is_comparison() => Lane::Bool(integer::compare(op, x, y)),
            (Lane::F32(x), Lane::F32(y)) => Lane::F32(real::binary(op, x, y)),
            (Lane::F64(x), Lane::F64(y)) => Lane::F64(real::binary(op, x, y)),
            (Lane::I32(x), Lane::I32(y)) => Lane::I32(integer::within(integer::binary(op, x, y), node.dtype)),
            (Lane::I64(x), Lane::I64(y)) => Lane::I64(integer::binary(op, x, y)),
            (Lane::Bool(x), Lane::Bool(y)) => Lane::Bool(integer::truth(op, x, y)),
            _ => unreachable!("invariant: typed operands have one type"),
        },
        Prim::Select => arg(0).select(arg(1), arg(2)),
        Prim::Cast(to) => convert::cast(arg(0), dtype_of(0), to),
        Prim::Call(_) => unreachable!("invariant: programs have their formulas expanded"),
    }
}

/// Only what the results need, renumbered.
fn live(instrs: Vec<Instr>, params: Vec<Param>, mut results: SmallVec<[(u32, DType); 1]>) -> Lowered {
    let mut needed = vec![false; instrs.len()];
    results.iter().for_each(|&(register, _)| needed[register as usize] = true);
    for (i, instr) in instrs.iter().enumerate().rev().filter(|(_, instr)| instr.op.arity() > 0) {
        if needed[i] {
            instr.operands().iter().for_each(|&k| needed[k as usize] = true);
        }
    }
    let mut renumbered = vec![0u32; instrs.len()];
    let mut kept = Vec::with_capacity(instrs.len());
    for (i, mut instr) in instrs.into_iter().enumerate().filter(|&(i, _)| needed[i]) {
        for k in 0..instr.op.arity() {
            instr.args[k] = renumbered[instr.args[k] as usize];
        }
        renumbered[i] = kept.len() as u32;
        kept.push(instr);
    }
    results.iter_mut().for_each(|(register, _)| *register = renumbered[*register as usize]);
    Lowered { instrs: kept, params, results }
}
