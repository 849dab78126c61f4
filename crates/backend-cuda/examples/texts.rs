//! Writes the text of every kernel that the suite uses into a folder, for an assembler to look at (`cargo xtask ptx`).
//!
//! The emulated device is of the newest kind that kernels tell apart, then of the oldest, so that each variant is written.

use std::path::PathBuf;

use backend_cuda::{Emulated, emulated};
use conformance::suite;

/// Enough for every kernel; which cases they are is fixed.
const N_CASES: usize = 2500;

fn main() -> Result<(), String> {
    let mut args = std::env::args().skip(1);
    let folder = PathBuf::from(args.next().ok_or("usage: texts FOLDER")?);
    std::fs::create_dir_all(&folder).map_err(|e| format!("cannot make {}: {e}", folder.display()))?;
    for (seed, capability) in [(0, (9, 0)), (1, (7, 5))] {
        let device = emulated(&Emulated { capability, texts: Some(folder.clone()), ..Emulated::default() });
        let report = suite::run(&device, &suite::Options { cases: N_CASES, seed, ..Default::default() }, |_, _| {})?;
        if !report.failures.is_empty() {
            return Err(report.to_string());
        }
    }
    Ok(())
}
