//! `cargo xtask`: the development commands, one file each.

#![forbid(unsafe_code)]

mod bench;
mod ci;
mod docs;
mod gpu_check;
mod parity;
mod process;
mod ptx;
mod setup;
mod test;
mod tidy;
mod workspace;

use clap::Parser;
use std::process::ExitCode;

/// Consort's development commands
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
enum Command {
    Bench(bench::Args),
    Ci(ci::Args),
    Docs(docs::Args),
    GpuCheck(gpu_check::Args),
    Parity(parity::Args),
    Ptx(ptx::Args),
    Setup(setup::Args),
    Test(test::Args),
    Tidy(tidy::Args),
}

fn main() -> ExitCode {
    let done = |()| ExitCode::SUCCESS;
    let outcome = match Command::parse() {
        Command::Bench(args) => bench::run(&args).map(done),
        Command::Ci(args) => ci::run(&args).map(done),
        Command::Docs(args) => docs::run(&args).map(done),
        Command::GpuCheck(args) => gpu_check::run(&args).map(done),
        Command::Parity(args) => parity::run(&args),
        Command::Ptx(args) => ptx::run(&args).map(done),
        Command::Setup(args) => setup::run(&args).map(done),
        Command::Test(args) => test::run(&args).map(done),
        Command::Tidy(args) => tidy::run(&args).map(done),
    };
    match outcome {
        Ok(code) => code,
        Err(error) => {
            eprintln!("xtask: {error}");
            ExitCode::FAILURE
        }
    }
}
