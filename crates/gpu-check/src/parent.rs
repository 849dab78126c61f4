//! Runs each section in a process of its own, with a deadline, and puts together what they found.

use std::path::Path;
use std::process::{Command, ExitCode, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use crate::report::{Found, Report, SectionReport, State};
use crate::sections::{SECTIONS, Section};
use crate::{Args, markdown, record};

/// The exit status where there is no GPU.
pub(crate) const NOTHING_TO_RUN_ON: u8 = 2;
/// How long a section may go on after its budget: what it is at has to end.
const GRACE: Duration = Duration::from_secs(8);
/// All sections together: less than six minutes.
const WHOLE: Duration = Duration::from_secs(352);

pub(crate) fn run(args: &Args) -> Result<ExitCode, String> {
    std::fs::create_dir_all(&args.out).map_err(|e| format!("--out: {}: {e}", args.out.display()))?;
    let begin = Instant::now();
    let mut report = Report {
        version: env!("CARGO_PKG_VERSION").into(),
        emulated: args.emulated,
        seconds: 0.0,
        sections: Vec::new(),
    };
    for section in SECTIONS {
        if !args.sections.is_empty() && !args.sections.iter().any(|name| name == section.name) {
            continue;
        }
        eprintln!("{:<12} {}, at most {} s", section.name, section.title, section.budget(args.emulated).as_secs());
        let left = if args.emulated { Duration::MAX } else { WHOLE.saturating_sub(begin.elapsed()) };
        let Some(found) = child(section, args, left)? else {
            return Ok(ExitCode::from(NOTHING_TO_RUN_ON));
        };
        eprintln!("{:<12} {} in {:.1} s", "", found.state.word(), found.seconds);
        report.sections.push(found);
        report.seconds = begin.elapsed().as_secs_f64();
        // After each section: whoever ends the program has what came before.
        write(&args.out.join("results.json"), &serde_json::to_string_pretty(&report).map_err(|e| e.to_string())?)?;
        write(&args.out.join("results.md"), &markdown::page(&report))?;
    }
    println!("{}", args.out.join("results.md").display());
    let is_good = report.sections.iter().all(|section| section.state.is_good());
    Ok(if is_good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    std::fs::write(path, text).map_err(|e| format!("{}: {e}", path.display()))
}

/// Runs a section and waits for it; nothing if there is no device.
fn child(section: &Section, args: &Args, left: Duration) -> Result<Option<SectionReport>, String> {
    let path = record::path(&args.out, section.name);
    // What an earlier run left there is not this one's.
    let _ = std::fs::remove_file(&path);
    let program = std::env::current_exe().map_err(|e| e.to_string())?;
    let mut command = Command::new(program);
    command.arg("--section").arg(section.name).arg("--out").arg(&args.out);
    command.args(["--device", &args.device.to_string()]).args(args.emulated.then_some("--emulated"));
    if let Some(path) = &args.pytorch {
        command.arg("--pytorch").arg(path);
    }
    let start = Instant::now();
    let budget = section.budget(args.emulated).min(left.saturating_sub(GRACE));
    command.args(["--budget", &budget.as_secs_f64().to_string()]);
    let mut process = command.stdin(Stdio::null()).spawn().map_err(|e| format!("{}: {e}", section.name))?;
    let limit = budget + GRACE;
    let status = loop {
        if let Some(status) = process.try_wait().map_err(|e| e.to_string())? {
            break Some(status);
        }
        if start.elapsed() > limit {
            // A process that hangs in the driver may take a while to go; it is not waited for without end.
            let _ = process.kill();
            let _ = process.wait();
            break None;
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    let found = std::fs::read(&path).ok().and_then(|bytes| serde_json::from_slice::<Found>(&bytes).ok());
    if found.is_none() && status.and_then(|status| status.code()) == Some(NOTHING_TO_RUN_ON.into()) {
        return Ok(None);
    }
    let _ = std::fs::remove_file(&path);
    let (state, found) = judged(status, found.unwrap_or_default());
    Ok(Some(SectionReport {
        name: section.name.into(),
        title: section.title.into(),
        state,
        seconds: start.elapsed().as_secs_f64(),
        budget_seconds: budget.as_secs(),
        found,
    }))
}

/// How a section went: what it wrote, and how its process ended (not at all, if there is no status).
fn judged(status: Option<ExitStatus>, mut found: Found) -> (State, Found) {
    let state = match status {
        None => {
            found.failures.push("the process was ended: its time was over".into());
            State::OutOfTime
        }
        Some(status) if !status.success() || !found.is_complete => {
            found.failures.push(format!("the process ended before the section did: {status}"));
            State::Crashed
        }
        Some(_) if !found.failures.is_empty() => State::Failed,
        Some(_) if !found.cut.is_empty() => State::Cut,
        Some(_) => State::Passed,
    };
    (state, found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(code: i32) -> ExitStatus {
        use std::os::unix::process::ExitStatusExt;
        ExitStatus::from_raw(code)
    }

    #[test]
    fn what_was_found_survives_the_process() {
        let found = Found { notes: vec!["seen".into()], ..Found::default() };
        for (ended, state) in [(None, State::OutOfTime), (Some(status(11)), State::Crashed)] {
            let (judged, found) = judged(ended, found.clone());
            assert_eq!((judged, found.notes.len(), found.failures.len()), (state, 1, 1));
        }
        let (state, _) = judged(Some(status(0)), found.clone());
        assert_eq!(state, State::Crashed, "it said nothing of its end");
        let complete = Found { is_complete: true, ..found };
        assert_eq!(judged(Some(status(0)), complete.clone()).0, State::Passed);
        let cut = Found { cut: vec!["half".into()], ..complete.clone() };
        assert_eq!(judged(Some(status(0)), cut).0, State::Cut);
        let failed = Found { failures: vec!["wrong".into()], ..complete };
        assert_eq!(judged(Some(status(0)), failed).0, State::Failed);
    }
}
