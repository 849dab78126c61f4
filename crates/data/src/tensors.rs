//! A data set of tensors in memory.

use tensor_core::{Error, Result, Tensor};

use crate::batch::listed;
use crate::dataset::in_range;
use crate::{Batch, Dataset};

/// Tensors in memory whose first axis counts the observations: one, a tuple of up to four, or a list of them.
///
/// A batch is one `index_select` per tensor, and a view where the indices are consecutive.
///
/// # Shapes
/// | tensor | whole | one observation | batch of B |
/// |---|---|---|---|
/// | each | \[N, …] | \[…] | \[B, …] |
#[derive(Clone, Debug)]
pub struct TensorDataset<T> {
    parts: T,
    len: usize,
}

impl<T: Batch> TensorDataset<T> {
    /// A data set over `parts`, for example `(images, labels)`.
    ///
    /// # Errors
    /// No tensor, a scalar, or tensors whose first axes differ.
    pub fn new(parts: T) -> Result<Self> {
        let tensors = listed(&parts);
        let mut len = None;
        for (place, x) in tensors.iter().enumerate() {
            let Some(&n) = x.dims().first() else {
                return Err(Error::shape(
                    "tensor dataset",
                    format!("a scalar has no axis of observations: tensor {place} []"),
                ));
            };
            if *len.get_or_insert(n) != n {
                return Err(Error::shape(
                    "tensor dataset",
                    format!(
                        "tensors must have as many observations along axis 0: tensor 0 {}, tensor {place} {}",
                        tensors[0].shape(),
                        x.shape()
                    ),
                ));
            }
        }
        let len = len.ok_or_else(|| Error::shape("tensor dataset", "at least one tensor is needed: tensors 0"))?;
        Ok(Self { parts, len })
    }

    /// The tensors.
    pub fn parts(&self) -> &T {
        &self.parts
    }
}

impl<T: Batch + Send + Sync + 'static> Dataset for TensorDataset<T> {
    type Item = T;

    fn len(&self) -> usize {
        self.len
    }

    fn get(&self, index: usize) -> Result<T> {
        in_range("tensor dataset", index, self.len)?;
        self.parts.try_map(|x| x.narrow(0, index, 1)?.squeeze(0))
    }

    fn batch(&self, indices: &[usize]) -> Result<T> {
        for &index in indices {
            in_range("tensor dataset", index, self.len).map_err(|error| error.at(format_args!("sample {index}")))?;
        }
        if let [first, ..] = indices
            && indices.windows(2).all(|pair| pair[1] == pair[0] + 1)
        {
            return self.parts.try_map(|x| x.narrow(0, *first, indices.len()));
        }
        let rows: Vec<i64> = indices.iter().map(|&index| index as i64).collect();
        self.parts.try_map(|x| {
            let rows = Tensor::from_slice(&rows, [rows.len()], &x.device())?;
            x.index_select(0, &rows)
        })
    }
}
