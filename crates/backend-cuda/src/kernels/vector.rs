//! Elements in vectors: accesses of up to 16 bytes, and the kernel that maps over operands without gaps.

use std::fmt::Write;

use smallvec::SmallVec;
use tensor_core::expr::lower::{LowType, Lowered};
use tensor_core::plan::Plan;
use tensor_core::{DType, Result};

use super::{Text, names};
use crate::driver::Address;
use crate::emit::{self, Body};

/// The widest access.
const VECTOR_BYTES: usize = 16;
/// So many nodes of the expressions in all lanes together: longer bodies get fewer lanes, so that registers suffice.
const BODY_NODES: usize = 256;

/// How many elements a thread takes at once: 1 where operands have gaps or lie at odd addresses.
pub(crate) fn lanes(plan: &Plan, operands: &[(DType, Address)], results: &[(DType, Address)], nodes: usize) -> usize {
    let is_dense = plan.rank() == 1 && plan.strides.iter().all(|strides| matches!(strides[0], 0 | 1));
    if !is_dense || plan.len() < 8 {
        return 1;
    }
    let dense = operands.iter().zip(&plan.strides).filter(|(_, strides)| strides[0] == 1).map(|(&operand, _)| operand);
    let all: SmallVec<[(DType, Address); 8]> = dense.chain(results.iter().copied()).collect();
    widest(all, nodes)
}

/// How many elements of all these operands, all without gaps, a thread takes at once.
pub(crate) fn widest(operands: impl IntoIterator<Item = (DType, Address)>, nodes: usize) -> usize {
    let mut lanes = (BODY_NODES / nodes.max(1)).clamp(1, 8);
    for (dtype, address) in operands {
        let size = dtype.size_bytes();
        lanes = lanes.min(VECTOR_BYTES / size);
        while lanes > 1 && !address.is_multiple_of((lanes.next_power_of_two() * size) as u64) {
            lanes /= 2;
        }
    }
    if lanes.is_power_of_two() { lanes } else { lanes.next_power_of_two() / 2 }
}

/// Loads as many consecutive elements as there are registers.
pub(crate) fn load(dtype: DType, registers: &[String], address: &str) -> String {
    let (n, size) = (registers.len(), dtype.size_bytes());
    if n == 1 {
        return emit::load(dtype, &registers[0], address);
    }
    if size >= 4 {
        let ty = emit::register_type(LowType::of(dtype));
        return format!("    ld.global.v{n}.{ty} {{{}}}, [{address}];\n", registers.join(", "));
    }
    let mut text = String::from("    {\n        .reg .b32 %t_w, %t_w0, %t_w1, %t_w2, %t_w3; .reg .b16 %t_h, %t_l;\n");
    let _ = match n * size {
        2 => writeln!(text, "        ld.global.b16 %t_h, [{address}]; cvt.u32.u16 %t_w0, %t_h;"),
        4 => writeln!(text, "        ld.global.b32 %t_w0, [{address}];"),
        8 => writeln!(text, "        ld.global.v2.b32 {{%t_w0, %t_w1}}, [{address}];"),
        _ => writeln!(text, "        ld.global.v4.b32 {{%t_w0, %t_w1, %t_w2, %t_w3}}, [{address}];"),
    };
    for (i, x) in registers.iter().enumerate() {
        let (word, bit) = (format!("%t_w{}", i * size / 4), i * size % 4 * 8);
        let _ = match dtype {
            DType::BF16 if bit == 0 => writeln!(text, "        shl.b32 %t_w, {word}, 16; mov.b32 {x}, %t_w;"),
            DType::BF16 => writeln!(text, "        and.b32 %t_w, {word}, 0xFFFF0000; mov.b32 {x}, %t_w;"),
            DType::F16 if bit == 0 => writeln!(text, "        mov.b32 {{%t_l, %t_h}}, {word}; cvt.f32.f16 {x}, %t_l;"),
            DType::F16 => writeln!(text, "        cvt.f32.f16 {x}, %t_h;"),
            DType::Bool => {
                writeln!(text, "        and.b32 %t_w, {word}, {}; setp.ne.b32 {x}, %t_w, 0;", 0xFFu32 << bit)
            }
            _ => writeln!(text, "        bfe.u32 {x}, {word}, {bit}, 8;"),
        };
    }
    text + "    }\n"
}

