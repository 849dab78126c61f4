//! An optimizer's step in place.

use std::sync::Arc;

use smallvec::SmallVec;
use tensor_core::{Result, Storage, Target, Tensor, UpdateRule};

use super::{Context, address, copy, map, storage};
use crate::driver::Address;
use crate::memory::Block;

/// Applies a rule to all targets. What can fail for lack of memory, the copies of what is shared, comes first.
pub(crate) fn update(cx: &Context, rule: &UpdateRule, targets: &mut [Target<'_>]) -> Result<()> {
    let mut fresh: Vec<(usize, usize, Block)> = Vec::new();
    for (t, target) in targets.iter_mut().enumerate() {
        for k in 0..rule.outputs.len() {
            let x = written(target, k);
            if !is_own(x) {
                fresh.push((t, k, copy::contiguous(cx, x)?));
            }
        }
    }
    for (t, k, block) in fresh {
        let x = written(&mut targets[t], k);
        let (meta, device) = (x.meta(), x.place().clone());
        *x = Tensor::from_storage(storage(block), meta, device);
    }
    for target in targets {
        let operands: SmallVec<[&Tensor; 4]> =
            [&*target.param, target.grad].into_iter().chain(target.state.iter()).collect();
        // Every thread reads its elements before it writes them.
        let to: SmallVec<[Address; 4]> =
            std::iter::once(&*target.param).chain(target.state.iter()).take(rule.outputs.len()).map(address).collect();
        map::run(cx, "update", &rule.outputs, &operands, target.param.dims(), &to)?;
    }
    Ok(())
}

/// What output `k` of a rule overwrites.
fn written<'t>(target: &'t mut Target<'_>, k: usize) -> &'t mut Tensor {
    if k == 0 { target.param } else { &mut target.state[k - 1] }
}

/// Whether the tensor may be overwritten where it is: row-major, and nobody else has its storage.
fn is_own(x: &mut Tensor) -> bool {
    x.is_contiguous() && x.unique_storage().is_some_and(|storage: &mut Storage| Arc::get_mut(storage).is_some())
}
