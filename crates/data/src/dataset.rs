//! What every data set offers: a length, and the observation at an index.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use tensor_core::{Error, Result, Tensor};

use crate::Batch;
use crate::batch::gathered;

/// A number of observations, each found by its index. Shared between threads.
pub trait Dataset: Send + Sync {
    /// One observation, for example an image and its label as a tuple of tensors.
    type Item: Send + 'static;

    /// The number of observations.
    fn len(&self) -> usize;

    /// The observation at `index`, which is below [`Dataset::len`].
    ///
    /// # Errors
    /// An index out of range, and whatever reading the observation can meet.
    fn get(&self, index: usize) -> Result<Self::Item>;

    /// Whether there are no observations.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Several observations stacked along a new first axis; a set that holds tensors has a faster way than one by one.
    ///
    /// # Errors
    /// No indices, observations of different shapes, and those of [`Dataset::get`], prefixed by `sample {index}`.
    fn batch(&self, indices: &[usize]) -> Result<Self::Item>
    where
        Self::Item: Batch,
    {
        gathered("stack", &fetch_all(self, indices)?, |parts| Tensor::stack(parts, 0))
    }
}

/// One observation; an error or a panic on the way names it.
pub(crate) fn fetch<D: Dataset + ?Sized>(set: &D, index: usize) -> Result<D::Item> {
    catch_unwind(AssertUnwindSafe(|| set.get(index)))
        .unwrap_or_else(|payload| Err(panicked(&*payload)))
        .map_err(|error| error.at(format_args!("sample {index}")))
}

/// Several observations in order.
pub(crate) fn fetch_all<D: Dataset + ?Sized>(set: &D, indices: &[usize]) -> Result<Vec<D::Item>> {
    indices.iter().map(|&index| fetch(set, index)).collect()
}

/// A caught panic as an error.
pub(crate) fn panicked(payload: &(dyn Any + Send)) -> Error {
    let message = payload.downcast_ref::<&str>().copied();
    let message = message.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    Error::other("panic", message.unwrap_or("no message"))
}

/// The error of an index past the end.
pub(crate) fn in_range(op: &'static str, index: usize, len: usize) -> Result<()> {
    if index < len {
        return Ok(());
    }
    Err(Error::index(op, format!("index is out of range: index {index}, observations {len}")))
}

impl<D: Dataset + ?Sized> Dataset for Arc<D> {
    type Item = D::Item;

    fn len(&self) -> usize {
        (**self).len()
    }

    fn get(&self, index: usize) -> Result<D::Item> {
        (**self).get(index)
    }

    fn batch(&self, indices: &[usize]) -> Result<D::Item>
    where
        D::Item: Batch,
    {
        (**self).batch(indices)
    }
}

impl<D: Dataset + ?Sized> Dataset for Box<D> {
    type Item = D::Item;

    fn len(&self) -> usize {
        (**self).len()
    }

    fn get(&self, index: usize) -> Result<D::Item> {
        (**self).get(index)
    }

    fn batch(&self, indices: &[usize]) -> Result<D::Item>
    where
        D::Item: Batch,
    {
        (**self).batch(indices)
    }
}

/// A list is a data set of clones of its elements.
impl<T: Clone + Send + Sync + 'static> Dataset for Vec<T> {
    type Item = T;

    fn len(&self) -> usize {
        self.as_slice().len()
    }

    fn get(&self, index: usize) -> Result<T> {
        in_range("list", index, self.as_slice().len())?;
        Ok(self[index].clone())
    }
}
