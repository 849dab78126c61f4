//! Tables of text: columns found by name, their types inferred or said, missing values handled by a stated rule.

use std::collections::{BTreeMap, HashSet};
use std::io::Read;
use std::path::Path;

use csv::{ReaderBuilder, StringRecord, Trim};
use tensor_core::{Error, Result};

use super::bytes::{cannot_read, open};

mod table;

pub use table::{Column, Table};

/// How a file of comma-separated values is to be read.
///
/// ```no_run
/// use data::{Csv, Missing};
///
/// # fn load(device: &tensor_core::Device) -> tensor_core::Result<()> {
/// let table = Csv::new().missing(Missing::DropRow).read("iris.csv")?;
/// let x = table.numbers(&["sepal_length", "sepal_width"], device)?;
/// let (y, names) = table.classes("species", device)?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Csv {
    delimiter: u8,
    header: bool,
    types: BTreeMap<String, Type>,
    missing: Missing,
    missing_words: Vec<String>,
}

/// The type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// Whole numbers of 64 bits.
    Integer,
    /// Numbers.
    Number,
    /// Anything.
    Text,
}

/// What becomes of a value that is missing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Missing {
    /// An error that names line and column.
    Error,
    /// The row is left out.
    DropRow,
    /// It becomes this number; NaN is one. Text becomes empty.
    Fill(f64),
}

impl Default for Csv {
    fn default() -> Self {
        Self {
            delimiter: b',',
            header: true,
            types: BTreeMap::new(),
            missing: Missing::Error,
            missing_words: ["", "NA", "N/A", "NaN", "nan", "null", "?"].map(String::from).to_vec(),
        }
    }
}

impl Csv {
    /// Commas, a header, inferred types; a missing value is an error.
    pub fn new() -> Self {
        Self::default()
    }

    /// What stands between two fields.
    pub fn delimiter(mut self, delimiter: u8) -> Self {
        self.delimiter = delimiter;
        self
    }

    /// Whether the first row names the columns; without, they are called `0`, `1`, ….
    pub fn header(mut self, header: bool) -> Self {
        self.header = header;
        self
    }

    /// The type of a column. Columns whose type is not said hold integers if all values are, else numbers if all are,
    /// else text.
    pub fn column(mut self, name: impl Into<String>, ty: Type) -> Self {
        self.types.insert(name.into(), ty);
        self
    }

    /// What becomes of missing values.
    pub fn missing(mut self, missing: Missing) -> Self {
        self.missing = missing;
        self
    }

    /// The words that stand for a missing value: at first the empty field, `NA`, `N/A`, `NaN`, `nan`, `null` and `?`.
    pub fn missing_words(mut self, words: &[&str]) -> Self {
        self.missing_words = words.iter().map(|&word| word.into()).collect();
        self
    }

    /// Reads a file, plain or compressed with gzip.
    ///
    /// # Errors
    /// A file that cannot be read or is not UTF-8, a row with another number of fields, a name that comes twice or is
    /// not there, a value that is missing or not of its column's type: each with its line.
    pub fn read(&self, path: impl AsRef<Path>) -> Result<Table> {
        let path = path.as_ref();
        self.read_from(open(path)?).map_err(|error| error.at(path.display()))
    }

    /// Reads from any stream, as [`Csv::read`] does.
    pub fn read_from(&self, mut stream: impl Read) -> Result<Table> {
        let mut text = Vec::new();
        stream.read_to_end(&mut text).map_err(cannot_read)?;
        let cannot_parse = |error| cannot_parse(&text, error);
        let mut reader =
            ReaderBuilder::new().delimiter(self.delimiter).has_headers(self.header).trim(Trim::All).from_reader(&*text);
        let header = if self.header { Some(reader.headers().map_err(cannot_parse)?.clone()) } else { None };
        let mut rows = reader.records().collect::<Result<Vec<_>, _>>().map_err(cannot_parse)?;
        let n_columns = header.as_ref().or(rows.first()).map_or(0, StringRecord::len);
        let names: Vec<String> = match &header {
            Some(names) => names.iter().map(String::from).collect(),
            None => (0..n_columns).map(|i| i.to_string()).collect(),
        };
        self.check_names(&names)?;
        if self.missing == Missing::DropRow {
            rows.retain(|row| !row.iter().any(|field| self.is_missing(field)));
        }
        let columns = names.iter().enumerate().map(|(place, name)| self.parse(&text, &rows, place, name));
        let columns = columns.collect::<Result<Vec<_>>>()?;
        Ok(Table::new(names, columns, rows.len()))
    }

    fn is_missing(&self, field: &str) -> bool {
        self.missing_words.iter().any(|word| word == field)
    }

