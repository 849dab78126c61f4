//! Sums of products over any two operands whose elements can be placed: matrix products and convolutions.

mod text;

use std::ops::Range;

use smallvec::SmallVec;
use tensor_core::op::{Reduce, ReduceKind};
use tensor_core::plan::Plan;
use tensor_core::{DType, Expr, Meta, Result, Shape, Storages, Tensor};

use super::context::{GROUP, window};
use super::map::push_numbers;
use super::rows::{MOST_ITERATIONS, total, wide_tensor};
use super::{Context, map, reduce, storage};
use crate::args::Args;
use crate::batch::Window;
use crate::index;
use crate::memory::Block;
use crate::pipeline::Key;

/// So long are sums at most, of a tile and of one invocation: a tile's loop runs five times per 16 products.
const MOST_DEPTH: [usize; 2] = [65_536, MOST_ITERATIONS];
/// Parts of a sum are so long at least: of a tile's, and of one invocation's.
const LEAST_DEPTH: [usize; 2] = [256, 64];
/// With so few rows or columns, or so few elements, most of a tile would be idle.
const FEW: usize = 4;
const FEW_ELEMENTS: usize = 256;

/// result(batch, m, n) = epilogue(Σ_k a(batch, m, k)·b(batch, k, n), extra…).
pub(super) struct Product<'a> {
    pub(super) name: &'static str,
    pub(super) a: &'a Tensor,
    pub(super) b: &'a Tensor,
    pub(super) extra: &'a [&'a Tensor],
    pub(super) epilogue: Expr,
    /// Strides of the result, the extra inputs, a and b.
    pub(super) batch: Plan,
    /// Strides of the result, the extra inputs and a.
    pub(super) rows: Plan,
    /// Strides of the result, the extra inputs and b.
    pub(super) columns: Plan,
    /// Strides of a and b.
    pub(super) depth: Plan,
    /// Whether a's and b's neighbours lie along k.
    pub(super) along: [bool; 2],
    /// The trailing axes of `columns` and `depth` along which b is a window over an axis of its own; none of a plain operand.
    pub(super) patches: SmallVec<[Patch; 3]>,
}

/// An axis of b whose coordinate is (column·by_column + k·by_depth − before) / divisor: where that is no integer, or
/// outside, b is zero.
#[derive(Clone, Copy, Debug)]
pub(super) struct Patch {
    pub(super) by_column: isize,
    pub(super) by_depth: isize,
    pub(super) before: isize,
    pub(super) divisor: usize,
    pub(super) size: usize,
    pub(super) stride: isize,
}

/// The form of a kernel: what its text depends on besides types and ranks.
#[derive(Clone, Copy)]
enum Form {
    /// One invocation per element.
    Each,
    /// A group per tile: an invocation's elements along each side, and how far it goes along k at once.
    Tile { r: usize, step: usize },
}

