//! Attention and its adjoint in blocks of rows and keys: a weight per pair exists only within a block, which stays in the
//! cache. Blocks that no row of theirs may attend to are left out.
//!
//! Each sum is over blocks in order, so bits do not depend on threads; blocks are multiplied as matrices are.

use std::ops::Range;

use tensor_core::op::{Attention, AttentionGrad};
use tensor_core::{DType, Layout, Meta, Result, Shape, Storages, Support, Tensor};

use super::dense::widened;
use super::gemm::{Gemm, Job, Left, Matrix, Right, multiply};
use super::number::{Float, for_float};
use crate::eval::Stored;
use crate::simd::Product;
use crate::{Buffer, Context, Elem, input};

mod backward;
mod forward;
#[cfg(test)]
mod tests;

/// Rows of a block.
const ROWS: usize = 64;

/// A type that attention is computed in.
trait Attend: Float + Gemm + Product {}

impl Attend for f32 {}
impl Attend for f64 {}

/// Whether there is something to attend with: query [.., T, D], key [.., S, D], value [.., S, E].
pub(crate) fn support(inputs: &[Meta]) -> Support {
    if inputs[..3].iter().any(|x| x.shape.is_empty()) { Support::Decompose } else { Support::Native }
}

/// What is attended to, and each row's ln Σ exp.
pub(crate) fn run(op: &Attention, inputs: &[&Tensor], outputs: &[Meta], cx: &Context<'_>) -> Result<Storages> {
    let problem = Problem::new([inputs[0], inputs[1], inputs[2]], inputs.get(3).copied(), op.scale, op.causal);
    for_float!(inputs[0].dtype(), T => forward::run::<T>(&problem, inputs, outputs, cx))
}

/// The gradients by query, key and value.
pub(crate) fn grad(op: &AttentionGrad, inputs: &[&Tensor], outputs: &[Meta], cx: &Context<'_>) -> Result<Storages> {
    let problem = Problem::new([inputs[0], inputs[1], inputs[2]], inputs.get(6).copied(), op.scale, op.causal);
    for_float!(inputs[0].dtype(), T => backward::run::<T>(&problem, inputs, outputs, cx))
}

/// Sizes and what may be attended to, of every matrix.
struct Problem<'a> {
    n: usize,
    t: usize,
    s: usize,
    d: usize,
    e: usize,
    scale: f64,
    causal: bool,
    mask: Option<Mask<'a>>,
}

/// True where a row may attend to a key.
struct Mask<'a> {
    data: &'a [u8],
    starts: Vec<usize>,
    row: isize,
    col: isize,
}

impl<'a> Problem<'a> {
    fn new([q, k, v]: [&Tensor; 3], mask: Option<&'a Tensor>, scale: f64, causal: bool) -> Self {
        let (batch, last) = q.dims().split_at(q.rank() - 2);
        let (t, s) = (last[0], k.dims()[k.rank() - 2]);
        let mask = mask.map(|mask| {
            let shape: Shape = batch.iter().copied().chain([t, s]).collect();
            let layout = mask.layout().broadcast_to(&shape).expect("invariant: core has checked the mask");
            let [row, col] = last_strides(&layout);
            Mask { data: input(mask), starts: starts(&layout), row, col }
        });
        let e = v.dims()[v.rank() - 1];
        Self { n: batch.iter().product(), t, s, d: last[1], e, scale, causal, mask }
    }

    /// How many keys from the first on a row may attend to, the mask aside.
    fn seen(&self, row: usize) -> usize {
        if self.causal { (row + 1 + self.s).saturating_sub(self.t).min(self.s) } else { self.s }
    }

    /// The same of some keys.
    fn seen_of(&self, row: usize, keys: &Range<usize>) -> usize {
        self.seen(row).saturating_sub(keys.start).min(keys.len())
    }

    /// Calls `hide` with the places of those among the first keys of a range that the mask hides from a row.
    #[inline(always)]
    fn each_hidden(&self, matrix: usize, row: usize, first: usize, n: usize, mut hide: impl FnMut(usize)) {
        let Some(Mask { data, starts, row: down, col }) = &self.mask else { return };
        let start = starts[matrix] as isize + row as isize * down + first as isize * col;
        for key in 0..n {
            if data[(start + key as isize * col) as usize] == 0 {
                hide(key);
            }
        }
    }

    /// One thread takes about so long over all scores, of which `depth` products make one.
    fn work_ns<L: Gemm>(&self, depth: usize) -> usize {
        let pairs = if self.causal { self.t * self.s / 2 } else { self.t * self.s };
        self.n.saturating_mul(L::work_ns(self.t, depth, self.s).saturating_add(pairs))
    }
}

/// The last two strides.
fn last_strides(layout: &Layout) -> [isize; 2] {
    let strides = layout.strides();
    [strides[strides.len() - 2], strides[strides.len() - 1]]
}

/// Where each matrix of a batch begins.
fn starts(layout: &Layout) -> Vec<usize> {
    let (dims, strides) = (layout.shape(), layout.strides());
    let n_batch = dims.rank() - 2;
    let n: usize = dims[..n_batch].iter().product();
    let start = |mut i: usize| {
        let mut at = layout.offset() as isize;
        for axis in (0..n_batch).rev() {
            at += (i % dims[axis]) as isize * strides[axis];
            i /= dims[axis];
        }
        at as usize
    };
    (0..n).map(start).collect()
}

/// The matrices of an operand in the type that is computed in: in place, or a copy of 16-bit floats.
struct Operand<'a> {
    tensor: &'a Tensor,
    wide: Option<Buffer>,
    starts: Vec<usize>,
    row: isize,
    col: isize,
}

impl<'a> Operand<'a> {
    fn new<T: Stored>(tensor: &'a Tensor, cx: &Context<'_>) -> Result<Self> {
        let is_lane = size_of::<T>() == size_of::<T::Lane>();
        let wide = if is_lane { None } else { Some(widened::<T>(tensor, cx)?) };
        let contiguous = Layout::contiguous(tensor.shape());
        let layout = if is_lane { tensor.layout() } else { &contiguous };
        let [row, col] = last_strides(layout);
        Ok(Self { tensor, starts: starts(layout), row, col, wide })
    }

    fn matrix<L: Elem>(&self, i: usize) -> Matrix<'_, L> {
        let data = match &self.wide {
            Some(wide) => wide.slice(),
            None => input(self.tensor),
        };
        Matrix { data, offset: self.starts[i], row: self.row, col: self.col }
    }
}

/// Blocks of some length.
fn blocks(n: usize, length: usize) -> impl DoubleEndedIterator<Item = Range<usize>> + Clone {
    (0..n.div_ceil(length)).map(move |i| i * length..((i + 1) * length).min(n))
}

/// The dtype that lse and delta have.
fn is_wide(x: &Tensor, dtype: DType) -> bool {
    x.dtype() == dtype.compute()
}

/// `to += lhs · rhs`, rows of `to` being `row` apart.
fn add_product<L: Attend>(job: Job<'_, L>, to: &mut [L], row: usize, cx: &Context<'_>) -> Result<()> {
    multiply(&Left::new(job, 0..job.m, cx)?, &Right::new(job, 0..job.n, 0, cx)?, to, row, true);
    Ok(())
}
