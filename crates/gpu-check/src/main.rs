//! One program that holds a GPU to the contracts, compares it with the emulator, and measures it.
//!
//! Needs nothing but the NVIDIA driver. Every section runs in a process of its own with a time budget, so that a fault or a
//! hang of one does not lose the others; what they find is in `results.json` and `results.md`. Exit status: 0 when all is
//! well, 1 for failures, 2 where there is no GPU to run on.

#![forbid(unsafe_code)]

mod corpus;
mod correct;
mod device;
mod faults;
mod markdown;
mod memory;
mod parent;
mod pytorch;
mod record;
mod report;
mod sections;
mod speed;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use clap::builder::PossibleValuesParser;

/// Hold a GPU to the contracts, compare it with the emulator, and measure it
///
/// Writes results.json and results.md. Every section has a process and a time budget of its own; all of them take less than
/// six minutes.
#[derive(Parser, Debug)]
#[command(name = "gpu-check")]
struct Args {
    /// Only these sections; all when none is named
    #[arg(long, value_name = "SECTION", value_delimiter = ',', value_parser = PossibleValuesParser::new(sections::names()))]
    sections: Vec<String>,

    /// Where the results go
    #[arg(long, value_name = "FOLDER", default_value = "results")]
    out: PathBuf,

    /// Which GPU
    #[arg(long, value_name = "N", default_value_t = 0)]
    device: usize,

    /// Run on the emulator with tiny sizes: a test of this program, not of a device
    #[arg(long)]
    emulated: bool,

    /// What the PyTorch scripts printed, for ratios
    #[arg(long, value_name = "FILE")]
    pytorch: Option<PathBuf>,

    /// Run one section in this process; its file goes to the folder of the results
    #[arg(long, value_name = "SECTION", hide = true, value_parser = PossibleValuesParser::new(sections::names()))]
    section: Option<String>,

    /// How long that section may take
    #[arg(long, value_name = "SECONDS", hide = true, default_value_t = 60.0)]
    budget: f64,
}

fn main() -> ExitCode {
    let args = Args::parse();
    let done = match &args.section {
        Some(name) => sections::run(name, &args),
        None => parent::run(&args),
    };
    done.unwrap_or_else(|reason| {
        eprintln!("gpu-check: {reason}");
        ExitCode::from(parent::NOTHING_TO_RUN_ON)
    })
}
