//! Softmax along an axis, and its logarithm.

use std::sync::LazyLock;

use smallvec::{SmallVec, smallvec};
use tensor_core::expr::build;
use tensor_core::op::{ReduceKind, Softmax};
use tensor_core::{Expr, Meta, Result, Storages, Tensor};

use super::copy::row_major;
use super::rows::{self, Fold, Form, Places, Rows};
use super::{Context, address, storage};

struct Formulas {
    exp: Expr,
    logarithm: Expr,
    softmax: Expr,
    log_softmax: Expr,
    quotient: Expr,
}

/// Built once: building takes longer than a launch.
static FORMULAS: LazyLock<Formulas> = LazyLock::new(|| Formulas {
    exp: build(|[x, max]| (x - max).exp()),
    logarithm: build(|[sum]| sum.ln()),
    softmax: build(|[x, max, sum]| (x - max).exp() / sum),
    log_softmax: build(|[x, max, log_sum]| x - max - log_sum),
    quotient: build(|[e, sum]| e / sum),
});

/// e^(x − max) / Σ e^(x − max), or x − max − ln Σ e^(x − max): one reading where the axis fits in registers.
pub(crate) fn softmax(cx: &Context, op: &Softmax, x: &Tensor, meta: &Meta) -> Result<Storages> {
    let block = cx.output(meta)?;
    if !x.is_empty() {
        let wide = x.dtype().compute();
        let name = if op.log { "log_softmax" } else { "softmax" };
        let Formulas { exp, logarithm, softmax, log_softmax, quotient } = &*FORMULAS;
        let rows = Rows {
            name,
            entry: name,
            elements: smallvec![x.dtype()],
            values: SmallVec::new(),
            types: smallvec![wide],
            total: wide,
            folds: smallvec![
                Fold { kind: ReduceKind::Max, term: Expr::identity(), finish: None },
                Fold { kind: ReduceKind::Sum, term: exp.clone(), finish: op.log.then(|| logarithm.clone()) },
            ],
            result: Some((if op.log { log_softmax } else { softmax }.clone(), meta.dtype)),
            shortcut: (!op.log).then(|| quotient.clone()),
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
