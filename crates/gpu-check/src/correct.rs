//! The suite of the ops' contracts, and whole training runs, on the device.

use std::sync::Mutex;
use std::time::Instant;

use conformance::suite::{self, Failure, Options};
use serde_json::Value;
use tensor_core::Result;

use crate::device::Subject;
use crate::record::{Record, number};

/// Failures that are written out.
const MAX_SHOWN: usize = 40;

/// Runs of the suite from one seed after the other, as long as there is time.
pub(crate) fn parity(subject: &Subject, record: &mut Record) -> Result<()> {
    let (cases, pattern) = subject.size((2600, None), (1, Some("exp,add,matmul,sum,softmax".to_string())));
    record.table(
        "Runs of the suite",
        &["seed", "cases", "of", "failed", "deviated", "largest part of a bound", "seconds"],
    );
    for seed in 0..subject.size(1000, 1) {
        let start = Instant::now();
        let progress = Mutex::new((0, 0));
        let options =
            Options { cases, seed, pattern: pattern.clone(), deadline: Some(record.deadline()), ..Options::default() };
        let found = suite::run(&subject.device, &options, |done, total| {
            let mut progress = progress.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            *progress = (progress.0.max(done), total);
        });
        let report = match found {
            Ok(report) => report,
            Err(reason) => {
                record.fail(reason);
                break;
            }
        };
        let (done, total) = progress.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        let sum = |f: fn(&suite::Row) -> usize| report.rows.iter().map(f).sum::<usize>();
        let used = report.rows.iter().map(|row| row.forward.max_used.max(row.gradient.max_used)).fold(0.0, f64::max);
        record.row(vec![
            seed.into(),
            done.into(),
            total.into(),
            sum(|row| row.failed).into(),
            sum(|row| row.deviated).into(),
            number(used),
            number(start.elapsed().as_secs_f64()),
        ]);
        fail(record, &report.failures);
        if done < total && seed == 0 {
            record.cut(format!("the first run ended after {done} of {total} cases: its time was over"));
        }
        // Another whole run has to fit.
        if start.elapsed() > record.left() {
            break;
        }
    }
    Ok(())
}

/// Whole training runs beside the reference's losses, and inputs from public bug reports.
pub(crate) fn golden(subject: &Subject, record: &mut Record) -> Result<()> {
    let mut report = suite::DeviceReport::default();
    if subject.is_emulated {
        // Minutes on the emulator, where the tests of the backend run them anyway.
        record.cut("the golden runs and public bugs: not on the emulator");
        return Ok(());
    }
    suite::add_fixed(&subject.device, &mut report);
    record.table("Runs", &["what", "dtype", "right", "largest part of what is allowed"]);
    for fixed in &report.fixed {
        let used = fixed.max_used.map_or(Value::Null, number);
        record.row(vec![fixed.name.clone().into(), fixed.dtype.clone().into(), fixed.passed.into(), used]);
    }
    fail(record, &report.failures);
    Ok(())
}

fn fail(record: &mut Record, failures: &[Failure]) {
    for Failure { op, dtype, check, arguments, message, case } in failures.iter().take(MAX_SHOWN) {
        record.fail(format!("{op} {dtype}: {check}: {message} {arguments} (case `{case}`)"));
    }
    if failures.len() > MAX_SHOWN {
        record.fail(format!("{} failures more", failures.len() - MAX_SHOWN));
    }
}
