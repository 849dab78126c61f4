//! What sections find, as it is written down.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What a section found so far. It is written after every change, so that nothing is lost when the process is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Found {
    /// Whether the section came to its end.
    pub(crate) is_complete: bool,
    /// What is wrong.
    pub(crate) failures: Vec<String>,
    /// What there was no time for, or no room.
    pub(crate) cut: Vec<String>,
    /// What is worth knowing.
    pub(crate) notes: Vec<String>,
    pub(crate) tables: Vec<Table>,
}

/// Numbers under headings.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Table {
    pub(crate) title: String,
    pub(crate) columns: Vec<String>,
    pub(crate) rows: Vec<Vec<Value>>,
}

/// How a section went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum State {
    /// All is well.
    Passed,
    /// All that was run is well; not all was.
    Cut,
    /// Something is wrong.
    Failed,
    /// The process ended before the section did.
    Crashed,
    /// The process was ended when the section's time was long over.
    OutOfTime,
}

/// A section that was run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct SectionReport {
    pub(crate) name: String,
    pub(crate) title: String,
    pub(crate) state: State,
    pub(crate) seconds: f64,
    pub(crate) budget_seconds: u64,
    #[serde(flatten)]
    pub(crate) found: Found,
}

/// A whole run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Report {
    pub(crate) version: String,
    pub(crate) emulated: bool,
    pub(crate) seconds: f64,
    pub(crate) sections: Vec<SectionReport>,
}

impl State {
    /// In words.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Cut => "passed, cut short",
            Self::Failed => "FAILED",
            Self::Crashed => "CRASHED",
            Self::OutOfTime => "OUT OF TIME",
        }
    }

    /// Whether nothing is wrong.
    pub(crate) fn is_good(self) -> bool {
        matches!(self, Self::Passed | Self::Cut)
    }
}
