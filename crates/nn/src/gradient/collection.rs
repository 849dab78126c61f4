//! What [`crate::with_gradient`] gives: a gradient per parameter.

use std::fmt;

use smallvec::SmallVec;
use tensor_core::{Error, Param, Result, Tensor};

/// The gradients of a model's parameters, in the model's order: of those that reach the loss.
///
/// A tied parameter has one, under its first path.
#[derive(Clone, Default)]
pub struct Gradients {
    entries: Vec<Entry>,
    /// The paths one after another.
    paths: String,
    /// Positions in `entries` by identity.
    by_id: SmallVec<[(u64, u32); 8]>,
}

#[derive(Clone)]
struct Entry {
    /// Where its path ends; it starts where the one before ends.
    path_end: u32,
    gradient: Tensor,
}

impl Gradients {
    /// A collection of (identity, path, gradient) in order.
    pub(super) fn collect<'a>(parts: impl Iterator<Item = (u64, &'a str, Tensor)>) -> Self {
        let mut all = Self::default();
        for (id, path, gradient) in parts {
            all.paths.push_str(path);
            all.by_id.push((id, all.entries.len() as u32));
            all.entries.push(Entry { path_end: all.paths.len() as u32, gradient });
        }
        all.by_id.sort_unstable();
        all
    }

    fn position(&self, param: &Param) -> Option<usize> {
        let found = self.by_id.binary_search_by_key(&param.id(), |&(id, _)| id).ok()?;
        Some(self.by_id[found].1 as usize)
    }

    /// The gradient by a parameter; `None` if it does not reach the loss, or is frozen.
    pub fn of(&self, param: &Param) -> Option<&Tensor> {
        Some(&self.entries[self.position(param)?].gradient)
    }

    /// The gradient by a parameter, to be changed.
    pub fn of_mut(&mut self, param: &Param) -> Option<&mut Tensor> {
        let position = self.position(param)?;
        Some(&mut self.entries[position].gradient)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The paths of the parameters and their gradients, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &Tensor)> {
        self.entries.iter().enumerate().map(|(i, entry)| (self.path(i), &entry.gradient))
    }

    /// [`Gradients::iter`] with the gradients to be changed.
    pub fn iter_mut(&mut self) -> impl ExactSizeIterator<Item = (&str, &mut Tensor)> {
        let paths = &self.paths;
        let mut start = 0;
        self.entries.iter_mut().map(move |entry| {
            let path = &paths[start..entry.path_end as usize];
            start = entry.path_end as usize;
            (path, &mut entry.gradient)
        })
    }

    fn path(&self, i: usize) -> &str {
        let start = i.checked_sub(1).map_or(0, |before| self.entries[before].path_end as usize);
        &self.paths[start..self.entries[i].path_end as usize]
    }

    /// Every gradient replaced by f(path, gradient).
    ///
    /// # Errors
    /// What `f` reports.
    pub fn map(mut self, mut f: impl FnMut(&str, &Tensor) -> Result<Tensor>) -> Result<Self> {
        for (path, gradient) in self.iter_mut() {
            *gradient = f(path, gradient)?;
        }
        Ok(self)
    }

    /// Adds the gradients of the same parameters, as when a batch is taken in parts.
    ///
    /// # Errors
    /// If the parameters are not the same.
    pub fn add(&mut self, other: &Self) -> Result<()> {
        let sums = self.by_id.iter().map(|&(id, i)| {
            let found = other.by_id.binary_search_by_key(&id, |&(id, _)| id);
            let found = found.map_err(|_| {
                Error::gradient(
                    "add",
                    format!("the other gradients have none for a parameter: {}", self.path(i as usize)),
                )
            })?;
            let theirs = &other.entries[other.by_id[found].1 as usize].gradient;
            Ok((i, self.entries[i as usize].gradient.add(theirs)?))
        });
        let sums = sums.collect::<Result<Vec<_>>>()?;
        if other.len() != self.len() {
            return Err(Error::gradient(
                "add",
                format!("the gradients are of other parameters: {} here, {} there", self.len(), other.len()),
            ));
        }
        sums.into_iter().for_each(|(i, sum)| self.entries[i as usize].gradient = sum);
        Ok(())
    }
}

impl fmt::Debug for Gradients {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter().map(|(path, g)| (path, format!("{} {}", g.shape(), g.dtype())))).finish()
    }
}
