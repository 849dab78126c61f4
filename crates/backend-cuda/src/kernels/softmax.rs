//! Softmax along an axis, and its logarithm.

use smallvec::{SmallVec, smallvec};
use tensor_core::expr::build;
use tensor_core::op::{ReduceKind, Softmax};
use tensor_core::{Meta, Result, Storages, Tensor};

use super::copy::row_major;
use super::rows::{self, Fold, Form, Places, Rows};
use super::{Context, address, storage};

/// e^(x − max) / Σ e^(x − max), or x − max − ln Σ e^(x − max): one reading where the axis fits in registers.
pub(crate) fn softmax(cx: &Context, op: &Softmax, x: &Tensor, meta: &Meta) -> Result<Storages> {
    let block = cx.output(meta)?;
    if !x.is_empty() {
        let wide = x.dtype().compute();
        let name = if op.log { "log_softmax" } else { "softmax" };
        let result = if op.log {
            build(|[x, max, log_sum]| x - max - log_sum)
        } else {
            build(|[x, max, sum]| (x - max).exp() / sum)
        };
        let rows = Rows {
            name,
            entry: name,
            elements: smallvec![x.dtype()],
            values: SmallVec::new(),
            types: smallvec![wide],
            total: wide,
            folds: smallvec![
                Fold { kind: ReduceKind::Max, term: build(|[x]| x), finish: None },
                Fold {
                    kind: ReduceKind::Sum,
                    term: build(|[x, max]| (x - max).exp()),
                    finish: op.log.then(|| build(|[sum]| sum.ln())),
                },
            ],
            result: Some((result, meta.dtype)),
            shortcut: (!op.log).then(|| build(|[e, sum]| e / sum)),
            totals: SmallVec::new(),
        };
        let strides = [row_major(&meta.shape), SmallVec::from_slice(x.layout().strides())];
        let (kept, folded) = rows::plans(&meta.shape, &strides, &[op.axis]);
        let form = Form::new(&rows, kept.len(), folded.len(), rows::is_column(&kept, &folded, 1));
        let addresses = smallvec![block.address(), address(x)];
        rows.run(cx, form, &Places { kept, folded, addresses, totals: SmallVec::new() }, 1)?;
    }
    Ok(Storages::from_iter([storage(block)]))
}
