//! Cross-entropy against class indices: the logarithms of the softmax, of which each row's is picked.

use tensor_core::expr::build;
use tensor_core::{Error, Meta, Result, Storages, Tensor};

use super::{Context, indexing, map, storage};

/// −log softmax(logits)[target], per row.
pub(crate) fn cross_entropy(cx: &Context, inputs: &[&Tensor], meta: &Meta) -> Result<Storages> {
    let [logits, target] = inputs else { unreachable!("invariant: cross_entropy takes two") };
    let axis = logits.rank() - 1;
    let n_classes = logits.dims()[axis];
    let logarithms = logits.log_softmax(axis)?;
    let rows = target.unsqueeze(axis)?;
    let wrong = move |target: i64, _: usize| {
        let text = format!("target is out of range: target {target}, classes {n_classes}; classes count from 0");
        Error::index("cross_entropy", text)
    };
    let picked = Meta::new(rows.shape().clone(), meta.dtype);
    let picked = indexing::pick(cx, axis, &logarithms, &rows, &picked, Box::new(wrong))?;
    let picked = Tensor::from_storage(storage(picked), meta.clone(), logits.place().clone());
    let to = cx.output(meta)?;
    map::run(cx, "cross_entropy", &[build(|[x]| -x)], &[&picked], &meta.shape, &[to.buffer()])?;
    Ok(Storages::from_iter([storage(to)]))
}
