//! Surrounding with a value, and spreading elements apart.

use smallvec::SmallVec;
use tensor_core::op::Pad;
use tensor_core::{Layout, Meta, Result, Storages, Tensor};

use super::{copy, fill};
use crate::Context;
use crate::storage::buffer;

/// The input in a surrounding of `op.value`.
pub(crate) fn run(op: &Pad, inputs: &[&Tensor], outputs: &[Meta], cx: &Context<'_>) -> Result<Storages> {
    let (x, meta) = (inputs[0], &outputs[0]);
    let mut out = cx.output(meta)?;
    fill::fill(&mut out, meta.dtype, op.value);
    let row_major = Layout::contiguous(&meta.shape);
    let strides: SmallVec<[usize; 4]> =
        row_major.strides().iter().zip(&op.interior).map(|(&s, &between)| s as usize * (between + 1)).collect();
    let offset = row_major.strides().iter().zip(&op.before).map(|(&s, &before)| s as usize * before).sum();
    copy::into_part(meta.dtype, buffer(x).bytes(), x.layout(), out.bytes_mut(), offset, &strides);
    Ok(out.into_storages())
}

#[cfg(test)]
mod tests;
