//! Symbolic numbers: each operation appends an instruction, or finds the equal one.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::{Add, BitAnd, BitOr, BitXor, Div, Mul, Neg, Not, Sub};

use super::{Instr, LowOp, LowType, Param};
use crate::math::{Bits, Format, Real};
use crate::{DType, Number};

#[derive(Default)]
struct Tape {
    instrs: Vec<Instr>,
    places: HashMap<Instr, u32>,
    params: Vec<Param>,
}

thread_local! {
    static TAPE: RefCell<Tape> = RefCell::default();
}

/// While it lives, symbolic numbers of this thread record here.
pub(super) struct Recorder(Tape);

impl Recorder {
    /// Starts a fresh recording; an outer one goes on after this one.
    pub(super) fn start() -> Self {
        Self(TAPE.take())
    }

    /// What was recorded.
    pub(super) fn finish(&mut self) -> (Vec<Instr>, Vec<Param>) {
        let tape = TAPE.take();
        (tape.instrs, tape.params)
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        TAPE.set(std::mem::take(&mut self.0));
    }
}

/// Records an instruction.
pub(super) fn push(op: LowOp, ty: LowType, operands: &[u32]) -> u32 {
    let mut args = [0; 3];
    args[..operands.len()].copy_from_slice(operands);
    TAPE.with_borrow_mut(|tape| {
        let instr = Instr { op, ty, args };
        *tape.places.entry(instr).or_insert_with(|| {
            tape.instrs.push(instr);
            tape.instrs.len() as u32 - 1
        })
    })
}

/// A float register, f64 or else f32.
#[derive(Clone, Copy)]
pub(super) struct SymReal<const DOUBLE: bool>(pub(super) u32);

/// An integer register, of 64 bits or else 32.
#[derive(Clone, Copy)]
pub(super) struct SymBits<const DOUBLE: bool>(pub(super) u32);

/// A register of a truth value.
#[derive(Clone, Copy)]
pub(super) struct SymMask(pub(super) u32);

impl<const DOUBLE: bool> SymReal<DOUBLE> {
    pub(super) const TYPE: LowType = if DOUBLE { LowType::F64 } else { LowType::F32 };

    fn apply(op: LowOp, operands: &[u32]) -> Self {
        Self(push(op, Self::TYPE, operands))
    }
}

impl<const DOUBLE: bool> SymBits<DOUBLE> {
    pub(super) const TYPE: LowType = if DOUBLE { LowType::I64 } else { LowType::I32 };

    pub(super) fn apply(op: LowOp, operands: &[u32]) -> Self {
        Self(push(op, Self::TYPE, operands))
    }

    /// `self < rhs`, signed.
    pub(super) fn lt(self, rhs: Self) -> SymMask {
        SymMask::apply(LowOp::Lt, &[self.0, rhs.0])
    }

    /// `self <= rhs`, signed.
    pub(super) fn le(self, rhs: Self) -> SymMask {
        SymMask::apply(LowOp::Le, &[self.0, rhs.0])
    }
}

impl SymMask {
    pub(super) fn apply(op: LowOp, operands: &[u32]) -> Self {
        Self(push(op, LowType::Bool, operands))
    }
}

macro_rules! operators {
    ($($ty:ty: $($trait:ident $name:ident = $op:ident),*;)*) => { $($(
        impl $trait for $ty {
            type Output = Self;
            fn $name(self, rhs: Self) -> Self {
                Self::apply(LowOp::$op, &[self.0, rhs.0])
            }
        }
    )*)* };
}

operators! {
    SymReal<false>: Add add = Add, Sub sub = Sub, Mul mul = Mul, Div div = Div;
    SymReal<true>: Add add = Add, Sub sub = Sub, Mul mul = Mul, Div div = Div;
    SymBits<false>: BitAnd bitand = And, BitOr bitor = Or, BitXor bitxor = Xor;
    SymBits<true>: BitAnd bitand = And, BitOr bitor = Or, BitXor bitxor = Xor;
    SymMask: BitAnd bitand = And, BitOr bitor = Or, BitXor bitxor = Xor;
}

impl Not for SymMask {
    type Output = Self;
    fn not(self) -> Self {
        Self::apply(LowOp::Not, &[self.0])
    }
}

