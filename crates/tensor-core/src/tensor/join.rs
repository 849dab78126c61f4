//! Joining, surrounding and rotating.

use smallvec::SmallVec;

use super::first;
use crate::op::{Concat, Pad};
use crate::{Dims, Error, IntoAxis, Number, Op, Result, Tensor, execute};

impl AsRef<Tensor> for Tensor {
    fn as_ref(&self) -> &Tensor {
        self
    }
}

impl AsRef<Tensor> for crate::Param {
    fn as_ref(&self) -> &Tensor {
        self
    }
}

impl Tensor {
    /// The tensors one after another along `axis`.
    ///
    /// # Errors
    /// If there is none, or sizes off the axis, dtypes or devices differ.
    pub fn cat<T: AsRef<Tensor>>(tensors: &[T], axis: impl IntoAxis) -> Result<Tensor> {
        let inputs: SmallVec<[&Tensor; 4]> = tensors.iter().map(AsRef::as_ref).collect();
        let Some(&head) = inputs.first() else {
            return Err(Error::shape("cat", "needs at least one tensor: got none"));
        };
        let axis = axis.resolve_axis("cat", head.rank())?;
        first(execute(&Op::Concat(Concat { axis }), &inputs))
    }

    /// The tensors along a new axis at this position of the result.
    ///
    /// # Errors
    /// If there is none, or shapes, dtypes or devices differ.
    pub fn stack<T: AsRef<Tensor>>(tensors: &[T], axis: impl IntoAxis) -> Result<Tensor> {
        let Some(head) = tensors.first().map(AsRef::as_ref) else {
            return Err(Error::shape("stack", "needs at least one tensor: got none"));
        };
        if let Some((i, x)) = tensors.iter().map(AsRef::as_ref).enumerate().find(|(_, x)| x.shape() != head.shape()) {
            return Err(Error::shape(
                "stack",
                format!("shapes differ: tensor 0 {}, tensor {i} {}", head.shape(), x.shape()),
            ));
        }
        let axis = axis.resolve_axis("stack", head.rank() + 1)?;
        let rows = tensors.iter().map(|x| x.as_ref().unsqueeze(axis)).collect::<Result<SmallVec<[Tensor; 4]>>>()?;
        Self::cat(&rows, axis)
    }

    /// Surrounded with a value: one (before, after) pair per axis.
    ///
    /// # Errors
    /// If there is not one pair per axis, or a float value meets an integer dtype.
    pub fn pad(&self, pairs: &[(usize, usize)], value: impl Into<Number>) -> Result<Tensor> {
        let (before, after) = pairs.iter().copied().unzip();
        let interior = Dims::from_elem(0, pairs.len());
        self.run(&Op::Pad(Pad { before, after, interior, value: value.into() }))
    }

    /// Rotated along `axis`: the element at i moves to i + shift, past the end to the beginning.
    ///
    /// # Errors
    /// If the axis is out of range.
    pub fn roll(&self, shift: isize, axis: impl IntoAxis) -> Result<Tensor> {
        let axis = axis.resolve_axis("roll", self.rank())?;
        let n = self.dims()[axis];
        if n == 0 || shift.rem_euclid(n as isize) == 0 {
            return Ok(self.clone());
        }
        let head = n - shift.rem_euclid(n as isize) as usize;
        Self::cat(&[self.cut(axis, head, n - head, 1)?, self.cut(axis, 0, head, 1)?], axis)
    }
}
