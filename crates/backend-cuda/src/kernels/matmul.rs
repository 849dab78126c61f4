//! Matrix products, and convolutions as such (conv.rs), by a ladder of kernels, chosen by shape, dtype and layout alone.
//!
//! | product | kernel |
//! |---|---|
//! | at most 2¹⁵ multiply-adds, or 2¹² per matrix, or at most 4 rows or columns and neighbours along K | reduction (`reduce_block.ptx`) |
//! | f16, bf16, from sm_80 on, operands that copies of 16 bytes can read | tensor cores (`matmul_mma.ptx`) |
//! | f16, bf16, from sm_80 on, others, from 2²² multiply-adds on | rows are copied 16 bytes apart, then the same |
//! | f32 on a device that may use TF32 | as f16 and bf16 |
//! | everything else | tiles in registers (`matmul_tile.ptx`) of 128×128, f64 and i64 and below 96 tiles 64×64 |
//! | below 64 tiles with K of 512 and more | parts of K in blocks of their own, then their sum (`matmul_parts`) |
//!
//! A convolution takes tensor cores from 2²² multiply-adds on, and is a reduction with 4 rows or columns and fewer.
//! Neither the machine nor the launch decides: the same product has the same bits on every device of one generation.

pub(crate) mod conv;
mod frame;
mod gather;
mod mma;
mod parts;
mod tile;

use smallvec::SmallVec;
use tensor_core::op::MatMul;
use tensor_core::plan::Plan;
use tensor_core::{DType, Dims, Expr, Layout, Meta, Result, Shape, Storages, Tensor};

use self::frame::{Geometry, Operand, Parts, Problem};
use super::{Context, address, contract, copy, map, storage};
use crate::driver::Address;
use crate::module::Key;

/// A kernel of the ladder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rung {
    /// One thread or block per element of the result.
    Reduce,
    /// Tiles in registers; the small ones if so.
    Tile {
        /// 64×64 rather than 128×128.
        is_small: bool,
    },
    /// Tensor cores: 16-bit floats from sm_80 on, f32 where TF32 is allowed.
    Mma,
}

/// What is chosen for batches of up to 1024 matrices when it is not left to the shape: for tests and measurements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The kernel; where it does not apply, tiles.
    pub rung: Rung,
    /// Into how many parts K is cut, at most.
    pub parts: usize,
}

/// The compute capability from which on there are tensor cores that these kernels use.
pub(crate) const TENSOR_CORES: (u32, u32) = (8, 0);
/// Up to so many multiply-adds a reduction is as good as any.
const SMALL: usize = 1 << 15;
/// From so many multiply-adds on copying the operands costs less than reading them element by element.
const LARGE: usize = 1 << 22;

/// y = epilogue(lhs · rhs, extra…), batched.
pub(crate) fn matmul(cx: &Context, op: &MatMul, inputs: &[&Tensor], meta: &Meta) -> Result<Storages> {
    if meta.shape.is_empty() {
        return Ok(Storages::from_iter([storage(cx.output(meta)?)]));
    }
    let [lhs, rhs, extra @ ..] = inputs else { unreachable!("invariant: matmul takes two or more") };
    let problem = problem(op, lhs, rhs, extra, meta);
    let (rung, limit) = choose(cx, &problem);
    match rung {
        Rung::Reduce => {
            let plain = Meta::new(meta.shape.clone(), lhs.dtype());
            let product = contract::product(cx, lhs, rhs, &plain)?;
            with_epilogue(cx, problem.name, &op.epilogue, product, plain, lhs, extra, meta)
        }
        Rung::Tile { is_small } => {
            let block = cx.output(meta)?;
            run(cx, &problem, &tile::geometry(lhs.dtype(), is_small), false, &meta.shape, limit, block.address())?;
            Ok(Storages::from_iter([storage(block)]))
        }
        Rung::Mma => {
            let (lhs, rhs) = (readable(cx, lhs, &problem.a, 1)?, readable(cx, rhs, &problem.b, 0)?);
            let problem = self::problem(op, &lhs, &rhs, extra, meta);
            let block = cx.output(meta)?;
            run(cx, &problem, &mma::geometry(problem.dtype), true, &meta.shape, limit, block.address())?;
            Ok(Storages::from_iter([storage(block)]))
        }
    }
}