macro_rules! symbolic {
    ($double:literal, $format:expr, $bits_of:expr) => {
        impl Neg for SymReal<$double> {
            type Output = Self;
            fn neg(self) -> Self {
                Self::apply(LowOp::Neg, &[self.0])
            }
        }

        impl Real for SymReal<$double> {
            const FORMAT: Format = $format;
            type Bits = SymBits<$double>;
            type Mask = SymMask;

            fn constant(value: f64) -> Self {
                Self::apply(LowOp::Const(($bits_of)(value)), &[])
            }
            fn abs(self) -> Self {
                Self::apply(LowOp::Abs, &[self.0])
            }
            fn sqrt(self) -> Self {
                Self::apply(LowOp::Sqrt, &[self.0])
            }
            fn floor(self) -> Self {
                Self::apply(LowOp::Floor, &[self.0])
            }
            fn ceil(self) -> Self {
                Self::apply(LowOp::Ceil, &[self.0])
            }
            fn round_even(self) -> Self {
                Self::apply(LowOp::RoundEven, &[self.0])
            }
            fn fma(self, factor: Self, addend: Self) -> Self {
                Self::apply(LowOp::Fma, &[self.0, factor.0, addend.0])
            }
            fn mul_error(self, factor: Self, product: Self) -> Self {
                Self::apply(LowOp::MulError, &[self.0, factor.0, product.0])
            }
            fn keep(self) -> Self {
                Self::apply(LowOp::Keep, &[self.0])
            }
            fn lt(self, rhs: Self) -> SymMask {
                SymMask::apply(LowOp::Lt, &[self.0, rhs.0])
            }
            fn le(self, rhs: Self) -> SymMask {
                SymMask::apply(LowOp::Le, &[self.0, rhs.0])
            }
            fn eq(self, rhs: Self) -> SymMask {
                SymMask::apply(LowOp::Eq, &[self.0, rhs.0])
            }
            fn select(mask: SymMask, then: Self, otherwise: Self) -> Self {
                Self::apply(LowOp::Select, &[mask.0, then.0, otherwise.0])
            }
            fn to_bits(self) -> SymBits<$double> {
                SymBits::apply(LowOp::ToBits, &[self.0])
            }
            fn from_bits(bits: SymBits<$double>) -> Self {
                Self::apply(LowOp::FromBits, &[bits.0])
            }
            fn to_int(self) -> SymBits<$double> {
                SymBits::apply(LowOp::ToInt, &[self.0])
            }
            fn from_int(int: SymBits<$double>) -> Self {
                Self::apply(LowOp::FromInt, &[int.0])
            }
        }

        impl Bits for SymBits<$double> {
            type Mask = SymMask;

            fn constant(value: i64) -> Self {
                Self::apply(LowOp::Const(if $double { value as u64 } else { u64::from(value as u32) }), &[])
            }
            fn add(self, rhs: Self) -> Self {
                Self::apply(LowOp::Add, &[self.0, rhs.0])
            }
            fn sub(self, rhs: Self) -> Self {
                Self::apply(LowOp::Sub, &[self.0, rhs.0])
            }
            fn mul(self, rhs: Self) -> Self {
                Self::apply(LowOp::Mul, &[self.0, rhs.0])
            }
            fn mul_high(self, rhs: Self) -> Self {
                Self::apply(LowOp::MulHigh, &[self.0, rhs.0])
            }
            fn shl(self, bits: u32) -> Self {
                Self::apply(LowOp::Shl(bits), &[self.0])
            }
            fn shr(self, bits: u32) -> Self {
                Self::apply(LowOp::Shr(bits), &[self.0])
            }
            fn shr_logical(self, bits: u32) -> Self {
                Self::apply(LowOp::ShrLogical(bits), &[self.0])
            }
            fn shl_by(self, bits: Self) -> Self {
                Self::apply(LowOp::ShlBy, &[self.0, bits.0])
            }
            fn shr_logical_by(self, bits: Self) -> Self {
                Self::apply(LowOp::ShrLogicalBy, &[self.0, bits.0])
            }
            fn lt_unsigned(self, rhs: Self) -> SymMask {
                SymMask::apply(LowOp::LtUnsigned, &[self.0, rhs.0])
            }
            fn eq(self, rhs: Self) -> SymMask {
                SymMask::apply(LowOp::Eq, &[self.0, rhs.0])
            }
            fn select(mask: SymMask, then: Self, otherwise: Self) -> Self {
                Self::apply(LowOp::Select, &[mask.0, then.0, otherwise.0])
            }
        }
    };
}

symbolic!(false, Format::Single, |v: f64| u64::from((v as f32).to_bits()));
symbolic!(true, Format::Double, |v: f64| v.to_bits());

/// A register and its type.
#[derive(Clone, Copy)]
pub(super) enum Lane {
    F32(SymReal<false>),
    F64(SymReal<true>),
    I32(SymBits<false>),
    I64(SymBits<true>),
    Bool(SymMask),
}

impl Lane {
    fn of(op: LowOp, dtype: DType) -> Self {
        let ty = LowType::of(dtype);
        let register = push(op, ty, &[]);
        match ty {
            LowType::F32 => Self::F32(SymReal(register)),
            LowType::F64 => Self::F64(SymReal(register)),
            LowType::I32 => Self::I32(SymBits(register)),
            LowType::I64 => Self::I64(SymBits(register)),
            LowType::Bool => Self::Bool(SymMask(register)),
        }
    }

    pub(super) fn input(i: u32, dtype: DType) -> Self {
        Self::of(LowOp::Input(i), dtype)
    }

    pub(super) fn param(param: Param) -> Self {
        let position = TAPE.with_borrow_mut(|tape| {
            tape.params.iter().position(|p| *p == param).unwrap_or_else(|| {
                tape.params.push(param);
                tape.params.len() - 1
            })
        });
        Self::of(LowOp::Param(position as u32), param.dtype)
    }

    pub(super) fn number(number: Number, dtype: DType) -> Self {
        Self::of(LowOp::Const(Param { number: 0, dtype }.bits(number)), dtype)
    }

    pub(super) fn register(self) -> u32 {
        match self {
            Self::F32(SymReal(r)) => r,
            Self::F64(SymReal(r)) => r,
            Self::I32(SymBits(r)) => r,
            Self::I64(SymBits(r)) => r,
            Self::Bool(SymMask(r)) => r,
        }
    }

    /// `self ? a : b`.
    pub(super) fn select(self, a: Self, b: Self) -> Self {
        let Self::Bool(mask) = self else { unreachable!("invariant: a condition is bool") };
        match (a, b) {
            (Self::F32(a), Self::F32(b)) => Self::F32(Real::select(mask, a, b)),
            (Self::F64(a), Self::F64(b)) => Self::F64(Real::select(mask, a, b)),
            (Self::I32(a), Self::I32(b)) => Self::I32(Bits::select(mask, a, b)),
            (Self::I64(a), Self::I64(b)) => Self::I64(Bits::select(mask, a, b)),
            (Self::Bool(a), Self::Bool(b)) => Self::Bool(SymMask::apply(LowOp::Select, &[mask.0, a.0, b.0])),
            _ => unreachable!("invariant: typed branches have one type"),
        }
    }
}
