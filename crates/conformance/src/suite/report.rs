//! What a run of the suite found.

use std::fmt;

use serde::{Deserialize, Serialize};
use tensor_core::{DType, Device};

use super::case::Case;
use super::deviations;
use crate::compare::Agreement;

/// One op and dtype on one device.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The op.
    pub op: String,
    /// The dtype of its data.
    pub dtype: String,
    /// Cases run.
    pub cases: usize,
    /// Cases of which every check passed.
    pub passed: usize,
    /// Cases that failed as a deviation says.
    pub deviated: usize,
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
        self.failed += other.failed;
        self.forward.merge(other.forward);
        self.gradient.merge(other.gradient);
    }
}

impl Seen {
    fn merge(&mut self, other: Self) {
        self.cases += other.cases;
        self.max_used = self.max_used.max(other.max_used);
        if other.max_ulps > self.max_ulps {
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

/// A device's results.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeviceReport {
    /// `cuda:0`.
    pub device: String,
    /// The product.
    pub name: String,
    /// Whether an emulator or a software adapter stands in for hardware.
    pub emulated: bool,
    /// The accuracy that it is held to.
    pub accuracy: String,
    /// By op, then dtype.
    pub rows: Vec<Row>,
    /// What is wrong.
    pub failures: Vec<Failure>,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}({}): {}: {} [--replay '{}']", self.op, self.arguments, self.check, self.message, self.case)
    }
}

impl fmt::Display for DeviceReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sum = |count: fn(&Row) -> usize| self.rows.iter().map(count).sum::<usize>();
        let (cases, passed, deviated) = (sum(|r| r.cases), sum(|r| r.passed), sum(|r| r.deviated));
        write!(
            f,
            "{}: {cases} cases, {passed} passed, {deviated} deviated, {} failed",
            self.device,
            self.failures.len()
        )?;
        self.failures.iter().try_for_each(|failure| write!(f, "\n  {failure}"))
    }
}

impl DeviceReport {
    pub(crate) fn new(device: &Device) -> Self {
        let info = device.info();
        let accuracy = match (info.accuracy.loose, info.accuracy.flushes_subnormals) {
            (false, false) => "IEEE arithmetic",
            (true, false) => "regrouped arithmetic, division to 2.5 ulp",
            (false, true) => "IEEE arithmetic without subnormal numbers",
            (true, true) => "regrouped arithmetic, division to 2.5 ulp, no subnormal numbers",
        };
        Self {
            device: info.label.clone(),
            name: info.name.clone(),
            emulated: !info.is_hardware,
            accuracy: accuracy.to_string(),
            rows: Vec::new(),
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

    /// Sorts, and turns deviations that nothing needed into failures.
    pub(crate) fn finish(&mut self, device: &Device) {
        self.rows.sort_by(|a, b| (&a.op, &a.dtype).cmp(&(&b.op, &b.dtype)));
        for row in self.rows.iter().filter(|row| row.deviated == 0) {
            let dtype = DType::ALL.into_iter().find(|d| d.name() == row.dtype);
            let deviation = dtype.and_then(|dtype| deviations::of(&row.op, dtype, device.info()));
            if let Some(deviation) = deviation {
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
