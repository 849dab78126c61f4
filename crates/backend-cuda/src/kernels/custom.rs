//! A user's own op through its PTX kernel.

use std::sync::Arc;

use smallvec::SmallVec;
use tensor_core::op::{CustomKernel, PtxKernel};
use tensor_core::{CustomOp, Kind, Meta, Result, Storages, Tensor};

use super::{Context, address, copy, storage};
use crate::args::Args;
use crate::module::Key;

/// The op's kernel for CUDA.
pub(crate) fn kernel(op: &dyn CustomOp) -> Option<PtxKernel> {
    match op.kernel(Kind::Cuda) {
        Some(CustomKernel::Ptx(kernel)) => Some(kernel),
        _ => None,
    }
}

/// The op's outputs.
pub(crate) fn custom(cx: &Context, op: &Arc<dyn CustomOp>, inputs: &[&Tensor], outputs: &[Meta]) -> Result<Storages> {
    let kernel = kernel(&**op).expect("invariant: supports() found a kernel");
    let metas: SmallVec<[Meta; 4]> = inputs.iter().map(|x| x.meta()).collect();
    let launch = (kernel.launch)(&metas, outputs)?;
    let blocks = outputs.iter().map(|meta| cx.output(meta)).collect::<Result<SmallVec<[_; 1]>>>()?;
    // Row-major copies live until the launch is in the stream.
    let copies =
        inputs.iter().map(|x| if x.is_contiguous() { Ok(None) } else { copy::contiguous(cx, op.name(), x).map(Some) });
    let copies = copies.collect::<Result<SmallVec<[_; 4]>>>()?;
    // The text is the user's: its address and its entry tell it from others.
    let key = Key::new(launch.entry, [kernel.text.as_ptr() as u64, kernel.text.len() as u64]);
    let function = cx.modules.get(key, || Ok(kernel.text.to_string()))?;
    let mut args = Args::default();
    blocks.iter().for_each(|block| args.push(block.address()));
    for (x, copied) in inputs.iter().zip(&copies) {
        args.push(copied.as_ref().map_or_else(|| address(x), |block| block.address()));
    }
    launch.numbers.iter().for_each(|&number| args.push(number));
    cx.launch_blocks(op.name(), function, 0, launch.grid, launch.block, launch.shared_bytes, &args)?;
    Ok(blocks.into_iter().map(storage).collect())
}
