//! An interpreter of lowered code, one native operation per instruction.

use half::{bf16, f16};

use crate::expr::lower::{LowOp, LowType, Lowered};
use crate::math::{Bits, Real};
use crate::{DType, Number};

/// The registers of the results, for inputs as registers hold them.
pub(super) fn run(code: &Lowered, inputs: &[u64], numbers: &[Number]) -> Vec<u64> {
    let mut registers: Vec<u64> = Vec::with_capacity(code.instrs.len());
    for instr in &code.instrs {
        let arg = |i: usize| registers[instr.args[i] as usize];
        let args = [
            arg_or_0(instr.operands(), &registers, 0),
            arg_or_0(instr.operands(), &registers, 1),
            arg_or_0(instr.operands(), &registers, 2),
        ];
        let operand_type = instr.operands().first().map_or(instr.ty, |&k| code.instrs[k as usize].ty);
        registers.push(match instr.op {
            LowOp::Input(i) => inputs[i as usize],
            LowOp::Param(i) => code.params[i as usize].bits(numbers[code.params[i as usize].number as usize]),
            LowOp::Const(bits) => bits,
            LowOp::Select => {
                if arg(0) != 0 {
                    arg(1)
                } else {
                    arg(2)
                }
            }
            LowOp::Convert | LowOp::FromSigned | LowOp::Truncate | LowOp::RoundTo(_) => {
                convert(instr.op, args[0], operand_type, instr.ty)
            }
            op => match operand_type {
                LowType::F32 => single(op, args),
                LowType::F64 => double(op, args),
                LowType::I32 => int32(op, args),
                LowType::I64 => int64(op, args),
                LowType::Bool => truth(op, args),
            },
        });
    }
    code.results.iter().map(|&(register, _)| registers[register as usize]).collect()
}

fn arg_or_0(operands: &[u32], registers: &[u64], i: usize) -> u64 {
    operands.get(i).map_or(0, |&k| registers[k as usize])
}

macro_rules! floats {
    ($name:ident, $float:ty, $uint:ty, $int:ty) => {
        fn $name(op: LowOp, args: [u64; 3]) -> u64 {
            let [a, b, c] = args.map(|v| <$float>::from_bits(v as $uint));
            let bits = |v: $float| u64::from(v.to_bits());
            match op {
                LowOp::Add => bits(a + b),
                LowOp::Sub => bits(a - b),
                LowOp::Mul => bits(a * b),
                LowOp::Div => bits(a / b),
                LowOp::Neg => bits(-a),
                LowOp::Abs => bits(a.abs()),
                LowOp::Sqrt => bits(a.sqrt()),
                LowOp::Floor => bits(a.floor()),
                LowOp::Ceil => bits(a.ceil()),
                LowOp::RoundEven => bits(a.round_ties_even()),
                LowOp::Fma => bits(a.mul_add(b, c)),
                LowOp::MulError => bits(a.mul_add(b, -c)),
                LowOp::Keep => bits(a),
                LowOp::Lt => u64::from(a < b),
                LowOp::Le => u64::from(a <= b),
                LowOp::Eq => u64::from(a == b),
                LowOp::ToBits => bits(a),
                LowOp::ToInt => Real::to_int(a) as $uint as u64,
                other => panic!("{other:?} of floats"),
            }
        }
    };
}
floats!(single, f32, u32, i32);
floats!(double, f64, u64, i64);

macro_rules! integers {
    ($name:ident, $int:ty, $uint:ty, $float:ty) => {
        fn $name(op: LowOp, args: [u64; 3]) -> u64 {
            let [a, b, _] = args.map(|v| v as $int);
            let bits = |v: $int| v as $uint as u64;
            match op {
                LowOp::Add => bits(Bits::add(a, b)),
                LowOp::Sub => bits(Bits::sub(a, b)),
                LowOp::Mul => bits(Bits::mul(a, b)),
                LowOp::MulHigh => bits(a.mul_high(b)),
                LowOp::DivTrunc => {
                    assert!(b != 0 && b != -1, "a divisor that the contract excludes");
                    bits(a / b)
                }
                LowOp::Lt => u64::from(a < b),
                LowOp::Le => u64::from(a <= b),
                LowOp::Eq => u64::from(a == b),
                LowOp::LtUnsigned => u64::from((a as $uint) < (b as $uint)),
                LowOp::And => bits(a & b),
                LowOp::Or => bits(a | b),
                LowOp::Xor => bits(a ^ b),
                LowOp::Shl(n) => bits(Bits::shl(a, n)),
                LowOp::Shr(n) => bits(Bits::shr(a, n)),
                LowOp::ShrLogical(n) => bits(a.shr_logical(n)),
                LowOp::ShlBy => bits(a.shl_by(b)),
                LowOp::ShrLogicalBy => bits(a.shr_logical_by(b)),
                LowOp::FromBits => bits(a),
                LowOp::FromInt => <$float>::to_bits(<$float as Real>::from_int(a)).into(),
                other => panic!("{other:?} of integers"),
            }
        }
    };
}
integers!(int32, i32, u32, f32);
integers!(int64, i64, u64, f64);

fn truth(op: LowOp, [a, b, _]: [u64; 3]) -> u64 {
    match op {
        LowOp::And => a & b,
        LowOp::Or => a | b,
        LowOp::Xor => a ^ b,
        LowOp::Not => 1 - a,
        other => panic!("{other:?} of truth values"),
    }
}

fn convert(op: LowOp, bits: u64, from: LowType, to: LowType) -> u64 {
    let single = f32::from_bits(bits as u32);
    let double = f64::from_bits(bits);
    let f32_bits = |v: f32| u64::from(v.to_bits());
    match (op, from, to) {
        (LowOp::Convert, LowType::F32, LowType::F64) => f64::from(single).to_bits(),
        (LowOp::Convert, LowType::F64, LowType::F32) => f32_bits(double as f32),
        (LowOp::Convert, LowType::I32, LowType::I64) => i64::from(bits as i32) as u64,
        (LowOp::Convert, LowType::I64, LowType::I32) => u64::from(bits as u32),
        (LowOp::FromSigned, LowType::I32, LowType::F32) => f32_bits(bits as i32 as f32),
        (LowOp::FromSigned, LowType::I32, LowType::F64) => f64::from(bits as i32).to_bits(),
        (LowOp::FromSigned, LowType::I64, LowType::F32) => f32_bits(bits as i64 as f32),
        (LowOp::FromSigned, LowType::I64, LowType::F64) => (bits as i64 as f64).to_bits(),
        (LowOp::Truncate, LowType::F32, LowType::I32) => u64::from(single as i32 as u32),
        (LowOp::Truncate, LowType::F32, LowType::I64) => single as i64 as u64,
        (LowOp::Truncate, LowType::F64, LowType::I32) => u64::from(double as i32 as u32),
        (LowOp::Truncate, LowType::F64, LowType::I64) => double as i64 as u64,
        (LowOp::RoundTo(DType::F16), LowType::F32, _) => f32_bits(f16::from_f32(single).to_f32()),
        (LowOp::RoundTo(DType::F16), LowType::F64, _) => f32_bits(<f16 as crate::Element>::from_f64(double).to_f32()),
        (LowOp::RoundTo(DType::BF16), LowType::F32, _) => f32_bits(bf16::from_f32(single).to_f32()),
        (LowOp::RoundTo(DType::BF16), LowType::F64, _) => f32_bits(<bf16 as crate::Element>::from_f64(double).to_f32()),
        other => panic!("{other:?} is no conversion"),
    }
}
