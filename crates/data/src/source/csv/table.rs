//! Typed columns, and the tensors made of them.

use std::collections::BTreeMap;

use tensor_core::{DType, Device, Error, Result, Tensor};

/// Columns of one length, found by name; no value is missing.
#[derive(Clone, Debug)]
pub struct Table {
    names: Vec<String>,
    columns: Vec<Column>,
    n_rows: usize,
}

/// The values of a column.
#[derive(Clone, Debug, PartialEq)]
pub enum Column {
    /// Whole numbers.
    Integer(Vec<i64>),
    /// Numbers.
    Number(Vec<f64>),
    /// Anything.
    Text(Vec<String>),
}

pub(super) fn unknown(name: &str, names: &[String]) -> Error {
    Error::index("csv", format!("no column has this name: `{name}`, columns {}", names.join(", ")))
}

impl Table {
    pub(super) fn new(names: Vec<String>, columns: Vec<Column>, n_rows: usize) -> Self {
        Self { names, columns, n_rows }
    }

    /// The names of the columns, in the order of the file.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The number of rows.
    pub fn n_rows(&self) -> usize {
        self.n_rows
    }

    /// A column.
    ///
    /// # Errors
    /// A name that no column has.
    pub fn column(&self, name: &str) -> Result<&Column> {
        let place = self.names.iter().position(|have| have == name);
        place.map(|place| &self.columns[place]).ok_or_else(|| unknown(name, &self.names))
    }

    /// Columns of numbers side by side: \[rows, columns] in f32.
    ///
    /// # Errors
    /// A name that no column has, or a column of text.
    pub fn numbers(&self, names: &[impl AsRef<str>], device: &Device) -> Result<Tensor> {
        let mut columns = Vec::with_capacity(names.len());
        for name in names {
            columns.push(match self.column(name.as_ref())? {
                Column::Integer(values) => values.iter().map(|&v| v as f32).collect::<Vec<_>>(),
                Column::Number(values) => values.iter().map(|&v| v as f32).collect(),
                Column::Text(_) => {
                    let name = name.as_ref();
                    return Err(Error::dtype(
                        "csv",
                        format!("the column holds text: `{name}`; read it with .classes(..)"),
                    ));
                }
            });
        }
        let rows = (0..self.n_rows).flat_map(|row| columns.iter().map(move |column| column[row]));
        Tensor::from_vec(rows.collect::<Vec<f32>>(), [self.n_rows, names.len()], device)
    }

    /// A column of integers: \[rows] in i64.
    ///
    /// # Errors
    /// A name that no column has, or a column of another type.
    pub fn integers(&self, name: &str, device: &Device) -> Result<Tensor> {
        match self.column(name)? {
            Column::Integer(values) => Tensor::from_slice(values, [self.n_rows], device),
            Column::Number(_) | Column::Text(_) => {
                Err(Error::dtype("csv", format!("the column does not hold {} alone: `{name}`", DType::I64)))
            }
        }
    }

    /// A column as classes: \[rows] in i64, numbers from 0 into the sorted list of its different values.
    ///
    /// # Errors
    /// A name that no column has, or a column of numbers that are not whole.
    pub fn classes(&self, name: &str, device: &Device) -> Result<(Tensor, Vec<String>)> {
        let (classes, names) = match self.column(name)? {
            Column::Integer(values) => number(values),
            Column::Text(values) => number(values),
            Column::Number(_) => {
                return Err(Error::dtype(
                    "csv",
                    format!("classes are integers or text, the column holds numbers: `{name}`"),
                ));
            }
        };
        Ok((Tensor::from_vec(classes, [self.n_rows], device)?, names))
    }
}

/// Each value's place in the sorted list of values, and that list.
fn number<T: Ord + ToString>(values: &[T]) -> (Vec<i64>, Vec<String>) {
    let mut places: BTreeMap<&T, i64> = values.iter().map(|value| (value, 0)).collect();
    places.values_mut().zip(0..).for_each(|(place, i)| *place = i);
    (values.iter().map(|value| places[value]).collect(), places.keys().map(|value| value.to_string()).collect())
}
