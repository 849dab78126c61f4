//! What a run of the suite found.

use std::fmt;

use serde::{Deserialize, Serialize};
use tensor_core::{DType, Device};

use super::case::Case;
use super::deviations::{self, Deviation};
use super::fixed::Fixed;
use crate::compare::Agreement;

mod html;
mod markdown;
mod whole;

pub use whole::{Absent, Report, reproduction, short};

/// One op and dtype on one device.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The op.
    pub op: String,
    /// The dtype of its data.
    pub dtype: String,
    /// Cases drawn: passed, deviated, not run and failed together.
    pub cases: usize,
    /// Cases of which every check passed.
    pub passed: usize,
    /// Cases that failed as a deviation says.
    pub deviated: usize,
    /// Cases that the device declines as a deviation says, and those given up after a failure.
    pub not_run: usize,
    /// Cases of which a check failed.
    pub failed: usize,
    /// What values showed.
    pub forward: Seen,
    /// What derivatives showed.
    pub gradient: Seen,
}

/// The largest errors seen, and where.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Seen {
    /// In units in the last place.
    pub max_ulps: f64,
    /// As a part of the bound.
    pub max_used: f64,
    /// The case with the largest error in ulps.
    pub worst: Option<String>,
    /// Cases judged.
    pub cases: usize,
}

impl Row {
    /// Nothing seen yet.
    pub fn new(op: &str, dtype: DType) -> Self {
        Self { op: op.to_string(), dtype: dtype.name().to_string(), ..Self::default() }
    }

    /// Adds what a check saw.
    pub(crate) fn see(&mut self, is_gradient: bool, agreement: &Agreement, case: &Case) {
        let seen = if is_gradient { &mut self.gradient } else { &mut self.forward };
        seen.cases += 1;
        seen.max_used = seen.max_used.max(agreement.max_used);
        if agreement.max_ulps > seen.max_ulps {
            seen.max_ulps = agreement.max_ulps;
            seen.worst = Some(case.to_string());
        }
    }

    fn merge(&mut self, other: Self) {
        self.cases += other.cases;
        self.passed += other.passed;
        self.deviated += other.deviated;
        self.not_run += other.not_run;
        self.failed += other.failed;
        self.forward.merge(other.forward);
        self.gradient.merge(other.gradient);
    }
}

impl Seen {
    fn merge(&mut self, other: Self) {
        self.cases += other.cases;
        self.max_used = self.max_used.max(other.max_used);
        // Of equals the first by name, whichever thread was faster.
        let is_first = other.max_ulps == self.max_ulps && other.worst < self.worst && other.worst.is_some();
        if other.max_ulps > self.max_ulps || is_first {
            self.max_ulps = other.max_ulps;
            self.worst = other.worst;
        }
    }
}

/// A check that failed, on the smallest case found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Failure {
    /// The op.
    pub op: String,
    /// The dtype of its data.
    pub dtype: String,
    /// The check.
    pub check: String,
    /// The call in words: inputs and arguments.
    pub arguments: String,
    /// What is wrong.
    pub message: String,
    /// The case, as `--replay` takes it.
    pub case: String,
}

/// A deviation that cases needed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Deviated {
    /// The op.
    pub op: String,
    /// The dtype of its data.
    pub dtype: String,
    /// Why.
    pub reason: String,
    /// What happens instead.
    pub observed: String,
    /// How many cases needed it.
    pub cases: usize,
}

/// A device's results.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DeviceReport {
    /// `cuda:0`.
    pub device: String,
    /// The product.
    pub name: String,
    /// Whether an emulator or a software adapter stands in for hardware.
    pub emulated: bool,
    /// Its instruction set, compute capability or limits.
    pub capability: String,
    /// The accuracy that it is held to.
    pub accuracy: String,
    /// By op, then dtype.
    pub rows: Vec<Row>,
    /// Where it differs, as the table of deviations says.
    pub deviations: Vec<Deviated>,
    /// Public bugs and training runs, when they ran.
    #[serde(default)]
    pub fixed: Vec<Fixed>,
    /// What is wrong.
    pub failures: Vec<Failure>,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}({}): {}: {}", self.op, self.arguments, self.check, self.message)?;
        if self.case.is_empty() { Ok(()) } else { write!(f, " [--replay '{}']", self.case) }
    }
}

