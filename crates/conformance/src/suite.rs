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
mod describe;
mod deviations;
mod draw;
mod fixed;
pub mod golden;
mod input;
mod pattern;
mod probe;
mod public_bugs;
mod report;
mod run;
pub mod specification;
mod subject;

pub use case::{Call, Case, Place, Run, Subject, Trial};
pub use check::{CHECKS, Check, Verdict};
pub use describe::page as ops_page;
pub use deviations::{DEVIATIONS, Deviation};
pub use draw::Draw;
pub use fixed::{Fixed, add_fixed};
pub use input::{Content, Fill, Input, Layout};
pub use public_bugs::{PublicBug, public_bugs};
pub use report::{Absent, Deviated, DeviceReport, Failure, Report, Row, Seen, reproduction, short};
pub use run::{Options, matching, replay, run};
pub use subject::{all as subjects, named as subject};