    fn check_names(&self, names: &[String]) -> Result<()> {
        let mut known = HashSet::with_capacity(names.len());
        if let Some((i, name)) = names.iter().enumerate().find(|(_, name)| !known.insert(*name)) {
            return Err(Error::format(
                "csv",
                format!("two columns have the same name: `{name}`, the second is column {i}"),
            ));
        }
        match self.types.keys().find(|name| !known.contains(name)) {
            Some(name) => Err(table::unknown(name, names)),
            None => Ok(()),
        }
    }

    /// One column of all rows.
    fn parse(&self, text: &[u8], rows: &[StringRecord], place: usize, name: &str) -> Result<Column> {
        let ty = self.types.get(name).copied().unwrap_or_else(|| self.infer(rows, place));
        let place_of = |row: &StringRecord| {
            let line = line(text, row.position());
            format!("line {line}, column `{}`, value `{}`", shown(name), shown(&row[place]))
        };
        let bad = |row: &StringRecord, what: &str| Error::format("csv", format!("{what}: {}", place_of(row)));
        let missing = |row: &StringRecord| match self.missing {
            Missing::Fill(value) => Ok(value),
            Missing::Error | Missing::DropRow => {
                let place = place_of(row);
                Err(Error::format(
                    "csv",
                    format!("a value is missing: {place}; choose what becomes of it with .missing(..)"),
                ))
            }
        };
        let column = match ty {
            Type::Integer => Column::Integer(self.fields(rows, place, |row, field| match field {
                Some(field) => field.parse().map_err(|_| bad(row, "not an integer of 64 bits")),
                None => match missing(row)? {
                    fill if fill == fill.trunc() => Ok(fill as i64),
                    _ => Err(bad(row, "a column of integers cannot be filled with a number that is not whole")),
                },
            })?),
            Type::Number => Column::Number(self.fields(rows, place, |row, field| match field {
                Some(field) => field.parse().map_err(|_| bad(row, "not a number")),
                None => missing(row),
            })?),
            Type::Text => Column::Text(self.fields(rows, place, |row, field| match field {
                Some(field) => Ok(field.into()),
                None => missing(row).map(|_| String::new()),
            })?),
        };
        Ok(column)
    }

    /// Each row's field, `None` where it is missing, through `parse`.
    fn fields<T>(
        &self,
        rows: &[StringRecord],
        place: usize,
        parse: impl Fn(&StringRecord, Option<&str>) -> Result<T>,
    ) -> Result<Vec<T>> {
        rows.iter().map(|row| parse(row, Some(&row[place]).filter(|field| !self.is_missing(field)))).collect()
    }

    fn infer(&self, rows: &[StringRecord], place: usize) -> Type {
        let fields = || rows.iter().map(|row| &row[place]).filter(|field| !self.is_missing(field));
        let gaps_fit = match self.missing {
            Missing::Fill(value) => value == value.trunc() || rows.iter().all(|row| !self.is_missing(&row[place])),
            Missing::Error | Missing::DropRow => true,
        };
        if gaps_fit && fields().all(|field| field.parse::<i64>().is_ok()) {
            Type::Integer
        } else if fields().all(|field| field.parse::<f64>().is_ok()) {
            Type::Number
        } else {
            Type::Text
        }
    }
}

/// A field in an error: one line, and not a long one.
fn shown(field: &str) -> String {
    const LONGEST: usize = 200;
    let cut: String = field.chars().take(LONGEST).flat_map(char::escape_debug).collect();
    if field.chars().nth(LONGEST).is_some() { cut + ".." } else { cut }
}

/// The line on which a row starts, from 1. The position that the csv crate keeps is before any blank lines.
fn line(text: &[u8], position: Option<&csv::Position>) -> u64 {
    let Some(position) = position else { return 1 };
    let rest = text.get(position.byte() as usize..).unwrap_or_default();
    let blank = rest.iter().take_while(|&&byte| byte == b'\n' || byte == b'\r').filter(|&&byte| byte == b'\n');
    position.line() + blank.count() as u64
}

/// What the csv crate reports, in our words.
fn cannot_parse(text: &[u8], error: csv::Error) -> Error {
    let line = line(text, error.position());
    let what = match error.kind() {
        csv::ErrorKind::UnequalLengths { expected_len, len, .. } => {
            format!("rows must have as many fields as the first: line {line}, fields {len}, expected {expected_len}")
        }
        csv::ErrorKind::Utf8 { err, .. } => format!("the text is not UTF-8: line {line}, field {}", err.field()),
        _ => format!("the file cannot be parsed: line {line}"),
    };
    Error::format("csv", what).with_source(error)
}
