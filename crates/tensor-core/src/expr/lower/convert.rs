//! Conversions between element types.

use super::symbolic::{Lane, SymBits, SymMask, SymReal, push};
use super::{LowOp, LowType, integer};
use crate::math::{Bits, Real};
use crate::{DType, Number};

fn convert(op: LowOp, x: Lane, ty: LowType) -> u32 {
    push(op, ty, &[x.register()])
}

/// A value of type `from` as one of type `to`.
pub(super) fn cast(x: Lane, from: DType, to: DType) -> Lane {
    match to {
        DType::Bool => Lane::Bool(is_true(x)),
        DType::I64 => Lane::I64(match x {
            Lane::I64(x) => x,
            Lane::I32(_) => SymBits(convert(LowOp::Convert, x, LowType::I64)),
            Lane::F32(_) | Lane::F64(_) => SymBits(convert(LowOp::Truncate, x, LowType::I64)),
            Lane::Bool(mask) => Bits::select(mask, SymBits::constant(1), SymBits::constant(0)),
        }),
        DType::I32 | DType::U8 => Lane::I32(match x {
            Lane::I32(x) => integer::within(x, to),
            Lane::I64(_) => integer::within(SymBits(convert(LowOp::Convert, x, LowType::I32)), to),
            Lane::F32(_) | Lane::F64(_) => saturated(SymBits(convert(LowOp::Truncate, x, LowType::I32)), to),
            Lane::Bool(mask) => Bits::select(mask, SymBits::constant(1), SymBits::constant(0)),
        }),
        DType::F64 => Lane::F64(double(x)),
        DType::F32 => Lane::F32(single(x)),
        DType::F16 | DType::BF16 => Lane::F32(match x {
            // Small integers are exact on the way; bf16 would round twice, at f32 and at its own.
            Lane::I32(int) if to == DType::BF16 && from != DType::U8 => {
                SymReal(convert(LowOp::RoundTo(to), Lane::F32(single(Lane::I32(odd(int)))), LowType::F32))
            }
            Lane::I64(_) if to == DType::BF16 => {
                SymReal(convert(LowOp::RoundTo(to), Lane::F64(double(x)), LowType::F32))
            }
            Lane::I32(_) | Lane::I64(_) => SymReal(convert(LowOp::RoundTo(to), Lane::F32(single(x)), LowType::F32)),
            Lane::F32(_) | Lane::F64(_) => SymReal(convert(LowOp::RoundTo(to), x, LowType::F32)),
            Lane::Bool(_) => single(x),
        }),
    }
}

fn is_true(x: Lane) -> SymMask {
    match x {
        Lane::F32(x) => !x.eq(SymReal::constant(0.0)),
        Lane::F64(x) => !x.eq(SymReal::constant(0.0)),
        Lane::I32(x) => !x.eq(SymBits::constant(0)),
        Lane::I64(x) => !x.eq(SymBits::constant(0)),
        Lane::Bool(x) => x,
    }
}

fn double(x: Lane) -> SymReal<true> {
    match x {
        Lane::F64(x) => x,
        Lane::F32(_) => SymReal(convert(LowOp::Convert, x, LowType::F64)),
        Lane::I32(_) | Lane::I64(_) => SymReal(convert(LowOp::FromSigned, x, LowType::F64)),
        Lane::Bool(mask) => Real::select(mask, SymReal::constant(1.0), SymReal::constant(0.0)),
    }
}

fn single(x: Lane) -> SymReal<false> {
    match x {
        Lane::F32(x) => x,
        Lane::F64(_) => SymReal(convert(LowOp::Convert, x, LowType::F32)),
        Lane::I32(_) | Lane::I64(_) => SymReal(convert(LowOp::FromSigned, x, LowType::F32)),
        Lane::Bool(mask) => Real::select(mask, SymReal::constant(1.0), SymReal::constant(0.0)),
    }
}

/// An integer rounded to 24 bits, to odd where it has more: rounding it once more, to fewer bits, then rounds as if once.
fn odd(x: SymBits<false>) -> SymBits<false> {
    let upper = x.shr(8).shl(8);
    let is_exact = Bits::eq(upper, x);
    let odd = Bits::select(is_exact, upper, upper | SymBits::constant(1 << 8));
    // What has no more than 24 bits stays.
    let is_short = x.shr(23).add(SymBits::constant(1)).lt_unsigned(SymBits::constant(2));
    Bits::select(is_short, x, odd)
}

/// A 32-bit integer brought into the range of the type.
fn saturated(x: SymBits<false>, to: DType) -> SymBits<false> {
    if to != DType::U8 {
        return x;
    }
    let (Lane::I32(low), Lane::I32(high)) = (Lane::number(Number::Int(0), to), Lane::number(Number::Int(255), to))
    else {
        unreachable!("invariant: u8 is computed in 32 bits")
    };
    let x = Bits::select(x.lt(low), low, x);
    Bits::select(high.lt(x), high, x)
}
