//! What is run besides the cases that are drawn: inputs from public bug reports, and whole training runs.

use serde::{Deserialize, Serialize};
use tensor_core::Device;

use super::report::{DeviceReport, Failure};
use super::{golden, public_bugs};

/// A case that is always the same.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Fixed {
    /// `public bug odd-permute`, `training/mlp`.
    pub name: String,
    /// The dtype of its data.
    pub dtype: String,
    /// Whether all is right.
    pub passed: bool,
    /// The largest part of what is allowed that was used, where it was measured.
    pub max_used: Option<f64>,
}

/// Runs them all on a device and adds what they found to its report.
pub fn add_fixed(device: &Device, report: &mut DeviceReport) {
    for bug in public_bugs() {
        let found = bug.run(device);
        let (name, dtype) = (format!("public bug {}", bug.name), bug.dtype().name().to_string());
        report.fixed.push(Fixed { name, dtype, passed: found.is_ok(), max_used: None });
        report.failures.extend(found.err());
    }
    let failure = |op: String, dtype: &str, message: String| {
        let check = "training".to_string();
        Failure { op, dtype: dtype.to_string(), check, arguments: String::new(), message, case: String::new() }
    };
    match golden::run(device) {
        Ok(runs) => {
            for run in runs {
                let (breach, dtype) = (run.breach(), run.dtype.name());
                let (name, used) = (run.name.clone(), run.max_used());
                report.fixed.push(Fixed { name, dtype: dtype.into(), passed: breach.is_none(), max_used: Some(used) });
                report.failures.extend(breach.map(|message| failure(run.name, dtype, message)));
            }
        }
        Err(error) => report.failures.push(failure("training".into(), "", error.to_string())),
    }
}