impl fmt::Display for DeviceReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [cases, passed, deviated, not_run, _] = self.counts();
        let n_failures = self.failures.len();
        let n = |n, what| format!("{n} {what}");
        let states = [n(passed, "passed"), n(deviated, "deviated"), n(not_run, "not run"), n(n_failures, "failures")];
        write!(f, "{}: {cases} cases: {}", self.device, states.join(", "))?;
        self.failures.iter().try_for_each(|failure| write!(f, "\n  {failure}"))
    }
}

impl DeviceReport {
    pub(crate) fn new(device: &Device) -> Self {
        let info = device.info();
        let arithmetic = match (info.accuracy.loose, info.accuracy.flushes_subnormals) {
            (false, false) => "IEEE arithmetic",
            (true, false) => "regrouped arithmetic, division to 2.5 ulp",
            (false, true) => "IEEE arithmetic without subnormal numbers",
            (true, true) => "regrouped arithmetic, division to 2.5 ulp, no subnormal numbers",
        };
        let factors = if info.accuracy.tf32 { ", factors of products in TF32" } else { "" };
        Self {
            device: info.label.clone(),
            name: info.name.clone(),
            emulated: !info.is_hardware,
            capability: info.capability.clone(),
            accuracy: format!("{arithmetic}{factors}"),
            rows: Vec::new(),
            deviations: Vec::new(),
            fixed: Vec::new(),
            failures: Vec::new(),
        }
    }

    pub(crate) fn add(&mut self, row: Row, failure: Option<Failure>) {
        match self.rows.iter_mut().find(|r| r.op == row.op && r.dtype == row.dtype) {
            Some(known) => known.merge(row),
            None => self.rows.push(row),
        }
        self.failures.extend(failure);
    }

    /// Cases drawn, passed, deviated, not run and failed.
    pub fn counts(&self) -> [usize; 5] {
        self.rows.iter().fold([0; 5], |sum, row| {
            let own = [row.cases, row.passed, row.deviated, row.not_run, row.failed];
            std::array::from_fn(|i| sum[i] + own[i])
        })
    }

    /// Where a promise is more than eight times looser than anything seen, over enough cases to tell. In f64 the
    /// reference rounds as a device does, which says nothing.
    pub fn warnings(&self) -> Vec<String> {
        const ENOUGH: usize = 100;
        let sides = |row: &'_ Row| [("forward", row.forward.clone()), ("gradient", row.gradient.clone())];
        let rows = self.rows.iter().filter(|row| row.dtype != DType::F64.name());
        let all = rows.flat_map(|row| sides(row).map(|(side, seen)| (row, side, seen)));
        all.filter(|(_, _, seen)| seen.cases >= ENOUGH && seen.max_used > 0.0 && seen.max_used < 0.125)
            .map(|(row, side, seen)| {
                let (factor, cases) = (1.0 / seen.max_used, seen.cases);
                format!(
                    "{} {}: {side}: {factor:.0} times looser than anything seen in {cases} cases",
                    row.op, row.dtype
                )
            })
            .collect()
    }

    /// Sorts, lists the deviations, and turns those that nothing needed into failures.
    pub(crate) fn finish(&mut self, device: &Device, table: &[Deviation]) {
        self.rows.sort_by(|a, b| (&a.op, &a.dtype).cmp(&(&b.op, &b.dtype)));
        for row in &self.rows {
            let dtype = DType::ALL.into_iter().find(|d| d.name() == row.dtype);
            let deviation = dtype.and_then(|dtype| deviations::of(table, &row.op, dtype, device.info()));
            let Some(deviation) = deviation else { continue };
            if row.passed < row.cases {
                self.deviations.push(Deviated {
                    op: row.op.clone(),
                    dtype: row.dtype.clone(),
                    reason: deviation.reason.to_string(),
                    observed: deviation.observed.to_string(),
                    cases: row.deviated + row.not_run,
                });
            } else if deviation.lacking.is_none() {
                self.failures.push(Failure {
                    op: row.op.clone(),
                    dtype: row.dtype.clone(),
                    check: "deviation".into(),
                    arguments: String::new(),
                    message: format!("passes, but is to deviate: {}; take it out of the table", deviation.reason),
                    case: String::new(),
                });
            }
        }
        self.failures.sort_by(|a, b| (&a.op, &a.dtype, &a.case).cmp(&(&b.op, &b.dtype, &b.case)));
    }
}
