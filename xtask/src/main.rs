//! `cargo xtask`: the development commands, one file each.

#![forbid(unsafe_code)]

mod bench;
mod ci;
mod docs;
mod process;
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
    Setup(setup::Args),
    Test(test::Args),
    Tidy(tidy::Args),
}

fn main() -> ExitCode {
    let outcome = match Command::parse() {
        Command::Bench(args) => bench::run(&args),
        Command::Ci(args) => ci::run(&args),
        Command::Docs(args) => docs::run(&args),
        Command::Setup(args) => setup::run(&args),
        Command::Test(args) => test::run(&args),
        Command::Tidy(args) => tidy::run(&args),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error}");
            ExitCode::FAILURE
        }
    }
}
