//! What the device can do at most: a copy by the driver, and arithmetic on registers alone.

use std::fmt::Write;

use backend_cuda::driver::Launch;
use tensor_core::{Error, Result};

use super::seconds;
use crate::device::Subject;

/// Chains of operations that do not wait for each other, in every thread.
const N_CHAINS: usize = 8;
/// Operations of each chain in one round of the loop.
const N_UNROLLED: usize = 8;

/// What makes products.
pub(crate) struct Unit {
    pub(crate) title: &'static str,
    /// The products that it bounds.
    pub(crate) products: &'static str,
    pub(crate) capability: (u32, u32),
    instruction: Instruction,
}

#[derive(Clone, Copy)]
enum Instruction {
    /// A fused multiply-add of each thread.
    Fma(&'static str),
    /// A product of a warp: shape and types, registers of A and B, the multiply-adds that it makes.
    Mma { types: &'static str, a: usize, b: usize, terms: usize },
}

pub(crate) const UNITS: &[Unit] = &[
    Unit { title: "f32, fma", products: "f32", capability: (7, 5), instruction: Instruction::Fma("f32") },
    Unit { title: "f64, fma", products: "f64", capability: (7, 5), instruction: Instruction::Fma("f64") },
    Unit {
        title: "bf16, mma.sync summed in f32",
        products: "bf16",
        capability: (8, 0),
        instruction: Instruction::Mma { types: "m16n8k16.row.col.f32.bf16.bf16.f32", a: 4, b: 2, terms: 16 * 8 * 16 },
    },
    Unit {
        title: "f16, mma.sync summed in f32",
        products: "f16",
        capability: (8, 0),
        instruction: Instruction::Mma { types: "m16n8k16.row.col.f32.f16.f16.f32", a: 4, b: 2, terms: 16 * 8 * 16 },
    },
    Unit {
        title: "tf32, mma.sync summed in f32",
        products: "tf32",
        capability: (8, 0),
        instruction: Instruction::Mma { types: "m16n8k8.row.col.f32.tf32.tf32.f32", a: 4, b: 2, terms: 16 * 8 * 8 },
    },
];

/// Operations a second: two per multiply-add.
pub(crate) fn rate(subject: &Subject, unit: &Unit) -> Result<f64> {
    let driver = &*subject.driver;
    let function = driver.load(&text(unit.instruction), "ceiling")?;
    let to = driver.alloc(256 * 4)?.ok_or_else(|| Error::out_of_memory("ceiling", "no room for 1 KiB"))?;
    let (n_blocks, n_rounds) = subject.size((driver.properties().n_multiprocessors * 8, 2048u32), (1, 2));
    let args: Vec<u8> = to.to_ne_bytes().into_iter().chain(n_rounds.to_ne_bytes()).collect();
    let launch = Launch { function, grid: [n_blocks, 1, 1], block: [256, 1, 1], shared_bytes: 0, args: &args };
    let time = seconds(subject, || driver.launch(launch))?;
    driver.free(to)?;
    let per_block = match unit.instruction {
        Instruction::Fma(_) => 256,
        Instruction::Mma { terms, .. } => 8 * terms,
    };
    let operations = N_CHAINS * N_UNROLLED * per_block * 2;
    Ok(operations as f64 * f64::from(n_rounds) * f64::from(n_blocks) / time)
}

/// Bytes a second that a copy by the driver moves, those read and those written.
pub(crate) fn copy_rate(subject: &Subject) -> Result<f64> {
    let (driver, n_bytes) = (&*subject.driver, subject.size(1usize << 29, 1 << 12));
    let full = || Error::out_of_memory("ceiling", "no room for two blocks of 512 MiB");
    let (from, to) = (driver.alloc(n_bytes)?.ok_or_else(full)?, driver.alloc(n_bytes)?.ok_or_else(full)?);
    driver.upload(from, &vec![7; n_bytes])?;
    let time = seconds(subject, || driver.copy(from, to, n_bytes))?;
    driver.free(from)?;
    driver.free(to)?;
    Ok(2.0 * n_bytes as f64 / time)
}

/// A loop of nothing but that instruction. Its results are stored at the end, so that they are made.
fn text(instruction: Instruction) -> String {
    let (ty, per_chain, target) = match instruction {
        Instruction::Fma(ty) => (ty, 1, 75),
        Instruction::Mma { .. } => ("f32", 4, 80),
    };
    let n = N_CHAINS * per_chain;
    let zero = if ty == "f64" { "0d0000000000000000" } else { "0f00000000" };
    let mut text = format!(
        ".version 7.8\n.target sm_{target}\n.address_size 64\n\n.visible .entry ceiling(.param .u64 to, .param .u32 rounds)\n\
         .maxntid 256, 1, 1\n{{\n    .reg .pred %more;\n    .reg .b32 %left, %thread, %bits, %a<4>, %b<2>;\n    .reg .b64 %to;\n    \
         .reg .{ty} %x, %c<{n}>;\n    .reg .f32 %sum;\n    ld.param.u64 %to, [to];\n    ld.param.u32 %left, [rounds];\n    \
         mov.u32 %thread, %tid.x;\n    mul.wide.u32 %to, %thread, 4;\n    {{ .reg .b64 %base; ld.param.u64 %base, [to]; add.s64 %to, %to, %base; }}\n    \
         cvt.rn.{ty}.u32 %x, %thread;\n    and.b32 %bits, %thread, 63;\n"
    );
    let mut line = |line: String| {
        let _ = writeln!(text, "    {line}");
    };
    // Small subnormal factors: what they are does not matter, but that the compiler does not know them.
    (0..4).for_each(|i| line(format!("add.u32 %a{i}, %bits, {i};")));
    (0..2).for_each(|i| line(format!("add.u32 %b{i}, %bits, {i};")));
    (0..n).for_each(|i| line(format!("mov.{ty} %c{i}, {zero};")));
    line("$round:".into());
    for chain in (0..N_UNROLLED).flat_map(|_| 0..N_CHAINS) {
        line(match instruction {
            Instruction::Fma(ty) => format!("fma.rn.{ty} %c{chain}, %c{chain}, %x, %x;"),
            Instruction::Mma { types, a, b, .. } => {
                let list = |prefix: &str, first: usize, n: usize| {
                    (first..first + n).map(|i| format!("%{prefix}{i}")).collect::<Vec<_>>().join(", ")
                };
                let (sums, a, b) = (list("c", 4 * chain, 4), list("a", 0, a), list("b", 0, b));
                format!("mma.sync.aligned.{types} {{{sums}}}, {{{a}}}, {{{b}}}, {{{sums}}};")
            }
        });
    }
    line("sub.u32 %left, %left, 1;".into());
    line("setp.ne.u32 %more, %left, 0;".into());
    line("@%more bra $round;".into());
    (1..n).for_each(|i| line(format!("add.{ty} %c0, %c0, %c{i};")));
    line(if ty == "f64" { "cvt.rn.f32.f64 %sum, %c0;".into() } else { "mov.f32 %sum, %c0;".into() });
    line("st.global.f32 [%to], %sum;".into());
    line("ret;".into());
    text + "}\n"
}
