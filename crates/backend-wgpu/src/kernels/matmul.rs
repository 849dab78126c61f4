//! The batched matrix product: which form computes it.

use smallvec::{SmallVec, smallvec};
use tensor_core::expr::build;
use tensor_core::op::{MatMul, Reduce, ReduceKind};
use tensor_core::{Dims, Layout, Meta, Result, Shape, Storages, Tensor};

use super::moves::row_major;
use super::product::{Product, plan, with_epilogue};
use super::{Context, reduce};

/// With so few rows or columns a fold reads as much as a tile, and wastes nothing.
const FEW: usize = 4;
/// From so long a sum on a group folds it.
const LONG: usize = 256;

/// y = epilogue(lhs · rhs, extra…).
pub(crate) fn matmul(cx: &Context, op: &MatMul, inputs: &[&Tensor], meta: &Meta) -> Result<Storages> {
    let [lhs, rhs, extra @ ..] = inputs else { unreachable!("invariant: matmul takes two or more") };
    let rank = meta.shape.rank();
    let (m, n, k) = (meta.shape[rank - 2], meta.shape[rank - 1], lhs.dims()[lhs.rank() - 1]);
    let strides = |x: &Tensor, matrix: [usize; 2]| {
        let dims: Dims = meta.shape[..rank - 2].iter().chain(&matrix).copied().collect();
        let layout = x.layout().broadcast_to(&Shape::new(&dims)).expect("invariant: core checked the batch");
        SmallVec::<[isize; 4]>::from_slice(layout.strides())
    };
    let (a, b) = (strides(lhs, [m, k]), strides(rhs, [k, n]));
    // A fold's neighbouring invocations are neighbours along k: the operands must lie so.
    let is_near = |own: isize, other: isize, many: usize| many <= FEW || own.unsigned_abs() <= other.unsigned_abs();
    let is_along = is_near(a[rank - 1], a[rank - 2], m) && is_near(b[rank - 2], b[rank - 1], n);
    if m.min(n) <= FEW && k >= LONG && is_along && !meta.shape.is_empty() {
        let dims: Dims = meta.shape.iter().copied().chain([k]).collect();
        let view = |x: &Tensor, strides: &[isize], inner: [isize; 3]| {
            let strides = strides[..rank - 2].iter().copied().chain(inner).collect();
            x.with_layout(Layout::from_parts(Shape::new(&dims), strides, x.layout().offset()))
        };
        let lhs_view = view(lhs, &a, [a[rank - 2], 0, a[rank - 1]]);
        let rhs_view = view(rhs, &b, [0, b[rank - 1], b[rank - 2]]);
        let fold = Reduce { producer: build(|[a, b]| a * b), ..Reduce::new("matmul", ReduceKind::Sum, &[rank], false) };
        let plain = Meta::new(meta.shape.clone(), lhs.dtype());
        let product = reduce::reduce(cx, &fold, &[&lhs_view, &rhs_view], &plain)?;
        return with_epilogue(cx, "matmul", &op.epilogue, product, lhs, extra, meta);
    }
    let mut outputs: SmallVec<[SmallVec<[isize; 4]>; 4]> = smallvec![row_major(&meta.shape)];
    outputs.extend(extra.iter().map(|x| strides(x, [m, n])));
    let with = |more: &[&SmallVec<[isize; 4]>]| -> SmallVec<[SmallVec<[isize; 4]>; 4]> {
        outputs.iter().chain(more.iter().copied()).cloned().collect()
    };
    let depth = [SmallVec::from_slice(&a[rank - 1..]), SmallVec::from_slice(&b[rank - 2..rank - 1])];
    let product = Product {
        name: "matmul",
        a: lhs,
        b: rhs,
        extra,
        epilogue: op.epilogue.clone(),
        batch: plan(&meta.shape, &with(&[&a, &b]), 0..rank - 2),
        rows: plan(&meta.shape, &with(&[&a]), rank - 2..rank - 1),
        columns: plan(&meta.shape, &with(&[&b]), rank - 1..rank),
        depth: plan(&[k], &depth, 0..1),
        along: [
            a[rank - 1].unsigned_abs() < a[rank - 2].unsigned_abs(),
            b[rank - 2].unsigned_abs() < b[rank - 1].unsigned_abs(),
        ],
        patches: SmallVec::new(),
    };
    product.run(cx, meta)
}
