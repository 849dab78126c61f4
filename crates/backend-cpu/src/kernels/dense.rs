//! Operands made row-major: borrowed where they are, else copied.

use std::ops::Deref;

use tensor_core::{Result, Tensor};

use super::copy;
use crate::eval::{Stored, widen};
use crate::{Buffer, Context, Elem, input};

/// The row-major elements of a tensor.
pub(crate) enum Dense<'a, T> {
    /// In place.
    Borrowed(&'a [T]),
    /// A copy.
    Copied(Buffer),
}

impl<T: Elem> Deref for Dense<'_, T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        match self {
            Self::Borrowed(values) => values,
            Self::Copied(buffer) => buffer.slice(),
        }
    }
}

/// The row-major elements of `x`.
pub(crate) fn dense<'a, T: Elem>(x: &'a Tensor, cx: &Context<'_>) -> Result<Dense<'a, T>> {
    if x.is_contiguous() {
        let start = if x.is_empty() { 0 } else { x.layout().offset() };
        return Ok(Dense::Borrowed(&input::<T>(x)[start..][..x.len()]));
    }
    let mut copied = cx.take::<T>(x.len())?;
    copy::to_bytes(x, copied.bytes_mut());
    Ok(Dense::Copied(copied))
}

/// The row-major elements of `x` in the type they are computed in.
pub(crate) fn widened<T: Stored>(x: &Tensor, cx: &Context<'_>) -> Result<Buffer> {
    let from = dense::<T>(x, cx)?;
    let mut wide = cx.take::<T::Lane>(from.len())?;
    widen(&from, wide.slice_mut());
    Ok(wide)
}
