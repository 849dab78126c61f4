//! A user's own op: its Rust closure, over host values.

use std::sync::Arc;

use tensor_core::op::{CustomKernel, HostArray};
use tensor_core::{CustomOp, Error, HostData, HostView, Kind, Meta, Result, Storages, Tensor};

use super::copy;
use crate::Context;
use crate::storage::upload;

/// Runs the op's kernel for the CPU.
pub(crate) fn run(op: &Arc<dyn CustomOp>, inputs: &[&Tensor], outputs: &[Meta], cx: &Context<'_>) -> Result<Storages> {
    let Some(CustomKernel::Rust(kernel)) = op.kernel(Kind::Cpu) else {
        return Err(Error::unsupported(op.name().to_string(), "has no Rust kernel; add one for Kind::Cpu"));
    };
    let arrays: Vec<HostArray> =
        inputs.iter().map(|x| HostArray { shape: x.shape().clone(), data: copy::download(x) }).collect();
    let results = kernel(&arrays, outputs)?;
    if results.len() != outputs.len() {
        let text = format!("the kernel must give {} outputs: got {}", outputs.len(), results.len());
        return Err(Error::shape(op.name().to_string(), text));
    }
    results.iter().zip(outputs).enumerate().map(|(i, (data, meta))| one(op.name(), i, data, meta, cx)).collect()
}

fn one(op: &str, i: usize, data: &HostData, meta: &Meta, cx: &Context<'_>) -> Result<tensor_core::Storage> {
    if data.dtype() != meta.dtype || data.len() != meta.shape.len() {
        let text = format!(
            "the kernel must give {} values of {} for output {i}, {}: got {} of {}",
            meta.shape.len(),
            meta.dtype,
            meta.shape,
            data.len(),
            data.dtype()
        );
        return Err(Error::shape(op.to_string(), text));
    }
    upload(cx.pool, HostView { shape: &meta.shape, data: data.as_slice() })
}
