//! `ptx-emulator`: run, check and list PTX files.
#![forbid(unsafe_code)]

mod cli;

use std::process::ExitCode;

const USAGE: &str = "\
Runs PTX on the CPU and finds what is wrong with it.

usage:
  ptx-emulator run FILE.ptx --entry NAME --grid X[,Y,Z] --block X[,Y,Z] [options]
  ptx-emulator check FILE.ptx [--strict]
  ptx-emulator list FILE.ptx

options of run:
  --arg SPEC       one for each parameter of the kernel, in order:
                     in.npy           a buffer that holds the file's numbers
                     f32[1024]        a buffer of zeros (f64, f16, bf16, i8 to i64, u8 to u64)
                     uninit:f32[64]   a buffer that counts as never written
                     null             the address 0
                     i32:7 f32:1e-5   a number
  --save N=out.npy write parameter N's buffer after the run, counted from 0 (bf16 as u16)
  --shared BYTES   dynamic shared memory of a block
  --order ORDER    ascending, descending or seeded
  --seed S         the seed of --order seeded, which it implies
  --perturb S      approximate instructions err within their bounds, drawn from this seed
  --mma MODE       ieee or hopper
  --fuel N         instructions of warps before the kernel counts as hanging
  --memory BYTES   global memory
  --allow CHECK    switch a check off: races, uninitialised-memory, uninitialised-registers,
                   exited-at-barrier, division-by-zero
  --strict         refuse floating arithmetic without a rounding, and what the target has not;
                   report any read of a register that was never written
  --stats          print counts
  --json           print the finding and the counts as JSON

exit status: 0 clean, 1 a finding, 2 bad usage or input";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match cli::run(&args) {
        Ok(clean) => {
            if clean {
                ExitCode::SUCCESS
            } else {
                ExitCode::from(1)
            }
        }
        Err(message) => {
            eprintln!("ptx-emulator: {message}");
            ExitCode::from(2)
        }
    }
}
