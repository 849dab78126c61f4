//! Softmax along an axis, and its logarithm.

use std::sync::LazyLock;

use smallvec::{SmallVec, smallvec};
use tensor_core::expr::build;
use tensor_core::op::{ReduceKind, Softmax};
use tensor_core::{Expr, Meta, Result, Storages, Tensor};

use super::Context;
use super::context::window;
use super::moves::row_major;
use super::reduce::narrowed;
use super::rows::{self, Fold, Places, Rows, total};
use crate::batch::Window;

struct Formulas {
    exp: Expr,
    logarithm: Expr,
    softmax: Expr,
    log_softmax: Expr,
}

/// Built once: building takes longer than a dispatch.
static FORMULAS: LazyLock<Formulas> = LazyLock::new(|| Formulas {
    exp: build(|[x, max]| (x - max).exp()),
    logarithm: build(|[sum]| sum.ln()),
    softmax: build(|[x, max, sum]| (x - max).exp() / sum),
    log_softmax: build(|[x, max, log_sum]| x - max - log_sum),
});

/// e^(x − max) / Σ e^(x − max), or x − max − ln Σ e^(x − max): the axis is read three times.
pub(crate) fn softmax(cx: &Context, op: &Softmax, x: &Tensor, meta: &Meta) -> Result<Storages> {
    let name = if op.log { "log_softmax" } else { "softmax" };
    let wide = total(x.dtype());
    let to = cx.output(&Meta::new(meta.shape.clone(), wide))?;
    if !x.is_empty() {
        let Formulas { exp, logarithm, softmax, log_softmax } = &*FORMULAS;
        let rows = Rows {
            name,
            elements: smallvec![x.dtype()],
            values: SmallVec::new(),
            types: smallvec![wide],
            total: wide,
            folds: smallvec![
                Fold { kind: ReduceKind::Max, term: Expr::identity(), finish: None },
                Fold { kind: ReduceKind::Sum, term: exp.clone(), finish: op.log.then(|| logarithm.clone()) },
            ],
            result: Some(if op.log { log_softmax } else { softmax }.clone()),
            totals: SmallVec::new(),
        };
        let strides = [row_major(&meta.shape), SmallVec::from_slice(x.layout().strides())];
        let (kept, folded) = rows::plans(&meta.shape, &strides, &[op.axis]);
        let threads = rows::threads(&kept, &folded, 1, 3);
        let windows = smallvec![Window::all(to.buffer()), window(x)];
        rows.run(cx, threads, &Places { kept, folded, windows, begins: smallvec![0, x.layout().offset()] }, 1)?;
    }
    narrowed(cx, name, rows::wide_tensor(to, meta, x), meta)
}
