//! PTX from lowered expressions: one line per instruction, in the order of the lowering, nothing contracted.

use std::fmt::Write;

use tensor_core::DType;
use tensor_core::expr::lower::{Instr, LowOp, LowType, Lowered};

/// The PTX type of a register.
pub(crate) fn register_type(ty: LowType) -> &'static str {
    match ty {
        LowType::F32 => "f32",
        LowType::F64 => "f64",
        LowType::I32 => "b32",
        LowType::I64 => "b64",
        LowType::Bool => "pred",
    }
}

/// The type in arithmetic: integers are signed.
fn arithmetic(ty: LowType) -> &'static str {
    match ty {
        LowType::F32 => "f32",
        LowType::F64 => "f64",
        LowType::I32 => "s32",
        LowType::I64 => "s64",
        LowType::Bool => "pred",
    }
}

/// The untyped bits of a register.
fn bits(ty: LowType) -> &'static str {
    match ty {
        LowType::F32 | LowType::I32 => "b32",
        LowType::F64 | LowType::I64 => "b64",
        LowType::Bool => "pred",
    }
}

/// A piece of kernel text: declarations and instructions go to the place where it is pasted, in a scope of their own.
pub(crate) struct Body<'a> {
    /// The lowered expressions.
    pub(crate) lowered: &'a Lowered,
    /// The registers that hold the inputs, of the types [`LowType::of`] their dtypes.
    pub(crate) inputs: &'a [String],
    /// The registers that hold the run-time numbers.
    pub(crate) numbers: &'a [String],
    /// The registers that take the results.
    pub(crate) outputs: &'a [String],
}

impl Body<'_> {
    /// The text.
    pub(crate) fn text(&self) -> String {
        let mut text = String::from("    {\n");
        let instrs = &self.lowered.instrs;
        for (i, instr) in instrs.iter().enumerate() {
            let _ = writeln!(text, "        .reg .{} %v{i};", register_type(instr.ty));
        }
        for (i, instr) in instrs.iter().enumerate() {
            self.instruction(&mut text, i, instr);
        }
        for (output, &(register, _)) in self.outputs.iter().zip(&self.lowered.results) {
            let ty = instrs[register as usize].ty;
            let _ = writeln!(text, "        mov.{} {output}, %v{register};", register_type(ty));
        }
        text.push_str("    }\n");
        text
    }

    fn instruction(&self, text: &mut String, i: usize, instr: &Instr) {
        let Instr { op, ty, args } = *instr;
        let operand_type = self.lowered.instrs.get(args[0] as usize).map_or(ty, |operand| operand.ty);
        let [a, b, c] = args.map(|k| format!("%v{k}"));
        let d = format!("%v{i}");
        let (t, s) = (arithmetic(ty), arithmetic(operand_type));
        let is_float = matches!(ty, LowType::F32 | LowType::F64);
        let round = if is_float { ".rn" } else { "" };
        let line = match op {
            LowOp::Input(k) => format!("mov.{} {d}, {};", register_type(ty), self.inputs[k as usize]),
            LowOp::Param(k) => format!("mov.{} {d}, {};", register_type(ty), self.numbers[k as usize]),
            LowOp::Const(v) => constant(ty, v, &d),
            LowOp::Add => format!("add{round}.{t} {d}, {a}, {b};"),
            LowOp::Sub => format!("sub{round}.{t} {d}, {a}, {b};"),
            LowOp::Mul if is_float => format!("mul.rn.{t} {d}, {a}, {b};"),
            LowOp::Mul => format!("mul.lo.{t} {d}, {a}, {b};"),
            LowOp::MulHigh => format!("mul.hi.u{} {d}, {a}, {b};", width(ty)),
            LowOp::Div => format!("div.rn.{t} {d}, {a}, {b};"),
            LowOp::DivTrunc => format!("div.{t} {d}, {a}, {b};"),
            LowOp::Neg => format!("neg.{t} {d}, {a};"),
            LowOp::Abs => format!("abs.{t} {d}, {a};"),
            LowOp::Sqrt => format!("sqrt.rn.{t} {d}, {a};"),
            LowOp::Floor => format!("cvt.rmi.{t}.{t} {d}, {a};"),
            LowOp::Ceil => format!("cvt.rpi.{t}.{t} {d}, {a};"),
            LowOp::RoundEven => format!("cvt.rni.{t}.{t} {d}, {a};"),
            LowOp::Fma => format!("fma.rn.{t} {d}, {a}, {b}, {c};"),
            LowOp::MulError => format!("{{ .reg .{t} %t_m; neg.{t} %t_m, {c}; fma.rn.{t} {d}, {a}, {b}, %t_m; }}"),
            LowOp::Keep => format!("mov.{t} {d}, {a};"),
            LowOp::Lt => format!("setp.lt.{s} {d}, {a}, {b};"),
            LowOp::Le => format!("setp.le.{s} {d}, {a}, {b};"),
            LowOp::Eq if operand_type == LowType::Bool => {
                format!("{{ .reg .pred %t_m; xor.pred %t_m, {a}, {b}; not.pred {d}, %t_m; }}")
            }
            LowOp::Eq => format!("setp.eq.{s} {d}, {a}, {b};"),
            LowOp::LtUnsigned => format!("setp.lt.u{} {d}, {a}, {b};", width(operand_type)),
            LowOp::Select if ty == LowType::Bool => format!(
                "{{ .reg .pred %t_m, %t_n; and.pred %t_m, {a}, {b}; not.pred %t_n, {a}; and.pred %t_n, %t_n, {c}; or.pred {d}, %t_m, %t_n; }}"
            ),
            LowOp::Select => format!("selp.{} {d}, {b}, {c}, {a};", register_type(ty)),
            LowOp::And => format!("and.{} {d}, {a}, {b};", bits(ty)),
            LowOp::Or => format!("or.{} {d}, {a}, {b};", bits(ty)),
            LowOp::Xor => format!("xor.{} {d}, {a}, {b};", bits(ty)),
            LowOp::Not => format!("not.pred {d}, {a};"),
            LowOp::Shl(k) => format!("shl.{} {d}, {a}, {k};", bits(ty)),
            LowOp::Shr(k) => format!("shr.{t} {d}, {a}, {k};"),
            LowOp::ShrLogical(k) => format!("shr.u{} {d}, {a}, {k};", width(ty)),
            LowOp::ShlBy | LowOp::ShrLogicalBy => {
                let shift =
                    if op == LowOp::ShlBy { format!("shl.{}", bits(ty)) } else { format!("shr.u{}", width(ty)) };
                match ty {
                    LowType::I64 => format!("{{ .reg .b32 %t_m; cvt.u32.u64 %t_m, {b}; {shift} {d}, {a}, %t_m; }}"),
                    _ => format!("{shift} {d}, {a}, {b};"),
                }
            }
            LowOp::ToBits | LowOp::FromBits => format!("mov.{} {d}, {a};", bits(ty)),
            LowOp::ToInt => format!("cvt.rzi.{t}.{s} {d}, {a};"),
            LowOp::FromInt | LowOp::FromSigned => format!("cvt.rn.{t}.{s} {d}, {a};"),
            LowOp::Convert if operand_type == ty => format!("mov.{} {d}, {a};", register_type(ty)),
            LowOp::Convert if ty == LowType::F32 => format!("cvt.rn.f32.f64 {d}, {a};"),
            LowOp::Convert => format!("cvt.{t}.{s} {d}, {a};"),
            // The conversion saturates; what NaN gives is left open for wide integers.
            LowOp::Truncate => format!(
                "{{ .reg .pred %t_m; setp.nan.{s} %t_m, {a}, {a}; cvt.rzi.{t}.{s} {d}, {a}; selp.{} {d}, 0, {d}, %t_m; }}",
                register_type(ty)
            ),
            LowOp::RoundTo(dtype) => round_to(dtype, operand_type, &a, &d),
        };
        let _ = writeln!(text, "        {line}");
    }
}

