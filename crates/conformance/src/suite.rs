//! The suite that any backend calls: cases drawn from the ops' contracts, and what is asked of each.
//!
//! ```no_run
//! use conformance::suite;
//!
//! # fn check(device: &tensor_core::Device) -> Result<(), String> {
//! let report = suite::run(device, &suite::Options::default(), |_, _| {})?;
//! assert!(report.failures.is_empty(), "{report}");
//! # Ok(())
//! # }
//! ```

mod case;
mod check;
mod deviations;
mod draw;
mod input;
mod pattern;
mod probe;
mod report;
mod run;
mod subject;

pub use case::{Call, Case, Place, Run, Subject, Trial};
pub use check::{CHECKS, Check, Verdict};
pub use deviations::{DEVIATIONS, Deviation};
pub use draw::Draw;
pub use input::{Content, Fill, Input, Layout};
pub use report::{DeviceReport, Failure, Row, Seen};
pub use run::{Options, replay, run};
pub use subject::{all as subjects, named as subject};
