//! Data sets, loaders and files, by their behaviour.
#![forbid(unsafe_code)]

mod csv;
mod files;
mod loader;
mod sets;
mod tensors;

use data::Dataset;
use tensor_core::Result;

/// All observations of a set, in order.
fn all<D: Dataset>(set: &D) -> Vec<D::Item> {
    (0..set.len()).map(|i| set.get(i).expect("an observation")).collect()
}

/// The text of an error; what came instead of one is shown.
fn text<T>(result: Result<T>) -> String {
    result.map_or_else(|error| error.to_string(), |_| "no error".into())
}
