//! Normalisation over axes, and its adjoint.

use smallvec::{SmallVec, smallvec};
use tensor_core::expr::{build, build_with};
use tensor_core::op::{Normalize, NormalizeGrad, ReduceKind};
use tensor_core::{Expr, Meta, Result, Storages, Tensor};

use super::copy::row_major;
use super::rows::{self, Fold, Form, Places, Rows};
use super::{Context, address, storage};

/// y = (x − mean)·rstd, rstd, mean.
pub(crate) fn normalize(cx: &Context, op: &Normalize, x: &Tensor, outputs: &[Meta]) -> Result<Storages> {
    let blocks = outputs.iter().map(|meta| cx.output(meta)).collect::<Result<SmallVec<[_; 3]>>>()?;
    let (wide, dtype) = (x.dtype().compute(), x.dtype());
    let n = op.axes.iter().map(|&axis| x.dims()[axis]).product::<usize>() as f64;
    let rstd = build_with(1, &[n, op.epsilon], |x, numbers| (x[0] / numbers[0] + numbers[1]).rsqrt());
    let squares = |term: Expr| Fold { kind: ReduceKind::Sum, term, finish: Some(rstd) };
    let (folds, result, totals): (SmallVec<[Fold; 2]>, _, _) = if op.center {
        let mean = Fold { kind: ReduceKind::Sum, term: build(|[x]| x), finish: Some(quotient(n)) };
        let result = build(|[x, mean, rstd]| (x - mean) * rstd);
        (smallvec![mean, squares(build(|[x, mean]| (x - mean).square()))], result, smallvec![(1, dtype), (0, dtype)])
    } else {
        (smallvec![squares(build(|[x]| x.square()))], build(|[x, rstd]| x * rstd), smallvec![(0, dtype)])
    };
    let rows = Rows {
        name: "normalize",
        entry: "normalize",
        elements: smallvec![dtype],
        values: SmallVec::new(),
        types: smallvec![wide],
        total: wide,
        folds,
        result: Some((result, dtype)),
        shortcut: None,
        totals,
    };
    let strides = [row_major(&outputs[0].shape), SmallVec::from_slice(x.layout().strides())];
    let (kept, folded) = rows::plans(x.dims(), &strides, &op.axes);
    let form = Form::new(&rows, kept.len(), folded.len(), rows::is_column(&kept, &folded, 1));
    let addresses = smallvec![blocks[0].address(), address(x)];
    let totals = blocks[1..].iter().map(|block| block.address()).collect();
    rows.run(cx, form, &Places { kept, folded, addresses, totals }, 1)?;
    Ok(blocks.into_iter().map(storage).collect())
}

/// rstd·(g − mean(g) − y·mean(g·y)).
pub(crate) fn normalize_grad(cx: &Context, op: &NormalizeGrad, inputs: &[&Tensor], meta: &Meta) -> Result<Storages> {
    let [g, y, rstd] = inputs else { unreachable!("invariant: normalize_grad takes three") };
    let block = cx.output(meta)?;
    let (wide, dtype) = (g.dtype().compute(), g.dtype());
    let n = op.axes.iter().map(|&axis| g.dims()[axis]).product::<usize>() as f64;
    let products = Fold { kind: ReduceKind::Sum, term: build(|[g, y, _]| g * y), finish: Some(quotient(n)) };
    let mut folds = smallvec![products];
    let result = if op.center {
        folds.push(Fold { kind: ReduceKind::Sum, term: build(|[g, _, _, _]| g), finish: Some(quotient(n)) });
        build(|[g, y, rstd, gy, mean]| rstd * (g - mean - y * gy))
    } else {
        build(|[g, y, rstd, gy]| rstd * (g - y * gy))
    };
    let rows = Rows {
        name: "normalize_grad",
        entry: "normalize_grad",
        elements: smallvec![dtype; 2],
        values: smallvec![dtype],
        types: smallvec![wide; 3],
        total: wide,
        folds,
        result: Some((result, dtype)),
        shortcut: None,
        totals: SmallVec::new(),
    };
    let broadcast = rstd.layout().broadcast_to(g.shape()).expect("invariant: rstd has the axes at size 1");
    let of = SmallVec::from_slice;
    let strides = [row_major(&meta.shape), of(g.layout().strides()), of(y.layout().strides()), of(broadcast.strides())];
    let (kept, _) = rows::plans(g.dims(), &strides, &op.axes);
    // What is one per row has no place along the folded axes.
    let (_, folded) = rows::plans(g.dims(), &strides[..3], &op.axes);
    let form = Form::new(&rows, kept.len(), folded.len(), rows::is_column(&kept, &folded, 1));
    let addresses = smallvec![block.address(), address(g), address(y), address(rstd)];
    rows.run(cx, form, &Places { kept, folded, addresses, totals: SmallVec::new() }, 1)?;
    Ok(Storages::from_iter([storage(block)]))
}

fn quotient(n: f64) -> Expr {
    build_with(1, &[n], |x, numbers| x[0] / numbers[0])
}