impl Product<'_> {
    /// The same product with b as a plain operand, if its windows lie apart from any edge: kernels of one tap, no padding.
    pub(super) fn simplified(mut self) -> Self {
        let n = self.patches.len();
        let (columns, depth) = (self.columns.rank() - n, self.depth.rank() - n);
        let is_inside = |(k, axis): (usize, &Patch)| {
            let by_column = axis.by_column * (self.columns.dims[columns + k] as isize - 1).max(0);
            let by_depth = axis.by_depth * (self.depth.dims[depth + k] as isize - 1).max(0);
            let last = by_column.max(0) + by_depth.max(0);
            axis.divisor == 1 && axis.before == 0 && by_column.min(by_depth) >= 0 && last < axis.size as isize
        };
        if n == 0 || !self.patches.iter().enumerate().all(is_inside) {
            return self;
        }
        let b = self.columns.strides.len() - 1;
        for (k, axis) in self.patches.drain(..).enumerate() {
            self.columns.strides[b][columns + k] = axis.by_column * axis.stride;
            self.depth.strides[1][depth + k] = axis.by_depth * axis.stride;
        }
        self.columns = Plan::of(&self.columns.dims, self.columns.strides);
        self.depth = Plan::of(&self.depth.dims, self.depth.strides);
        self
    }

    /// The result.
    pub(super) fn run(&self, cx: &Context, meta: &Meta) -> Result<Storages> {
        let dtype = self.a.dtype();
        let n = meta.shape.len();
        if n == 0 {
            return Ok(Storages::from_iter([storage(cx.output(meta)?)]));
        }
        let (form, parts) = self.form(cx.gpu.busy_groups);
        if parts == 1 {
            let wide = total(meta.dtype);
            let to = cx.output(&Meta::new(meta.shape.clone(), wide))?;
            self.dispatch(cx, form, 1, self.extra, &self.epilogue, &to, n)?;
            return reduce::narrowed(cx, self.name, wide_tensor(to, meta, self.a), meta);
        }
        let sums = Meta::new(Shape::new(&[parts, n]), total(dtype));
        let to = cx.output(&sums)?;
        self.dispatch(cx, form, parts, &[], &Expr::identity(), &to, n)?;
        let to = Tensor::from_storage(storage(to), sums, self.a.place().clone());
        let flat = Meta::new(Shape::new(&[n]), dtype);
        let product = reduce::reduce(cx, &Reduce::new(self.name, ReduceKind::Sum, &[0], false), &[&to], &flat)?;
        with_epilogue(cx, self.name, &self.epilogue, product, self.a, self.extra, meta)
    }

    /// The form, and into how many parts sums are cut, so that there are `busy` groups: by sizes alone, and the order of a sum
    /// is fixed.
    fn form(&self, busy: usize) -> (Form, usize) {
        let (rows, columns, depth) = (self.rows.len(), self.columns.len(), self.depth.len());
        let tiles = |tile: usize| self.batch.len() * rows.div_ceil(tile) * columns.div_ceil(tile);
        let (form, groups, kind) = if rows.min(columns) <= FEW || rows * columns <= FEW_ELEMENTS {
            (Form::Each, tiles(1).div_ceil(GROUP), 1)
        } else {
            let r = if tiles(64) >= busy { 4 } else { 2 };
            let step = if self.a.dtype().size_bytes() == 8 { 8 } else { 16 };
            (Form::Tile { r, step }, tiles(16 * r), 0)
        };
        let (least, most) = (LEAST_DEPTH[kind], MOST_DEPTH[kind]);
        let wanted = (busy / groups).min(depth / least).max(depth.div_ceil(most)).max(1);
        // Parts begin at a step, and none is empty.
        (form, depth.div_ceil(segment(depth, wanted, form)).max(1))
    }

    fn dispatch(
        &self,
        cx: &Context,
        form: Form,
        parts: usize,
        extra: &[&Tensor],
        epilogue: &Expr,
        to: &Block,
        n: usize,
    ) -> Result<()> {
        let dtypes: SmallVec<[DType; 4]> =
            std::iter::once(self.a.dtype()).chain(extra.iter().map(|x| x.dtype())).collect();
        // Parts have no extra inputs: neither have the plans.
        let without = |plan: &Plan| {
            let is_left = |&k: &usize| k == 0 || k > self.extra.len() - extra.len();
            let strides = (0..plan.strides.len()).filter(is_left).map(|k| plan.strides[k].clone()).collect();
            Plan { dims: plan.dims.clone(), strides }
        };
        let (batch, rows, columns) = (without(&self.batch), without(&self.rows), without(&self.columns));
        let depth = self.depth.len();
        let tasks = batch.len() * parts;
        let mut args = Args::new();
        for size in [batch.len(), segment(depth, parts, form), depth, rows.len(), columns.len(), n] {
            args.push(size);
        }
        let groups = match form {
            Form::Each => {
                args.push(tasks * rows.len() * columns.len());
                (tasks * rows.len() * columns.len()).div_ceil(GROUP)
            }
            Form::Tile { r, .. } => {
                let [down, across] = [&rows, &columns].map(|plan| plan.len().div_ceil(16 * r));
                [tasks * down * across, down, across].into_iter().for_each(|size| args.push(size));
                tasks * down * across
            }
        };
        let begins = std::iter::once(0).chain(extra.iter().chain([&self.a, &self.b]).map(|x| x.layout().offset()));
        index::push_places(&mut args, &batch, begins);
        let outputs = 1 + extra.len();
        index::push_advance(&mut args, &some(&rows, 0..outputs));
        index::push_advance(&mut args, &some(&columns, 0..outputs));
        index::push_advance(&mut args, &some(&rows, outputs..outputs + 1));
        index::push_advance(&mut args, &some(&self.depth, 0..1));
        self.push_b(&mut args, &some(&columns, outputs..outputs + 1), &some(&self.depth, 1..2));
        push_numbers(&mut args, self.name, std::slice::from_ref(epilogue), &dtypes)?;
        let ranks = [batch.rank(), rows.rank(), columns.rank(), self.depth.rank()];
        let structure = dtypes.iter().map(|&dtype| dtype as u64).chain(ranks.iter().map(|&rank| rank as u64)).chain([
            epilogue.code.id(),
            if let Form::Tile { r, .. } = form { r as u64 } else { 0 },
            self.along[0].into(),
            self.along[1].into(),
            self.patches.len() as u64,
            self.is_spread().into(),
        ]);
        let operands = extra.iter().chain([&self.a, &self.b]).map(|x| window(x));
        let windows: SmallVec<[Window<'_>; 8]> = std::iter::once(Window::all(to.buffer())).chain(operands).collect();
        let text = || self.text(form, &dtypes, epilogue, ranks);
        cx.run(self.name, Key::new("product", structure), text, &windows, &args, groups)
    }

    /// Whether elements of b lie apart along an axis: between them are zeros.
    fn is_spread(&self) -> bool {
        self.patches.iter().any(|axis| axis.divisor != 1)
    }
}

