//! Joining along an axis.

use smallvec::SmallVec;
use tensor_core::op::Concat;
use tensor_core::{Layout, Meta, Result, Storages, Tensor};

use super::copy;
use crate::Context;
use crate::storage::buffer;

/// The inputs one after another along the axis.
pub(crate) fn run(op: &Concat, inputs: &[&Tensor], outputs: &[Meta], cx: &Context<'_>) -> Result<Storages> {
    let meta = &outputs[0];
    let mut out = cx.output(meta)?;
    let strides: SmallVec<[usize; 4]> = Layout::contiguous(&meta.shape).strides().iter().map(|&s| s as usize).collect();
    let mut offset = 0;
    for x in inputs {
        copy::into_part(meta.dtype, buffer(x).bytes(), x.layout(), out.bytes_mut(), offset, &strides);
        offset += x.dims()[op.axis] * strides[op.axis];
    }
    Ok(out.into_storages())
}

#[cfg(test)]
mod tests;