/// A product's storages through an epilogue, as a launch of its own.
pub(super) fn with_epilogue(
    cx: &Context,
    name: &'static str,
    epilogue: &Expr,
    product: Storages,
    plain: Meta,
    like: &Tensor,
    extra: &[&Tensor],
    meta: &Meta,
) -> Result<Storages> {
    if epilogue.is_identity() && extra.is_empty() {
        return Ok(product);
    }
    let product = product.into_iter().next().expect("invariant: a product has one output");
    let product = Tensor::from_storage(product, plain, like.place().clone());
    let inputs: SmallVec<[&Tensor; 4]> = std::iter::once(&product).chain(extra.iter().copied()).collect();
    let block = cx.output(meta)?;
    map::run(cx, name, std::slice::from_ref(epilogue), &inputs, &meta.shape, &[block.address()])?;
    Ok(Storages::from_iter([storage(block)]))
}

fn problem<'a>(op: &MatMul, lhs: &Tensor, rhs: &Tensor, extra: &'a [&'a Tensor], meta: &Meta) -> Problem<'a> {
    let rank = meta.shape.rank();
    let (m, n, k) = (meta.shape[rank - 2], meta.shape[rank - 1], lhs.dims()[lhs.rank() - 1]);
    let batch = &meta.shape[..rank - 2];
    let broadcast = |x: &Tensor, matrix: &[usize]| {
        let shape = Shape::new(&batch.iter().chain(matrix).copied().collect::<Dims>());
        let layout = x.layout().broadcast_to(&shape).expect("invariant: core checked the batch");
        SmallVec::<[isize; 4]>::from_slice(layout.strides())
    };
    let (a, b) = (broadcast(lhs, &[m, k]), broadcast(rhs, &[k, n]));
    let to = copy::row_major(&meta.shape);
    let extras: SmallVec<[SmallVec<[isize; 4]>; 4]> = extra.iter().map(|x| broadcast(x, &[m, n])).collect();
    let axes = |of: &SmallVec<[isize; 4]>, from: usize, to: usize| SmallVec::from_slice(&of[from..to]);
    let plan = |of: &[usize], from: usize, until: usize| {
        Plan::of(of, std::iter::once(&to).chain(&extras).map(|s| axes(s, from, until)).collect())
    };
    Problem {
        name: "matmul",
        size: [m, n, k],
        a: Operand::new(address(lhs), a[rank - 2], a[rank - 1]),
        b: Operand::new(address(rhs), b[rank - 1], b[rank - 2]),
        dtype: lhs.dtype(),
        product: lhs.dtype(),
        result: meta.dtype,
        epilogue: op.epilogue.clone(),
        extra,
        batch: Plan::of(batch, [&a, &b].into_iter().map(|s| axes(s, 0, rank - 2)).collect()),
        matrices: plan(batch, 0, rank - 2),
        columns: plan(&[n], rank - 1, rank),
        rows: plan(&[m], rank - 2, rank - 1),
    }
}

/// The kernel, and into how many parts K is cut at most.
fn choose(cx: &Context, problem: &Problem<'_>) -> (Rung, usize) {
    let [m, n, k] = problem.size;
    let has_mma = match problem.dtype {
        DType::F16 | DType::BF16 => cx.driver.properties().capability >= TENSOR_CORES,
        DType::F32 => cx.tf32,
        DType::F64 | DType::I64 | DType::I32 | DType::U8 | DType::Bool => false,
    };
    // Thousands of small matrices are the reduction's in any case.
    if let Some(Choice { rung, parts }) = cx.matmul.filter(|_| problem.batch.len() <= 1024) {
        let rung = if rung == Rung::Mma && !has_mma { Rung::Tile { is_small: false } } else { rung };
        return (rung, parts);
    }
    let work = m * n * k * problem.batch.len();
    let is_along_k = problem.a.is_along_k() && problem.b.is_along_k();
    if work <= SMALL || m * n * k <= SMALL / 8 || (m.min(n) <= 4 && (is_along_k || problem.is_gathered())) {
        return (Rung::Reduce, 1);
    }
    let tiles = |g: &Geometry| problem.batch.len() * problem.tiles(g).iter().product::<usize>();
    let rung = if has_mma && (work >= LARGE || is_readable(problem)) {
        Rung::Mma
    } else {
        Rung::Tile { is_small: tiles(&tile::geometry(DType::F32, false)) < 96 }
    };
    let tiles = match rung {
        Rung::Tile { is_small } => tiles(&tile::geometry(problem.dtype, is_small)),
        _ => tiles(&mma::geometry(problem.dtype)),
    };
    (rung, if tiles < 64 { (128 / tiles).min(k / 256).max(1) } else { 1 })
}

/// Whether copies of 16 bytes can read both operands where they are.
fn is_readable(problem: &Problem<'_>) -> bool {
    let is_readable = |x, i: usize| is_readable_operand(x, &problem.batch.strides[i], problem.dtype);
    is_readable(&problem.a, 0) && is_readable(&problem.b, 1)
}

/// `batch`: the strides of its matrices.
fn is_readable_operand(x: &Operand, batch: &[isize], dtype: DType) -> bool {
    let (inner, other) = if x.is_along_k() { (x.k, x.outer) } else { (x.outer, x.k) };
    let fits = |&stride: &isize| stride % mma::chunk(dtype) as isize == 0;
    x.walk.is_none() && x.address.is_multiple_of(16) && inner == 1 && fits(&other) && batch.iter().all(fits)
}

/// The tensor itself if copies of 16 bytes can read it, else its elements in rows that begin at multiples of 16 bytes.
/// Of its last two axes, `k_axis` is the one along K.
fn readable(cx: &Context, x: &Tensor, operand: &Operand, k_axis: usize) -> Result<Tensor> {
    let strides = x.layout().strides();
    if is_readable_operand(operand, &strides[..x.rank() - 2], x.dtype()) {
        return Ok(x.clone());
    }
    let inner = x.rank() - 2 + if operand.is_along_k() { k_axis } else { 1 - k_axis };
    let outer = 2 * x.rank() - 3 - inner;
    let mut strides: SmallVec<[isize; 4]> = x.dims().iter().map(|_| 0).collect();
    let mut step = x.dims()[inner].next_multiple_of(mma::chunk(x.dtype()));
    strides[inner] = 1;
    for axis in std::iter::once(outer).chain((0..x.rank() - 2).rev()) {
        strides[axis] = step as isize;
        step *= x.dims()[axis];
    }
    let block = cx.output(&Meta::new(Shape::new(&[step]), x.dtype()))?;
    copy::strided(cx, "matmul", x, block.address(), &strides)?;
    let rows = Tensor::from_storage(storage(block), Meta::new(Shape::new(&[step]), x.dtype()), x.place().clone());
    Ok(rows.with_layout(Layout::from_parts(x.shape().clone(), strides, 0)))
}

/// One launch, or one for all parts of K and one that adds them up.
fn run(
    cx: &Context,
    problem: &Problem<'_>,
    geometry: &Geometry,
    is_mma: bool,
    shape: &[usize],
    limit: usize,
    to: Address,
) -> Result<()> {
    let depth = problem.size[2].div_ceil(limit.max(1)).next_multiple_of(geometry.depth).max(geometry.depth);
    let parts = Parts { count: problem.size[2].div_ceil(depth).max(1), depth };
    if parts.count == 1 {
        return launch(cx, problem, geometry, is_mma, parts, to);
    }
    let sum = parts::sum_dtype(problem.dtype);
    let block = cx.output(&Meta::new(Shape::new(&[parts.count, problem.len()]), sum))?;
    let only_result = |plan: &Plan| Plan { strides: plan.strides[..1].into(), ..plan.clone() };
    let of_part = Problem {
        product: sum,
        result: sum,
        epilogue: Expr::identity(),
        extra: &[],
        matrices: only_result(&problem.matrices),
        columns: only_result(&problem.columns),
        rows: only_result(&problem.rows),
        ..problem.clone()
    };
    launch(cx, &of_part, geometry, is_mma, parts, block.address())?;
    parts::sum(cx, problem, shape, parts, block.address(), to)
}

fn launch(
    cx: &Context,
    problem: &Problem<'_>,
    geometry: &Geometry,
    is_mma: bool,
    parts: Parts,
    to: Address,
) -> Result<()> {
    let (layouts, name) = if is_mma {
        // What is gathered is read either way.
        let layout = |x: &Operand| u64::from(x.walk.is_none() && x.is_along_k());
        ([layout(&problem.a), layout(&problem.b)], mma::name(problem))
    } else {
        ([geometry.rows as u64, 0], problem.kernel("matmul_tile", "conv_tile"))
    };
    let key = Key::new(name, layouts.into_iter().chain(problem.structure()));
    let function = cx.modules.get(key, || if is_mma { mma::text(problem) } else { tile::text(problem, geometry) })?;
    let blocks = problem.batch.len() * problem.tiles(geometry).iter().product::<usize>();
    let largest = problem.size.into_iter().fold(blocks, usize::max);
    let grid = [blocks as u32, parts.count as u32, 1];
    let args = problem.args(geometry, parts, to)?;
    cx.launch_blocks(problem.name, function, largest, grid, [geometry.threads as u32, 1, 1], 0, &args)
}