/// How long parts of a sum are: whole steps.
fn segment(depth: usize, parts: usize, form: Form) -> usize {
    let step = if let Form::Tile { step, .. } = form { step } else { 1 };
    depth.div_ceil(parts).next_multiple_of(step).max(step)
}

/// A product's storages through an epilogue, as a kernel of its own.
pub(super) fn with_epilogue(
    cx: &Context,
    name: &'static str,
    epilogue: &Expr,
    product: Storages,
    like: &Tensor,
    extra: &[&Tensor],
    meta: &Meta,
) -> Result<Storages> {
    if epilogue.is_identity() && extra.is_empty() {
        return Ok(product);
    }
    let product = product.into_iter().next().expect("invariant: a product has one output");
    let plain = Meta::new(meta.shape.clone(), like.dtype());
    let product = Tensor::from_storage(product, plain, like.place().clone());
    let inputs: SmallVec<[&Tensor; 4]> = std::iter::once(&product).chain(extra.iter().copied()).collect();
    let to = cx.output(meta)?;
    map::run(cx, name, std::slice::from_ref(epilogue), &inputs, &meta.shape, &[to.buffer()])?;
    Ok(Storages::from_iter([storage(to)]))
}

/// A plan of some axes of operands with these strides.
pub(super) fn plan(dims: &[usize], strides: &[SmallVec<[isize; 4]>], axes: Range<usize>) -> Plan {
    let strides = strides.iter().map(|all| SmallVec::from_slice(&all[axes.clone()])).collect();
    Plan::of(&dims[axes], strides)
}

/// The plan of some of its operands.
fn some(plan: &Plan, operands: Range<usize>) -> Plan {
    Plan { dims: plan.dims.clone(), strides: plan.strides[operands].iter().cloned().collect() }
}
