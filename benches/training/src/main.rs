//! The training benchmark: times single steps of six networks on the CPU, one line of JSON each.
//!
//! `cargo xtask bench` runs this beside the same six in PyTorch (`xtask/bench/torch_train.py`).

#![forbid(unsafe_code)]

use clap::Parser;
use consort::prelude::*;
use training::Protocol;

/// Time single training steps of six networks: one line of JSON each
#[derive(Parser)]
struct Args {
    /// One step each, to see that they run
    #[arg(long)]
    quick: bool,

    /// Which networks; all six when none is named
    #[arg(value_name = "WORKLOAD", value_parser = clap::builder::PossibleValuesParser::new(training::names()))]
    workloads: Vec<String>,
}

fn main() -> Result<()> {
    let args = Args::parse();
    let protocol = if args.quick { Protocol::QUICK } else { Protocol::FULL };
    let device = consort::device::cpu();
    for (name, run) in training::WORKLOADS {
        if !args.workloads.is_empty() && !args.workloads.iter().any(|wanted| wanted == name) {
            continue;
        }
        let mut microseconds = run(&device, &protocol)?;
        microseconds.sort_by(f64::total_cmp);
        let line = serde_json::json!({
            "impl": "consort",
            "workload": name,
            "us_per_step": microseconds[microseconds.len() / 2],
            "min": microseconds[0],
            "max": microseconds[microseconds.len() - 1],
            "steps": microseconds.len(),
            "peak_bytes": device.memory()?.peak_bytes,
        });
        println!("{line}");
    }
    Ok(())
}
