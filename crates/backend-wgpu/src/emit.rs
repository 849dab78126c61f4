//! WGSL from lowered expressions: one line per instruction, in the order of the lowering. What WGSL leaves open (NaN,
//! saturation, rounding of 16-bit floats, regrouping) is written out.

use std::fmt::Write;

use tensor_core::DType;
use tensor_core::expr::lower::{Instr, LowOp, LowType, Lowered};

/// The WGSL type of a register.
pub(crate) fn register_type(ty: LowType) -> &'static str {
    match ty {
        LowType::F32 => "f32",
        LowType::F64 => "f64",
        LowType::I32 => "i32",
        LowType::I64 => "i64",
        LowType::Bool => "bool",
    }
}

/// The unsigned integer of a register's width.
fn unsigned(ty: LowType) -> &'static str {
    if is_wide(ty) { "u64" } else { "u32" }
}

pub(crate) fn is_wide(ty: LowType) -> bool {
    matches!(ty, LowType::F64 | LowType::I64)
}

/// The WGSL type of an array's elements: 8 and 16 bits lie in words.
pub(crate) fn stored(dtype: DType) -> &'static str {
    match dtype {
        DType::F64 => "f64",
        DType::F32 => "f32",
        DType::I64 => "i64",
        DType::I32 => "i32",
        DType::F16 | DType::BF16 | DType::U8 | DType::Bool => "u32",
    }
}

/// The element `i` of an array, as the type that its dtype is computed in.
pub(crate) fn load(dtype: DType, array: &str, i: &str) -> String {
    let half = format!("(({array}[{i} / 2u] >> ({i} % 2u * 16u)) & 0xffffu)");
    let byte = format!("(({array}[{i} / 4u] >> ({i} % 4u * 8u)) & 0xffu)");
    match dtype {
        DType::F64 | DType::F32 | DType::I64 | DType::I32 => format!("{array}[{i}]"),
        DType::F16 => format!("f16_value({half})"),
        DType::BF16 => format!("bf16_value({half})"),
        DType::U8 => format!("i32({byte})"),
        DType::Bool => format!("{byte} != 0u"),
    }
}

/// The bits of a value of 8 or 16 bits as they lie in a word.
pub(crate) fn bits(dtype: DType, value: &str) -> String {
    match dtype {
        DType::F16 => format!("f16_bits({value})"),
        DType::BF16 => format!("bf16_bits({value})"),
        DType::Bool => format!("select(0u, 1u, {value})"),
        _ => format!("(bitcast<u32>({value}) & 0xffu)"),
    }
}

/// A piece of kernel text.
pub(crate) struct Body<'a> {
    /// The lowered expressions.
    pub(crate) lowered: &'a Lowered,
    /// What its registers' names begin with.
    pub(crate) prefix: &'a str,
    /// The inputs, of the types [`LowType::of`] their dtypes.
    pub(crate) inputs: &'a [String],
    /// The run-time numbers.
    pub(crate) numbers: &'a [String],
    /// The names that the results get.
    pub(crate) outputs: &'a [String],
    /// Whether sums, differences and products are kept apart from what is around them.
    pub(crate) is_exact: bool,
}