/// Stores as many consecutive elements as there are registers.
pub(crate) fn store(dtype: DType, address: &str, registers: &[String]) -> String {
    let (n, size) = (registers.len(), dtype.size_bytes());
    if n == 1 {
        return emit::store(dtype, address, &registers[0]);
    }
    if size >= 4 {
        let ty = emit::register_type(LowType::of(dtype));
        return format!("    st.global.v{n}.{ty} [{address}], {{{}}};\n", registers.join(", "));
    }
    let mut text = String::from(
        "    {\n        .reg .b32 %t_w, %t_w0, %t_w1, %t_w2, %t_w3; .reg .b16 %t_h, %t_l; .reg .f32 %t_f;\n",
    );
    for (i, x) in registers.iter().enumerate() {
        let (word, bit) = (format!("%t_w{}", i * size / 4), i * size % 4 * 8);
        let rounded = || emit::round_to(DType::BF16, LowType::F32, x, "%t_f");
        let _ = match dtype {
            DType::BF16 if bit == 0 => {
                writeln!(text, "        {} mov.b32 %t_w, %t_f; shr.u32 {word}, %t_w, 16;", rounded())
            }
            DType::BF16 => writeln!(text, "        {} mov.b32 %t_w, %t_f; or.b32 {word}, {word}, %t_w;", rounded()),
            DType::F16 if bit == 0 => writeln!(text, "        cvt.rn.f16.f32 %t_l, {x};"),
            DType::F16 => writeln!(text, "        cvt.rn.f16.f32 %t_h, {x}; mov.b32 {word}, {{%t_l, %t_h}};"),
            DType::Bool if bit == 0 => writeln!(text, "        selp.b32 {word}, 1, 0, {x};"),
            DType::Bool => {
                writeln!(text, "        selp.b32 %t_w, {}, 0, {x}; or.b32 {word}, {word}, %t_w;", 1u32 << bit)
            }
            _ if bit == 0 => writeln!(text, "        and.b32 {word}, {x}, 255;"),
            _ => writeln!(text, "        bfi.b32 {word}, {x}, {word}, {bit}, 8;"),
        };
    }
    let _ = match n * size {
        2 => writeln!(text, "        cvt.u16.u32 %t_h, %t_w0; st.global.b16 [{address}], %t_h;"),
        4 => writeln!(text, "        st.global.b32 [{address}], %t_w0;"),
        8 => writeln!(text, "        st.global.v2.b32 [{address}], {{%t_w0, %t_w1}};"),
        _ => writeln!(text, "        st.global.v4.b32 [{address}], {{%t_w0, %t_w1, %t_w2, %t_w3}};"),
    };
    text + "    }\n"
}

/// What a thread does with `lanes` elements from `%i` on; operands with a register in `singles` are one element for all.
pub(crate) struct Lanes<'a> {
    pub(crate) lowered: &'a Lowered,
    pub(crate) dtypes: &'a [DType],
    /// Address registers of the results and of the operands; they are left as they are.
    pub(crate) to: &'a [String],
    pub(crate) from: &'a [String],
    pub(crate) numbers: &'a [String],
    pub(crate) singles: &'a [Option<String>],
}

impl Lanes<'_> {
    /// Loads, bodies, stores, in a scope of their own.
    pub(crate) fn text(&self, lanes: usize) -> String {
        let mut text = String::from("    {\n");
        let declare = |text: &mut String, dtype: DType, name: &str| {
            let _ = writeln!(text, "        .reg .{} {name};", emit::register_type(LowType::of(dtype)));
        };
        let at = |text: &mut String, address: &str, dtype: DType| {
            let _ =
                writeln!(text, "    mul.wide.u32 %t_at, %i, {}; add.s64 %t_at, {address}, %t_at;", dtype.size_bytes());
        };
        text.push_str("        .reg .b64 %t_at;\n");
        let mut inputs = vec![Vec::new(); lanes];
        for (k, &dtype) in self.dtypes.iter().enumerate() {
            if let Some(single) = &self.singles[k] {
                inputs.iter_mut().for_each(|lane| lane.push(single.clone()));
                continue;
            }
            let registers = names(&format!("x{k}_"), lanes);
            registers.iter().for_each(|register| declare(&mut text, dtype, register));
            at(&mut text, &self.from[k], dtype);
            text.push_str(&load(dtype, &registers, "%t_at"));
            inputs.iter_mut().zip(registers).for_each(|(lane, register)| lane.push(register));
        }
        let results = &self.lowered.results;
        let outputs: Vec<Vec<String>> = (0..results.len()).map(|k| names(&format!("y{k}_"), lanes)).collect();
        for (registers, &(_, dtype)) in outputs.iter().zip(results) {
            registers.iter().for_each(|register| declare(&mut text, dtype, register));
        }
        for (lane, inputs) in inputs.iter().enumerate() {
            let outputs: Vec<String> = outputs.iter().map(|registers| registers[lane].clone()).collect();
            text += &Body { lowered: self.lowered, inputs, numbers: self.numbers, outputs: &outputs }.text();
        }
        for ((registers, &(_, dtype)), to) in outputs.iter().zip(results).zip(self.to) {
            at(&mut text, to, dtype);
            text += &store(dtype, "%t_at", registers);
        }
        text + "    }\n"
    }
}

/// The module of a map over dense operands: slots are the vectors, the threads, results, operands, numbers.
pub(crate) fn text(
    name: &str,
    lowered: &Lowered,
    dtypes: &[DType],
    is_single: &[bool],
    lanes: usize,
) -> Result<String> {
    let mut kernel = Text::of_elements();
    let _ = kernel.slots.next();
    let (to, from) = (names("to", lowered.results.len()), names("from", dtypes.len()));
    to.iter().chain(&from).for_each(|register| kernel.wide(register));
    let numbers = names("number", lowered.params.len());
    for (register, param) in numbers.iter().zip(&lowered.params) {
        kernel.number(LowType::of(param.dtype), register);
    }
    let mut singles = Vec::new();
    for ((k, &dtype), from) in dtypes.iter().enumerate().zip(&from) {
        let single = is_single[k].then(|| format!("%single{k}"));
        if let Some(register) = &single {
            kernel.value(dtype, register);
            kernel.push(&emit::load(dtype, register, from));
        }
        singles.push(single);
    }
    let start = kernel.take();
    let body = Lanes { lowered, dtypes, to: &to, from: &from, numbers: &numbers, singles: &singles };
    let (vector, element) = (body.text(lanes), body.text(1));
    Ok(kernel
        .skeleton(include_str!("../../kernels/vector.ptx"), name)
        .put("LANES", lanes.to_string())
        .put("LAST", (lanes - 1).to_string())
        .put("START", start)
        .put("VECTOR", vector)
        .put("ELEMENT", element)
        .finish())
}
