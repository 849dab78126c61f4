//! How the observations of a batch become one value.

use std::sync::Arc;

use tensor_core::{Device, Error, Result, Tensor};

use crate::batch::gathered;
use crate::dataset::{fetch, fetch_all};
use crate::{Batch, Dataset};

/// Makes a batch of the observations at some indices.
pub trait Collate<D: Dataset + ?Sized>: Send + Sync {
    /// What it makes.
    type Batch: Send + 'static;

    /// Takes the observations out of `set` and puts them together.
    fn collate(&self, set: &D, indices: &[usize]) -> Result<Self::Batch>;
}

impl<D: Dataset + ?Sized, C: Collate<D> + ?Sized> Collate<D> for Arc<C> {
    type Batch = C::Batch;

    fn collate(&self, set: &D, indices: &[usize]) -> Result<C::Batch> {
        (**self).collate(set, indices)
    }
}

/// Observations of one shape, stacked along a new first axis: [`Dataset::batch`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Stack;

impl<D: Dataset + ?Sized> Collate<D> for Stack
where
    D::Item: Batch,
{
    type Batch = D::Item;

    fn collate(&self, set: &D, indices: &[usize]) -> Result<D::Item> {
        set.batch(indices)
    }
}

/// Observations of one rank, padded at the end of each axis to the largest, then stacked.
#[derive(Clone, Copy, Debug)]
pub struct Pad {
    /// What is filled in; truncated for integers.
    pub value: f64,
}

impl<D: Dataset + ?Sized> Collate<D> for Pad
where
    D::Item: Batch,
{
    type Batch = D::Item;

    fn collate(&self, set: &D, indices: &[usize]) -> Result<D::Item> {
        gathered("pad", &fetch_all(set, indices)?, |parts| self.stack(parts))
    }
}

impl Pad {
    fn stack(&self, parts: &[&Tensor]) -> Result<Tensor> {
        let mut largest = parts[0].dims().to_vec();
        for (i, x) in parts.iter().enumerate() {
            if x.rank() != largest.len() {
                return Err(Error::shape(
                    "pad",
                    format!("observations must have the same rank: first {}, at {i} {}", parts[0].shape(), x.shape()),
                ));
            }
            largest.iter_mut().zip(x.dims()).for_each(|(most, &n)| *most = n.max(*most));
        }
        let padded = parts.iter().map(|x| {
            let widths: Vec<_> = x.dims().iter().zip(&largest).map(|(&n, &most)| (0, most - n)).collect();
            if x.dims() == largest {
                Ok((*x).clone())
            } else if x.dtype().is_float() {
                x.pad(&widths, self.value)
            } else {
                x.pad(&widths, self.value as i64)
            }
        });
        let padded = padded.collect::<Result<Vec<_>>>()?;
        Tensor::stack(&padded.iter().collect::<Vec<_>>(), 0)
    }
}

/// The observations as they are, in a list.
#[derive(Clone, Copy, Debug, Default)]
pub struct List;

impl<D: Dataset + ?Sized> Collate<D> for List {
    type Batch = Vec<D::Item>;

    fn collate(&self, set: &D, indices: &[usize]) -> Result<Vec<D::Item>> {
        fetch_all(set, indices)
    }
}

/// Single observations, without an axis of batches.
#[derive(Clone, Copy, Debug, Default)]
pub struct Single;

impl<D: Dataset + ?Sized> Collate<D> for Single {
    type Batch = D::Item;

    fn collate(&self, set: &D, indices: &[usize]) -> Result<D::Item> {
        match indices {
            [index] => fetch(set, *index),
            _ => Err(Error::shape("single", format!("one observation at a time: observations {}", indices.len()))),
        }
    }
}

/// A function of one's own, from the observations to a batch.
#[derive(Clone, Copy, Debug)]
pub struct With<F>(pub F);

impl<D, F, B> Collate<D> for With<F>
where
    D: Dataset + ?Sized,
    F: Fn(Vec<D::Item>) -> Result<B> + Send + Sync,
    B: Send + 'static,
{
    type Batch = B;

    fn collate(&self, set: &D, indices: &[usize]) -> Result<B> {
        (self.0)(fetch_all(set, indices)?)
    }
}

/// What another collation makes, passed through a function.
#[derive(Clone, Copy, Debug)]
pub struct Then<C, F>(pub C, pub F);

impl<D, C, F, B> Collate<D> for Then<C, F>
where
    D: Dataset + ?Sized,
    C: Collate<D>,
    F: Fn(C::Batch) -> Result<B> + Send + Sync,
    B: Send + 'static,
{
    type Batch = B;

    fn collate(&self, set: &D, indices: &[usize]) -> Result<B> {
        (self.1)(self.0.collate(set, indices)?)
    }
}

/// What another collation makes, moved to a device.
#[derive(Clone, Debug)]
pub struct OnDevice<C>(pub C, pub Device);

impl<D, C> Collate<D> for OnDevice<C>
where
    D: Dataset + ?Sized,
    C: Collate<D>,
    C::Batch: Batch,
{
    type Batch = C::Batch;

    fn collate(&self, set: &D, indices: &[usize]) -> Result<C::Batch> {
        self.0.collate(set, indices)?.to(&self.1)
    }
}