impl Body<'_> {
    /// The text: declarations only.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        let prefix = self.prefix;
        for (i, instr) in self.lowered.instrs.iter().enumerate() {
            let _ = writeln!(text, "    let {prefix}{i} = {};", self.value(instr));
        }
        for (output, &(register, _)) in self.outputs.iter().zip(&self.lowered.results) {
            let _ = writeln!(text, "    let {output} = {prefix}{register};");
        }
        text
    }

    fn value(&self, instr: &Instr) -> String {
        let Instr { op, ty, args } = *instr;
        let from = self.lowered.instrs.get(args[0] as usize).map_or(ty, |operand| operand.ty);
        let [a, b, c] = args.map(|k| format!("{}{k}", self.prefix));
        let t = register_type(ty);
        let is_float = matches!(ty, LowType::F32 | LowType::F64);
        let suffix = if ty == LowType::F64 { "_double" } else { "" };
        let as_unsigned = |x: &str| format!("bitcast<{}>({x})", unsigned(from));
        match op {
            LowOp::Input(k) => self.inputs[k as usize].clone(),
            LowOp::Param(k) => self.numbers[k as usize].clone(),
            LowOp::Const(v) => constant(ty, v),
            LowOp::Add | LowOp::Sub | LowOp::Mul if is_float && self.is_exact => {
                let sign =
                    [(LowOp::Add, '+'), (LowOp::Sub, '-')].iter().find(|(k, _)| *k == op).map_or('*', |&(_, s)| s);
                format!("keep{suffix}({a} {sign} {b})")
            }
            LowOp::Add => format!("{a} + {b}"),
            LowOp::Sub => format!("{a} - {b}"),
            LowOp::Mul => format!("{a} * {b}"),
            LowOp::MulHigh if is_wide(ty) => {
                format!("bitcast<i64>(mul_high_wide(bitcast<u64>({a}), bitcast<u64>({b})))")
            }
            LowOp::MulHigh => format!("bitcast<i32>(mul_high(bitcast<u32>({a}), bitcast<u32>({b})))"),
            LowOp::Div | LowOp::DivTrunc => format!("{a} / {b}"),
            LowOp::Neg => format!("-{a}"),
            LowOp::Abs if is_float => format!("abs({a})"),
            LowOp::Abs => format!("select({a}, -{a}, {a} < {})", constant(ty, 0)),
            LowOp::Sqrt => format!("sqrt({a})"),
            LowOp::Floor => format!("floor({a})"),
            LowOp::Ceil => format!("ceil({a})"),
            LowOp::RoundEven => format!("round({a})"),
            LowOp::Fma => format!("fma({a}, {b}, {c})"),
            LowOp::MulError => format!("mul_error{suffix}({a}, {b}, {c})"),
            LowOp::Keep => format!("keep{suffix}({a})"),
            LowOp::Lt => format!("{a} < {b}"),
            LowOp::Le => format!("{a} <= {b}"),
            // Whether a number is one.
            LowOp::Eq if a == b && from == LowType::F32 => format!("!is_nan({a})"),
            LowOp::Eq if a == b && from == LowType::F64 => format!("!is_nan_double({a})"),
            LowOp::Eq => format!("{a} == {b}"),
            LowOp::LtUnsigned => format!("{} < {}", as_unsigned(&a), as_unsigned(&b)),
            LowOp::Select => format!("select({c}, {b}, {a})"),
            LowOp::And => format!("{a} & {b}"),
            LowOp::Or => format!("{a} | {b}"),
            LowOp::Xor if ty == LowType::Bool => format!("{a} != {b}"),
            LowOp::Xor => format!("{a} ^ {b}"),
            LowOp::Not => format!("!{a}"),
            LowOp::Shl(k) => format!("{a} << {k}u"),
            LowOp::Shr(k) => format!("{a} >> {k}u"),
            LowOp::ShrLogical(k) => format!("bitcast<{t}>({} >> {k}u)", as_unsigned(&a)),
            LowOp::ShlBy => format!("{a} << u32({b})"),
            LowOp::ShrLogicalBy => format!("bitcast<{t}>({} >> u32({b}))", as_unsigned(&a)),
            LowOp::ToBits | LowOp::FromBits => format!("bitcast<{t}>({a})"),
            LowOp::ToInt | LowOp::FromInt | LowOp::FromSigned => format!("{t}({a})"),
            LowOp::Convert if from == ty => a,
            LowOp::Convert => format!("{t}({a})"),
            LowOp::Truncate => {
                let (double, wide) =
                    (if from == LowType::F64 { "_double" } else { "" }, if is_wide(ty) { "_wide" } else { "" });
                format!("truncate{double}{wide}({a})")
            }
            LowOp::RoundTo(dtype) => {
                let narrow = if from == LowType::F64 { format!("odd({a})") } else { a };
                let kind = if dtype == DType::F16 { "f16" } else { "bf16" };
                format!("{kind}_value({kind}_bits({narrow}))")
            }
        }
    }
}

/// A constant of these bits. Of floats the bits are said: literals cannot be infinite, and decimals are not read exactly by all.
pub(crate) fn constant(ty: LowType, v: u64) -> String {
    match ty {
        LowType::F32 => format!("bitcast<f32>(0x{:x}u)", v as u32),
        LowType::F64 => format!("bitcast<f64>(0x{v:x}lu)"),
        LowType::I32 => format!("bitcast<i32>(0x{:x}u)", v as u32),
        LowType::I64 => format!("bitcast<i64>(0x{v:x}lu)"),
        LowType::Bool => if v & 1 == 1 { "true" } else { "false" }.to_string(),
    }
}
