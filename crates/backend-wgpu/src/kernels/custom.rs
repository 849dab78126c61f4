//! A user's own op through its WGSL kernel.

use std::sync::Arc;

use smallvec::SmallVec;
use tensor_core::op::{CustomKernel, WgslKernel};
use tensor_core::{CustomOp, Error, Kind, Meta, Result, Storages, Tensor};

use super::{Context, block, moves, storage};
use crate::batch::Window;
use crate::shader::Access;

type Written = Arc<dyn Fn(&[Meta], &[Meta]) -> Result<WgslKernel> + Send + Sync>;

/// The op's kernel for wgpu.
pub(crate) fn kernel(op: &dyn CustomOp) -> Option<Written> {
    match op.kernel(Kind::Wgpu) {
        Some(CustomKernel::Wgsl(kernel)) => Some(kernel),
        _ => None,
    }
}

/// The op's outputs.
pub(crate) fn custom(cx: &Context, op: &Arc<dyn CustomOp>, inputs: &[&Tensor], outputs: &[Meta]) -> Result<Storages> {
    let name = op.name();
    let written = kernel(&**op).expect("invariant: supports() found a kernel");
    let metas: SmallVec<[Meta; 4]> = inputs.iter().map(|x| x.meta()).collect();
    let kernel = written(&metas, outputs)?;
    let most = cx.gpu.limits.max_compute_workgroups_per_dimension;
    if kernel.groups.iter().any(|&n| n > most) {
        let text =
            format!("has more groups along an axis than the adapter starts: groups {:?}, limit {most}", kernel.groups);
        return Err(Error::unsupported(name.to_string(), text));
    }
    let blocks = outputs.iter().map(|meta| cx.output(meta)).collect::<Result<SmallVec<[_; 1]>>>()?;
    // Row-major copies and numbers live until the dispatch is recorded.
    let begins = |x: &Tensor| x.is_contiguous() && x.layout().offset() == 0;
    let copies = inputs.iter().map(|x| if begins(x) { Ok(None) } else { moves::contiguous(cx, x).map(Some) });
    let copies = copies.collect::<Result<SmallVec<[_; 4]>>>()?;
    let numbers = (!kernel.numbers.is_empty()).then(|| cx.pool.take(4 * kernel.numbers.len())).transpose()?;
    if let Some(numbers) = &numbers {
        cx.batch.upload(bytemuck::cast_slice(&kernel.numbers), numbers.buffer());
    }
    let read = inputs.iter().zip(&copies).map(|(x, copied)| copied.as_ref().unwrap_or_else(|| block(x)));
    let windows: SmallVec<[Window<'_>; 8]> =
        blocks.iter().chain(read).chain(&numbers).map(|block| Window::all(block.buffer())).collect();
    let access = |k: usize| if k < blocks.len() { Access::Write } else { Access::Read };
    let bindings: SmallVec<[Access; 8]> = (0..windows.len()).map(access).collect();
    let pipeline = cx.pipelines.custom(name, &kernel, &bindings)?;
    cx.batch.dispatch_groups(name, &pipeline, &windows, &[], kernel.groups)?;
    drop(windows);
    Ok(blocks.into_iter().map(storage).collect())
}
