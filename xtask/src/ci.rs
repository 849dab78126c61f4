//! `cargo xtask ci`: everything that continuous integration checks, cheapest first.

use crate::process::{self, Result, cargo};
use std::time::{Duration, Instant};

/// The steps: a name and the cargo commands that make it up.
const STEPS: &[(&str, &[&str])] = &[
    ("fmt", &["fmt --all --check"]),
    ("tidy", &["xtask tidy"]),
    (
        "clippy",
        &[
            "clippy --workspace --all-targets -- -D warnings",
            "clippy -p backend-cuda -p gpu-check -p cuda-custom-kernel -p digits --all-targets --features backend-cuda/emulator,gpu-check/emulator,cuda-custom-kernel/emulator,digits/emulator -- -D warnings",
            "clippy -p consort -p parity -p digits -p wgpu-any-gpu --all-targets --features consort/wgpu,parity/wgpu,digits/wgpu,wgpu-any-gpu/wgpu -- -D warnings",
        ],
    ),
    ("test", &["xtask test"]),
    ("docs", &["xtask docs"]),
    (
        "features",
        &[
            "check -p consort --no-default-features",
            "check -p consort --features cuda",
            "check -p consort --features wgpu",
            "check -p consort --all-features",
        ],
    ),
    (
        "examples",
        &[
            "run --release -p digits -- --epochs 1 --out target/ci/digits",
            "run --release -p first-steps",
            "run --release -p cpu-custom-op",
            "run --release -p cuda-custom-kernel --features cuda,emulator",
            "run --release -p wgpu-any-gpu --features wgpu -- --epochs 2",
        ],
    ),
    (
        "parity",
        &[
            "xtask parity --device cpu --require cpu --check --report target/ci/parity",
            "xtask parity --device cpu --require cpu --cases 6000 --deferral always --report target/ci/parity-deferred",
            "xtask parity --device cpu --saboteur",
            "xtask parity --device cuda --require cuda --cases 2600 --report target/ci/parity-cuda",
            "xtask parity --device wgpu --require wgpu --cases 5000 --report target/ci/parity-wgpu",
            "xtask parity --device wgpu-modest --op * --cases 1000 --report target/ci/parity-wgpu-modest",
        ],
    ),
    ("ptx", &["xtask ptx"]),
    ("bench", &["xtask bench --quick"]),
];

/// Run everything that continuous integration checks, cheapest first
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Name the steps and their commands; run nothing
    #[arg(long)]
    list: bool,

    /// Only this step (may be repeated)
    #[arg(long, value_name = "STEP")]
    only: Vec<String>,

    /// Go on after a step that fails
    #[arg(long)]
    keep_going: bool,
}

#[derive(Clone, Copy, PartialEq)]
enum Outcome {
    Passed(Duration),
    Failed(Duration),
    NotRun,
}

pub(crate) fn run(args: &Args) -> Result {
    if let Some(name) = args.only.iter().find(|name| !STEPS.iter().any(|(step, _)| step == name)) {
        return Err(format!("no step is named `{name}`; `cargo xtask ci --list` names them").into());
    }
    let steps = STEPS.iter().filter(|(name, _)| args.only.is_empty() || args.only.iter().any(|only| only == name));
    if args.list {
        for (name, commands) in steps {
            println!("{name}");
            commands.iter().for_each(|command| println!("    cargo {command}"));
        }
        return Ok(());
    }

    let mut outcomes: Vec<(&str, Outcome)> = Vec::new();
    let mut stopped = false;
    for (name, commands) in steps {
        let outcome = if stopped { Outcome::NotRun } else { step(name, commands) };
        stopped |= matches!(outcome, Outcome::Failed(_)) && !args.keep_going;
        outcomes.push((name, outcome));
    }
    summarise(&outcomes)
}

fn step(name: &str, commands: &[&str]) -> Outcome {
    println!("\n== {name}");
    let start = Instant::now();
    let passed = commands.iter().all(|command| match process::run(&mut cargo(command.split(' '))) {
        Ok(()) => true,
        Err(error) => {
            eprintln!("xtask: {error}");
            false
        }
    });
    if passed { Outcome::Passed(start.elapsed()) } else { Outcome::Failed(start.elapsed()) }
}

fn summarise(outcomes: &[(&str, Outcome)]) -> Result {
    println!("\n== summary");
    let mut total = Duration::ZERO;
    for (name, outcome) in outcomes {
        let (word, time) = match outcome {
            Outcome::Passed(time) => ("passed", *time),
            Outcome::Failed(time) => ("FAILED", *time),
            Outcome::NotRun => ("not run", Duration::ZERO),
        };
        total += time;
        println!("{name:<10} {word:<8} {:>7.1} s", time.as_secs_f64());
    }
    println!("{:<10} {:<8} {:>7.1} s", "total", "", total.as_secs_f64());
    let failed: Vec<&str> =
        outcomes.iter().filter(|(_, o)| matches!(o, Outcome::Failed(_))).map(|(name, _)| *name).collect();
    if failed.is_empty() { Ok(()) } else { Err(format!("failed: {}", failed.join(", ")).into()) }
}
