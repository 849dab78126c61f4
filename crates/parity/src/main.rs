//! `cargo xtask parity`: runs the suite of the ops' contracts on every device and reports what it saw.
//!
//! Exit status: 0 when all is well, 1 for failures, 2 for a request that cannot be met.

#![forbid(unsafe_code)]

mod args;
mod devices;
mod modules;
mod pages;
mod print;
mod saboteur;
mod summary;

use std::path::Path;
use std::process::ExitCode;

use args::Args;
use clap::Parser;
use conformance::suite::{self, Case, Report};
use devices::Selection;
use indicatif::{ProgressBar, ProgressStyle};

/// Whether all is well, or why the request cannot be met.
type Outcome<T = bool> = Result<T, String>;

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(reason) => {
            eprintln!("parity: {reason}");
            ExitCode::from(2)
        }
    }
}

fn run(args: &Args) -> Outcome {
    if args.list {
        return print::list(args.op.as_deref());
    }
    if args.docs {
        return pages::ops(args.bless);
    }
    args.deferral().set();
    if let Some(case) = &args.replay {
        // Before anything is probed: what was typed is wrong on every device.
        let case: Case = case.parse()?;
        suite::subject(&case.subject)
            .ok_or_else(|| format!("no op is called {:?}; `--list` names them", case.subject))?;
        return replay(&devices::select(&args.device, &args.require)?, &case);
    }
    suite::matching(args.op.as_deref())?;
    writable(&args.report)?;
    let selection = devices::select(&args.device, &args.require)?;
    devices::print(&selection);
    if args.saboteur {
        return sabotage(args, &selection);
    }
    check_devices(args, selection)
}

fn check_devices(args: &Args, Selection { devices, absent }: Selection) -> Outcome {
    let mut is_good = true;
    let mut report = Report { seed: args.seed, cases: args.cases, absent, ..Report::default() };
    if args.op.is_none() {
        report.specification = suite::specification::run(args.seed);
        print::specification(&report.specification);
    }
    for device in &devices {
        let bar = ProgressBar::new(0);
        bar.set_style(
            ProgressStyle::with_template("{msg} [{bar:40}] {pos}/{len} cases, {eta} left")
                .unwrap_or_else(|_| ProgressStyle::default_bar()),
        );
        bar.set_message(device.label().to_string());
        let compiled = modules::compiled();
        let mut found = suite::run(device, &args.options(), |done, total| {
            bar.set_length(total as u64);
            bar.set_position(done as u64);
        })?;
        bar.finish_and_clear();
        if args.op.is_none() {
            suite::add_fixed(device, &mut found);
        }
        print::device(&found, &args.report);
        is_good &= modules::check(device, args.cases, modules::compiled() - compiled);
        report.devices.push(found);
    }
    let json = serde_json::to_string_pretty(&report).map_err(|e| e.to_string())?;
    write(&args.report.join("report.json"), &json)?;
    write(&args.report.join("report.html"), &report.html())?;

    is_good &= !report.has_failures();
    if args.bless && is_good {
        pages::bless(&report)?;
    } else if args.bless {
        eprintln!("parity: nothing is blessed while there are failures");
    }
    if args.check {
        is_good &= pages::parity(&report)?;
    }
    if args.json {
        println!("{}", summary::of(&report));
    }
    Ok(is_good)
}

/// Every device with every fault.
fn sabotage(args: &Args, selection: &Selection) -> Outcome {
    selection
        .devices
        .iter()
        .try_fold(true, |is_good, device| Ok(saboteur::run(device, &args.options(), args.json)? && is_good))
}

/// One case again, on every device.
fn replay(selection: &Selection, case: &Case) -> Outcome {
    let mut is_good = true;
    for device in &selection.devices {
        let (row, failure) = suite::replay(device, case)?;
        is_good &= failure.is_none();
        print::replayed(device, case, &row, failure.as_ref());
    }
    Ok(is_good)
}

/// Makes the folder of the report, and sees to it that it can be written before hours are spent.
fn writable(folder: &Path) -> Outcome<()> {
    let probe = folder.join(".writable");
    let attempt = std::fs::create_dir_all(folder).and_then(|()| std::fs::write(&probe, "")).and_then(|()| {
        std::fs::read_dir(folder)?;
        std::fs::remove_file(&probe)
    });
    attempt.map_err(|e| format!("--report: the folder cannot be used: {}: {e}", folder.display()))
}

fn write(path: &Path, text: &str) -> Outcome<()> {
    std::fs::write(path, text).map_err(|e| format!("{}: {e}", path.display()))
}
