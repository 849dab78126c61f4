//! The one error type of the crate.

use crate::report::Report;
use std::fmt;

/// Why something could not be done.
///
/// Texts of bad modules begin with `line:column:`; texts of findings name the kernel, the line and the thread.
#[derive(Clone, Debug)]
pub struct Error(Box<Inner>);

#[derive(Clone, Debug)]
struct Inner {
    kind: ErrorKind,
    message: String,
    line: u32,
    column: u32,
    report: Option<Report>,
}

/// What sort of error it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The text is no valid module.
    Parse,
    /// A launch, a copy or an argument breaks a rule of the interface.
    Usage,
    /// The device's memory limit is reached.
    OutOfMemory,
    /// A kernel did something wrong; [`Error::report`] says what.
    Finding,
}

impl Error {
    pub(crate) fn parse(pos: Pos, message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Parse, message.into(), pos, None)
    }

    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Usage, message.into(), Pos::default(), None)
    }

    pub(crate) fn out_of_memory(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::OutOfMemory, message.into(), Pos::default(), None)
    }

    pub(crate) fn finding(report: Report) -> Self {
        let pos = Pos { line: report.line, column: report.column };
        Self::new(ErrorKind::Finding, String::new(), pos, Some(report))
    }

    fn new(kind: ErrorKind, message: String, pos: Pos, report: Option<Report>) -> Self {
        Self(Box::new(Inner { kind, message, line: pos.line, column: pos.column, report }))
    }

    /// What sort of error it is.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The finding, if a kernel did something wrong.
    pub fn report(&self) -> Option<&Report> {
        self.0.report.as_ref()
    }

    /// The line of the PTX text that it is about, from 1; 0 if none.
    pub fn line(&self) -> u32 {
        self.0.line
    }

    /// The column of the PTX text that it is about, from 1; 0 if none.
    pub fn column(&self) -> u32 {
        self.0.column
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inner = &self.0;
        match &inner.report {
            Some(report) => report.fmt(f),
            None if inner.line > 0 => write!(f, "{}:{}: {}", inner.line, inner.column, inner.message),
            None => f.write_str(&inner.message),
        }
    }
}

impl std::error::Error for Error {}

/// A place in the PTX text, both from 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pos {
    pub(crate) line: u32,
    pub(crate) column: u32,
}

pub(crate) type Result<T, E = Error> = std::result::Result<T, E>;