fn width(ty: LowType) -> u32 {
    if matches!(ty, LowType::F64 | LowType::I64) { 64 } else { 32 }
}

/// A register set to constant bits.
fn constant(ty: LowType, v: u64, d: &str) -> String {
    match ty {
        LowType::F32 => format!("mov.f32 {d}, 0f{:08X};", v as u32),
        LowType::F64 => format!("mov.f64 {d}, 0d{v:016X};"),
        LowType::I32 => format!("mov.b32 {d}, {};", v as u32 as i32),
        LowType::I64 => format!("mov.b64 {d}, {};", v as i64),
        LowType::Bool => format!("{{ .reg .b32 %t_k; mov.b32 %t_k, {}; setp.ne.b32 {d}, %t_k, 0; }}", v & 1),
    }
}

/// The nearest number of 16 bits, as an f32.
pub(crate) fn round_to(dtype: DType, from: LowType, a: &str, d: &str) -> String {
    match (dtype, from) {
        (DType::F16, LowType::F64) => {
            format!("{{ .reg .b16 %t_h; cvt.rn.f16.f64 %t_h, {a}; cvt.f32.f16 {d}, %t_h; }}")
        }
        (DType::F16, _) => format!("{{ .reg .b16 %t_h; cvt.rn.f16.f32 %t_h, {a}; cvt.f32.f16 {d}, %t_h; }}"),
        // Through an f32 rounded to odd, which does not round twice.
        (_, LowType::F64) => format!(
            "{{ .reg .f32 %t_n; .reg .f64 %t_m; .reg .b32 %t_b; .reg .pred %t_q; cvt.rz.f32.f64 %t_n, {a}; cvt.f64.f32 %t_m, %t_n; \
             setp.neu.f64 %t_q, %t_m, {a}; mov.b32 %t_b, %t_n; @%t_q or.b32 %t_b, %t_b, 1; mov.b32 %t_n, %t_b; {} }}",
            bf16_rounded("%t_n", d)
        ),
        _ => bf16_rounded(a, d),
    }
}

