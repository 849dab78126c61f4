//! `cargo xtask test`: the README's test command, and the one that CI runs.

use crate::process::{self, Result, cargo};
use crate::{setup, workspace};

/// What is tested a second time with a feature, the CUDA kernels emulated or a wgpu adapter: packages, features, targets.
const FEATURED: [(&str, &str, &str); 6] = [
    ("backend-cuda", "--features=emulator", "--all-targets"),
    ("gpu-check", "--features=emulator", "--all-targets"),
    ("cuda-custom-kernel", "--features=emulator", "--test=emulated"),
    ("digits", "--features=emulator", "--test=emulated"),
    ("digits", "--features=wgpu", "--test=adapter"),
    ("wgpu-any-gpu", "--features=wgpu", "--test=adapter"),
];

/// Run all tests of the workspace, doc tests too, and those of the CUDA kernels on the emulator and of wgpu on an adapter
///
/// Uses cargo-nextest where it is installed and `cargo test` elsewhere.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Only this package's tests (may be repeated)
    #[arg(short, long)]
    package: Vec<String>,

    /// Use `cargo test` even where cargo-nextest is installed
    #[arg(long)]
    no_nextest: bool,

    /// Only tests whose names contain one of these
    filter: Vec<String>,
}

pub(crate) fn run(args: &Args) -> Result {
    setup::prepare()?;
    let mut failures = Vec::new();
    let mut attempt = |command: Vec<&str>| {
        let separator = Some("--").filter(|_| !args.filter.is_empty());
        let command = command.into_iter().chain(separator).chain(args.filter.iter().map(String::as_str));
        failures.extend(process::run(&mut cargo(command)).err());
    };

    let (all, documented) = selection(args)?;
    let tests: &[&str] = if !args.no_nextest && setup::has_nextest() {
        &["nextest", "run", "--no-fail-fast", "--no-tests=pass"]
    } else {
        // `--all-targets`, or a target by name, leaves out the doc tests, which come next in both cases.
        &["test", "--no-fail-fast"]
    };
    let is_cargo = tests[0] == "test";
    attempt([tests, if is_cargo { &["--all-targets"] } else { &[] }, as_strs(&all).as_slice()].concat());
    for (package, features, target) in FEATURED {
        if args.package.is_empty() || args.package.iter().any(|name| name == package) {
            attempt([tests, &["-p", package, features, target]].concat());
        }
    }
    if !documented.is_empty() {
        attempt([&["test", "--no-fail-fast", "--doc"], as_strs(&documented).as_slice()].concat());
    }

    let lines: Vec<String> = failures.iter().map(ToString::to_string).collect();
    if lines.is_empty() { Ok(()) } else { Err(lines.join("\n       ").into()) }
}

/// The `-p` options of what is to be tested, and of that the packages that have doc tests.
fn selection(args: &Args) -> Result<(Vec<String>, Vec<String>)> {
    if args.package.is_empty() {
        return Ok((vec!["--workspace".into()], vec!["--workspace".into()]));
    }
    let packages = workspace::packages()?;
    let (mut all, mut documented) = (Vec::new(), Vec::new());
    for name in &args.package {
        let Some(package) = packages.iter().find(|package| package.name == *name) else {
            return Err(format!("no package is named `{name}` in this workspace").into());
        };
        all.push(format!("-p={name}"));
        if package.has_library() {
            documented.push(format!("-p={name}"));
        }
    }
    Ok((all, documented))
}

fn as_strs(options: &[String]) -> Vec<&str> {
    options.iter().map(String::as_str).collect()
}
