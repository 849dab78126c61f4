//! Normalisation over axes, and its adjoint.

use std::sync::LazyLock;

use smallvec::{SmallVec, smallvec};
use tensor_core::expr::{build, build_with};
use tensor_core::op::{Normalize, NormalizeGrad, ReduceKind};
use tensor_core::{Expr, Meta, Result, Storages, Tensor};

use super::Context;
use super::context::window;
use super::moves::row_major;
use super::reduce::narrowed;
use super::rows::{self, Fold, Places, Rows, total};
use crate::batch::Window;

/// y = (x − mean)·rstd, rstd, mean.
pub(crate) fn normalize(cx: &Context, op: &Normalize, x: &Tensor, outputs: &[Meta]) -> Result<Storages> {
    let wide = total(x.dtype());
    let blocks = outputs.iter().map(|meta| cx.output(&Meta::new(meta.shape.clone(), wide)));
    let blocks = blocks.collect::<Result<SmallVec<[_; 3]>>>()?;
    let n = op.axes.iter().map(|&axis| x.dims()[axis]).product::<usize>() as f64;
    let rstd = with_numbers(&FORMULAS.rstd, &[n, op.epsilon]);
    let squares = |term: Expr| Fold { kind: ReduceKind::Sum, term, finish: Some(rstd) };
    let (folds, result, totals): (SmallVec<[Fold; 2]>, _, _) = if op.center {
        let mean = Fold { kind: ReduceKind::Sum, term: Expr::identity(), finish: Some(quotient(n)) };
        (smallvec![mean, squares(FORMULAS.deviation.clone())], &FORMULAS.centered, smallvec![1, 0])
    } else {
        (smallvec![squares(FORMULAS.square.clone())], &FORMULAS.scaled, smallvec![0])
    };
    let passes = folds.len() + 1;
    let rows = Rows {
        name: "normalize",
        elements: smallvec![x.dtype()],
        values: SmallVec::new(),
        types: smallvec![wide],
        total: wide,
        folds,
        result: Some(result.clone()),
        totals,
    };
    let strides = [row_major(&outputs[0].shape), SmallVec::from_slice(x.layout().strides())];
    let (kept, folded) = rows::plans(x.dims(), &strides, &op.axes);
    let threads = rows::threads(&kept, &folded, 1, passes);
    let mut windows: SmallVec<[Window<'_>; 8]> = smallvec![Window::all(blocks[0].buffer()), window(x)];
    windows.extend(blocks[1..].iter().map(|block| Window::all(block.buffer())));
    rows.run(cx, threads, &Places { kept, folded, windows, begins: smallvec![0, x.layout().offset()] }, 1)?;
    let mut storages = Storages::new();
    for (block, meta) in blocks.into_iter().zip(outputs) {
        storages.extend(narrowed(cx, "normalize", rows::wide_tensor(block, meta, x), meta)?);
    }
    Ok(storages)
}

/// rstd·(g − mean(g) − y·mean(g·y)).
pub(crate) fn normalize_grad(cx: &Context, op: &NormalizeGrad, inputs: &[&Tensor], meta: &Meta) -> Result<Storages> {
    let [g, y, rstd] = inputs else { unreachable!("invariant: normalize_grad takes three") };
    let (wide, dtype) = (total(g.dtype()), g.dtype());
    let to = cx.output(&Meta::new(meta.shape.clone(), wide))?;
    let n = op.axes.iter().map(|&axis| g.dims()[axis]).product::<usize>() as f64;
    let products = Fold { kind: ReduceKind::Sum, term: FORMULAS.product.clone(), finish: Some(quotient(n)) };
    let mut folds = smallvec![products];
    let result = if op.center {
        folds.push(Fold { kind: ReduceKind::Sum, term: FORMULAS.grad.clone(), finish: Some(quotient(n)) });
        &FORMULAS.centered_grad
    } else {
        &FORMULAS.scaled_grad
    };
    let passes = folds.len() + 1;
    let rows = Rows {
        name: "normalize_grad",
        elements: smallvec![dtype; 2],
        values: smallvec![dtype],
        types: smallvec![wide; 3],
        total: wide,
        folds,
        result: Some(result.clone()),
        totals: SmallVec::new(),
    };
    let broadcast = rstd.layout().broadcast_to(g.shape()).expect("invariant: rstd has the axes at size 1");
    let of = SmallVec::from_slice;
    let strides = [row_major(&meta.shape), of(g.layout().strides()), of(y.layout().strides()), of(broadcast.strides())];
    let (kept, _) = rows::plans(g.dims(), &strides, &op.axes);
    // What is one per row has no place along the folded axes.
    let (_, folded) = rows::plans(g.dims(), &strides[..3], &op.axes);
    let threads = rows::threads(&kept, &folded, 1, passes);
    let windows = smallvec![Window::all(to.buffer()), window(g), window(y), window(rstd)];
    let begins = smallvec![0, g.layout().offset(), y.layout().offset(), rstd.layout().offset()];
    rows.run(cx, threads, &Places { kept, folded, windows, begins }, 1)?;
    narrowed(cx, "normalize_grad", rows::wide_tensor(to, meta, g), meta)
}

struct Formulas {
    quotient: Expr,
    rstd: Expr,
    square: Expr,
    deviation: Expr,
    scaled: Expr,
    centered: Expr,
    product: Expr,
    grad: Expr,
    scaled_grad: Expr,
    centered_grad: Expr,
}

/// Built once: building takes longer than a dispatch.
static FORMULAS: LazyLock<Formulas> = LazyLock::new(|| Formulas {
    quotient: build_with(1, &[1.0], |x, numbers| x[0] / numbers[0]),
    rstd: build_with(1, &[1.0, 0.0], |x, numbers| (x[0] / numbers[0] + numbers[1]).rsqrt()),
    square: build(|[x]| x.square()),
    deviation: build(|[x, mean]| (x - mean).square()),
    scaled: build(|[x, rstd]| x * rstd),
    centered: build(|[x, mean, rstd]| (x - mean) * rstd),
    product: build(|[g, y, _]| g * y),
    grad: build(|[g, _, _, _]| g),
    scaled_grad: build(|[g, y, rstd, gy]| rstd * (g - y * gy)),
    centered_grad: build(|[g, y, rstd, gy, mean]| rstd * (g - mean - y * gy)),
});

fn with_numbers(formula: &Expr, numbers: &[f64]) -> Expr {
    let mut expr = formula.clone();
    expr.args = numbers.iter().map(|&v| v.into()).collect();
    expr
}

fn quotient(n: f64) -> Expr {
    with_numbers(&FORMULAS.quotient, &[n])
}
