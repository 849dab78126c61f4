//! What the terminal shows.

use std::path::Path;

use conformance::suite::{self, Case, DeviceReport, Failure, Row, Seen, reproduction, short};
use consort::Device;

/// How many lines of a table: the rest is in the report.
const N_LINES: usize = 15;

/// The ops by name, with how they are called.
pub(crate) fn list(pattern: Option<&str>) -> Result<bool, String> {
    for subject in suite::matching(pattern)? {
        println!("{:<32} {}", subject.name, subject.signature);
    }
    Ok(true)
}

/// A device's counts, what comes closest to its bound, and what is wrong.
pub(crate) fn device(report: &DeviceReport, folder: &Path) {
    let [cases, passed, deviated, not_run, failed] = report.counts();
    println!("\n{}: held to {}", report.device, report.accuracy);
    println!("{cases} cases: {passed} passed, {deviated} deviated, {not_run} not run, {failed} failed\n");

    let mut rows: Vec<&Row> = report.rows.iter().collect();
    rows.sort_by(|a, b| used(b).total_cmp(&used(a)));
    println!("{:<24} {:<5} {:>22} {:>22}", "closest to the bound", "", "values", "derivatives");
    for row in rows.iter().take(N_LINES) {
        println!("{:<24} {:<5} {:>22} {:>22}", row.op, row.dtype, seen(&row.forward), seen(&row.gradient));
    }
    if rows.len() > N_LINES {
        println!("… and {} more in {}", rows.len() - N_LINES, folder.join("report.html").display());
    }

    if !report.fixed.is_empty() {
        let right = report.fixed.iter().filter(|fixed| fixed.passed).count();
        println!("{right} of {} public bugs and training runs are right", report.fixed.len());
    }
    let warnings = report.warnings().len();
    if warnings > 0 {
        println!("{warnings} promises are more than 8 times looser than anything seen; the report names them");
    }
    for d in &report.deviations {
        println!("deviates: {} {}: {}; instead: {} ({} cases)", d.op, d.dtype, d.reason, d.observed, d.cases);
    }
    for failure in &report.failures {
        println!("\nFAILED {}({}): {}: {}", failure.op, failure.arguments, failure.check, failure.message);
        if !failure.case.is_empty() {
            println!("    {}", reproduction(&report.device, &failure.case));
        }
    }
}

/// What is wrong with the contracts themselves.
pub(crate) fn specification(failures: &[Failure]) {
    println!("derivatives, what the tape keeps, random words: {} failed", failures.len());
    failures.iter().for_each(|failure| println!("\nFAILED {failure}"));
}

/// What one case showed.
pub(crate) fn replayed(device: &Device, case: &Case, row: &Row, failure: Option<&Failure>) {
    match failure {
        Some(failure) => {
            println!("{device}: {case}: FAILED: {}({}): {}", failure.op, failure.arguments, failure.check);
            println!("    {}", failure.message);
        }
        None if row.passed == 0 => println!("{device}: {case}: deviates, as the table of deviations says"),
        None => {
            println!("{device}: {case}: passed: values {}, derivatives {}", seen(&row.forward), seen(&row.gradient));
        }
    }
}

fn used(row: &Row) -> f64 {
    row.forward.max_used.max(row.gradient.max_used)
}

fn seen(seen: &Seen) -> String {
    if seen.cases == 0 {
        return "-".into();
    }
    format!("{} ulp, {:.0} % used", short(seen.max_ulps), 100.0 * seen.max_used)
}
