//! Writes the text of every kernel that the suite uses into a folder, for an assembler to look at (`cargo xtask ptx`).
//!
//! Emulated devices are of the newest kind that kernels tell apart, then of the oldest, so that each variant is written.
//! What only large problems choose is asked for by name: cases are small.

use std::path::PathBuf;

use backend_cuda::{Choice, Emulated, Rung, emulated};
use conformance::suite;

/// Some cases on a device of some kind: enough for every kernel; which cases they are is fixed.
struct Run {
    capability: (u32, u32),
    matmul: Option<Choice>,
    tf32: bool,
    pattern: Option<&'static str>,
    cases: usize,
    seed: u64,
}

const fn everything(capability: (u32, u32), seed: u64) -> Run {
    Run { capability, matmul: None, tf32: false, pattern: None, cases: 2500, seed }
}

const fn products(rung: Rung, parts: usize) -> Run {
    let (matmul, pattern) = (Some(Choice { rung, parts }), Some("matmul*"));
    Run { capability: (9, 0), matmul, tf32: false, pattern, cases: 200, seed: 2 }
}

const fn convolutions(rung: Rung) -> Run {
    Run { pattern: Some("conv*"), ..products(rung, 1) }
}

const ATTENTION: Run = Run { pattern: Some("attention"), cases: 400, seed: 3, ..everything((9, 0), 0) };

const RUNS: [Run; 15] = [
    everything((9, 0), 0),
    everything((7, 5), 1),
    products(Rung::Tile { is_small: false }, 1),
    products(Rung::Tile { is_small: false }, 3),
    products(Rung::Tile { is_small: true }, 1),
    products(Rung::Tile { is_small: true }, 3),
    products(Rung::Mma, 1),
    products(Rung::Mma, 3),
    convolutions(Rung::Tile { is_small: false }),
    convolutions(Rung::Tile { is_small: true }),
    convolutions(Rung::Mma),
    Run { tf32: true, ..products(Rung::Mma, 1) },
    Run { tf32: true, ..products(Rung::Mma, 3) },
    Run { tf32: true, ..convolutions(Rung::Mma) },
    ATTENTION,
];

fn main() -> Result<(), String> {
    let mut args = std::env::args().skip(1);
    let folder = PathBuf::from(args.next().ok_or("usage: texts FOLDER")?);
    std::fs::create_dir_all(&folder).map_err(|e| format!("cannot make {}: {e}", folder.display()))?;
    for Run { capability, matmul, tf32, pattern, cases, seed } in RUNS {
        let texts = Some(folder.clone());
        let device = emulated(&Emulated { capability, matmul, tf32, texts, ..Emulated::default() });
        let options = suite::Options { cases, seed, pattern: pattern.map(String::from), ..Default::default() };
        let report = suite::run(&device, &options, |_, _| {})?;
        if !report.failures.is_empty() {
            return Err(report.to_string());
        }
    }
    Ok(())
}
