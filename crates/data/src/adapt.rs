//! Data sets made of data sets: mapped, concatenated, zipped, cut into windows.

use tensor_core::{Error, Result};

use crate::dataset::{fetch, in_range};
use crate::{Batch, Dataset};

/// `set` with `f` applied to each observation.
///
/// ```
/// use data::Dataset;
///
/// let squares = data::map(vec![1, 2, 3], |x: i32| Ok(x * x));
/// assert_eq!(squares.get(2)?, 9);
/// # Ok::<(), tensor_core::Error>(())
/// ```
pub fn map<D, F, T>(set: D, f: F) -> Map<D, F>
where
    D: Dataset,
    F: Fn(D::Item) -> Result<T> + Send + Sync,
{
    Map { set, f }
}

/// The observations of all `sets`, one set after the other.
pub fn concat<D: Dataset>(sets: Vec<D>) -> Concat<D> {
    let ends = sets.iter().scan(0, |end, set| {
        *end += set.len();
        Some(*end)
    });
    Concat { ends: ends.collect(), sets }
}

/// Pairs of the observations at the same index.
///
/// # Errors
/// Sets of different lengths.
pub fn zip<A: Dataset, B: Dataset>(a: A, b: B) -> Result<Zip<A, B>> {
    if a.len() != b.len() {
        return Err(Error::shape("zip", format!("sets must have the same length: a {}, b {}", a.len(), b.len())));
    }
    Ok(Zip { a, b })
}

/// Windows over a sequence: observation i is the stack of those at i · `step` up to i · `step` + `size`.
///
/// Only whole windows count: there are ⌊(len − size) / step⌋ + 1 of them, none if the set is shorter than one.
///
/// # Errors
/// A size or step of 0.
pub fn windows<D: Dataset>(set: D, size: usize, step: usize) -> Result<Windows<D>> {
    if size == 0 || step == 0 {
        return Err(Error::value("windows", format!("size and step must be at least 1: size {size}, step {step}")));
    }
    Ok(Windows { set, size, step })
}

/// See [`map`].
#[derive(Clone, Debug)]
pub struct Map<D, F> {
    set: D,
    f: F,
}

impl<D, F, T> Dataset for Map<D, F>
where
    D: Dataset,
    F: Fn(D::Item) -> Result<T> + Send + Sync,
    T: Send + 'static,
{
    type Item = T;

    fn len(&self) -> usize {
        self.set.len()
    }

    fn get(&self, index: usize) -> Result<T> {
        (self.f)(self.set.get(index)?)
    }
}

/// See [`concat()`].
#[derive(Clone, Debug)]
pub struct Concat<D> {
    sets: Vec<D>,
    /// The index after the last observation of each set.
    ends: Vec<usize>,
}

impl<D> Concat<D> {
    /// Which set holds the observation, and its index there.
    fn place(&self, index: usize) -> Result<(usize, usize)> {
        in_range("concat", index, self.ends.last().copied().unwrap_or(0))?;
        let part = self.ends.partition_point(|&end| end <= index);
        Ok((part, index - if part == 0 { 0 } else { self.ends[part - 1] }))
    }
}

impl<D: Dataset> Dataset for Concat<D> {
    type Item = D::Item;

    fn len(&self) -> usize {
        self.ends.last().copied().unwrap_or(0)
    }

    fn get(&self, index: usize) -> Result<D::Item> {
        let (part, index) = self.place(index)?;
        fetch(&self.sets[part], index).map_err(|error| error.at(format_args!("set {part}")))
    }
}

/// See [`zip`].
#[derive(Clone, Debug)]
pub struct Zip<A, B> {
    a: A,
    b: B,
}

impl<A: Dataset, B: Dataset> Dataset for Zip<A, B> {
    type Item = (A::Item, B::Item);

    fn len(&self) -> usize {
        self.a.len()
    }

    fn get(&self, index: usize) -> Result<Self::Item> {
        Ok((self.a.get(index)?, self.b.get(index)?))
    }
}

/// See [`windows`].
#[derive(Clone, Debug)]
pub struct Windows<D> {
    set: D,
    size: usize,
    step: usize,
}

impl<D: Dataset> Dataset for Windows<D>
where
    D::Item: Batch,
{
    type Item = D::Item;

    fn len(&self) -> usize {
        self.set.len().checked_sub(self.size).map_or(0, |rest| rest / self.step + 1)
    }

    fn get(&self, index: usize) -> Result<D::Item> {
        in_range("windows", index, self.len())?;
        let start = index * self.step;
        self.set.batch(&(start..start + self.size).collect::<Vec<_>>())
    }
}
