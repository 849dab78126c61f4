//! How a section writes down what it finds, and how much time it has left.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::report::{Found, Table};

/// What a section found so far, in a file.
pub(crate) struct Record {
    found: Found,
    path: PathBuf,
    deadline: Instant,
    /// PyTorch's microseconds, by what was measured.
    torch: BTreeMap<String, f64>,
}

/// The file of a section.
pub(crate) fn path(folder: &Path, section: &str) -> PathBuf {
    folder.join(format!("section-{section}.json"))
}

/// A number as tables show it: three significant digits.
pub(crate) fn number(x: f64) -> Value {
    if !x.is_finite() {
        return Value::Null;
    }
    let digits = 2 - x.abs().max(1e-12).log10().floor() as i32;
    let scale = 10f64.powi(digits.clamp(0, 12));
    Value::from((x * scale).round() / scale)
}

impl Record {
    pub(crate) fn new(
        section: &str,
        folder: &Path,
        budget: Duration,
        torch: BTreeMap<String, f64>,
    ) -> Result<Self, String> {
        let record =
            Self { found: Found::default(), path: path(folder, section), deadline: Instant::now() + budget, torch };
        record.write().map_err(|e| format!("{}: {e}", record.path.display()))?;
        Ok(record)
    }

    fn write(&self) -> std::io::Result<()> {
        let draft = self.path.with_extension("draft");
        std::fs::write(&draft, serde_json::to_vec(&self.found)?)?;
        std::fs::rename(&draft, &self.path)
    }

    fn changed(&self) {
        if let Err(error) = self.write() {
            eprintln!("{}: {error}", self.path.display());
        }
    }

    /// When its time is over.
    pub(crate) fn deadline(&self) -> Instant {
        self.deadline
    }

    pub(crate) fn left(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }

    /// Whether there is time for something more; if not, that it was left out is written down.
    pub(crate) fn has_time_for(&mut self, what: &str) -> bool {
        let has_time = !self.left().is_zero();
        if !has_time {
            self.cut(format!("{what}: there was no time"));
        }
        has_time
    }

    /// Something is wrong.
    pub(crate) fn fail(&mut self, what: impl Into<String>) {
        let what = what.into();
        eprintln!("    failure: {what}");
        self.found.failures.push(what);
        self.changed();
    }

    /// Something was left out.
    pub(crate) fn cut(&mut self, what: impl Into<String>) {
        self.found.cut.push(what.into());
        self.changed();
    }

    pub(crate) fn note(&mut self, what: impl Into<String>) {
        self.found.notes.push(what.into());
        self.changed();
    }

    /// Begins a table.
    pub(crate) fn table(&mut self, title: &str, columns: &[&str]) {
        let columns = columns.iter().map(ToString::to_string).collect();
        self.found.tables.push(Table { title: title.into(), columns, rows: Vec::new() });
        self.changed();
    }

    /// A row of the table begun last.
    pub(crate) fn row(&mut self, cells: Vec<Value>) {
        if let Some(table) = self.found.tables.last_mut() {
            table.rows.push(cells);
        }
        self.changed();
    }

    /// PyTorch's microseconds for the same, and ours as a multiple of them.
    pub(crate) fn beside_torch(&self, key: &str, seconds: f64) -> [Value; 2] {
        match self.torch.get(key) {
            Some(&micros) => [number(micros), number(seconds * 1e6 / micros)],
            None => [Value::Null, Value::Null],
        }
    }

    /// The section came to its end.
    pub(crate) fn finish(mut self) {
        self.found.is_complete = true;
        self.changed();
    }
}

#[cfg(test)]
mod tests {
    use super::number;

    #[test]
    fn numbers_have_three_digits() {
        let shown = [0.0, 1234.6, 12.345, 0.012345, -3.25159].map(|x| number(x).to_string());
        assert_eq!(shown, ["0.0", "1235.0", "12.3", "0.0123", "-3.25"]);
        assert!(number(f64::NAN).is_null());
    }
}