/// The nearest bf16 of an f32 as an f32, ties to even: half a unit is added to the bits, which then lose their lower half.
fn bf16_rounded(a: &str, d: &str) -> String {
    format!(
        "{{ .reg .b32 %t_x, %t_y; .reg .pred %t_p; mov.b32 %t_x, {a}; bfe.u32 %t_y, %t_x, 16, 1; add.s32 %t_y, %t_y, 0x7FFF; \
         add.s32 %t_y, %t_y, %t_x; and.b32 %t_y, %t_y, 0xFFFF0000; setp.nan.f32 %t_p, {a}, {a}; selp.b32 %t_y, 0x7FC00000, %t_y, %t_p; \
         mov.b32 {d}, %t_y; }}"
    )
}

/// Loads the element at an address into a register of the type that its dtype is computed in.
pub(crate) fn load(dtype: DType, d: &str, address: &str) -> String {
    match dtype {
        DType::F64 => format!("    ld.global.f64 {d}, [{address}];\n"),
        DType::F32 => format!("    ld.global.f32 {d}, [{address}];\n"),
        DType::F16 => format!("    {{ .reg .b16 %t_h; ld.global.b16 %t_h, [{address}]; cvt.f32.f16 {d}, %t_h; }}\n"),
        DType::BF16 => format!(
            "    {{ .reg .b16 %t_h; .reg .b32 %t_w; ld.global.b16 %t_h, [{address}]; cvt.u32.u16 %t_w, %t_h; shl.b32 %t_w, %t_w, 16; \
             mov.b32 {d}, %t_w; }}\n"
        ),
        DType::I64 => format!("    ld.global.b64 {d}, [{address}];\n"),
        DType::I32 => format!("    ld.global.b32 {d}, [{address}];\n"),
        DType::U8 => format!("    ld.global.u8 {d}, [{address}];\n"),
        DType::Bool => {
            format!("    {{ .reg .b32 %t_w; ld.global.u8 %t_w, [{address}]; setp.ne.b32 {d}, %t_w, 0; }}\n")
        }
    }
}

/// Loads the element at an address where a predicate holds, else zero.
pub(crate) fn load_if(dtype: DType, p: &str, d: &str, address: &str) -> String {
    let zero = constant(LowType::of(dtype), 0, d);
    match dtype {
        DType::F16 => format!(
            "{{ .reg .b16 %t_h; mov.b16 %t_h, 0; @{p} ld.global.b16 %t_h, [{address}]; cvt.f32.f16 {d}, %t_h; }}"
        ),
        DType::BF16 => format!(
            "{{ .reg .b16 %t_h; .reg .b32 %t_w; mov.b16 %t_h, 0; @{p} ld.global.b16 %t_h, [{address}]; \
             cvt.u32.u16 %t_w, %t_h; shl.b32 %t_w, %t_w, 16; mov.b32 {d}, %t_w; }}"
        ),
        DType::U8 => format!("{zero} @{p} ld.global.u8 {d}, [{address}];"),
        DType::F64 | DType::F32 | DType::I64 | DType::I32 | DType::Bool => {
            format!("{zero} @{p} ld.global.{} {d}, [{address}];", register_type(LowType::of(dtype)))
        }
    }
}

/// Stores a register of the type that a dtype is computed in as an element at an address.
pub(crate) fn store(dtype: DType, address: &str, a: &str) -> String {
    match dtype {
        DType::F64 => format!("    st.global.f64 [{address}], {a};\n"),
        DType::F32 => format!("    st.global.f32 [{address}], {a};\n"),
        DType::F16 => format!("    {{ .reg .b16 %t_h; cvt.rn.f16.f32 %t_h, {a}; st.global.b16 [{address}], %t_h; }}\n"),
        DType::BF16 => format!(
            "    {{ .reg .f32 %t_f; .reg .b32 %t_w; .reg .b16 %t_h; {} mov.b32 %t_w, %t_f; shr.u32 %t_w, %t_w, 16; cvt.u16.u32 %t_h, %t_w; \
             st.global.b16 [{address}], %t_h; }}\n",
            bf16_rounded(a, "%t_f")
        ),
        DType::I64 => format!("    st.global.b64 [{address}], {a};\n"),
        DType::I32 => format!("    st.global.b32 [{address}], {a};\n"),
        DType::U8 => format!("    st.global.u8 [{address}], {a};\n"),
        DType::Bool => {
            format!("    {{ .reg .b32 %t_w; selp.b32 %t_w, 1, 0, {a}; st.global.u8 [{address}], %t_w; }}\n")
        }
    }
}
