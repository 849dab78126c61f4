//! What rows attend to: the weights of a block are taken by the largest score so far, and what was added up before is
//! scaled down when a larger one comes.

use std::ops::Range;

use tensor_core::math::{self, Real};
use tensor_core::{Meta, Result, Storages, Tensor};

use super::{Attend, Operand, Problem, ROWS, add_product, blocks};
use crate::eval::Stored;
use crate::kernels::gemm::{Job, Left, Matrix, Right, multiply};
use crate::kernels::number::{Arithmetic, by_halves};
use crate::kernels::softmax::{SIDES, exponential, max};
use crate::simd::{self, Kernel};
use crate::{Context, threads};

/// Keys of a block.
const KEYS: usize = 128;

pub(super) fn run<T: Stored>(
    problem: &Problem<'_>,
    inputs: &[&Tensor],
    outputs: &[Meta],
    cx: &Context<'_>,
) -> Result<Storages>
where
    T::Lane: Attend,
{
    let operands = Operands {
        q: Operand::new::<T>(inputs[0], cx)?,
        k: Operand::new::<T>(inputs[1], cx)?,
        v: Operand::new::<T>(inputs[2], cx)?,
    };
    let (mut out, mut lse) = (cx.output(&outputs[0])?, cx.output(&outputs[1])?);
    let Problem { t, d, e, .. } = *problem;
    let outs = out.slice_mut::<T>().chunks_mut(t * e).flat_map(|matrix| matrix.chunks_mut(ROWS * e));
    let lses = lse.slice_mut::<T::Lane>().chunks_mut(t).flat_map(|matrix| matrix.chunks_mut(ROWS));
    let places = (0..problem.n).flat_map(|i| blocks(t, ROWS).map(move |rows| (i, rows)));
    // Later rows may attend to more: they come first, so that threads end together.
    let pieces: Vec<_> = places.zip(outs).zip(lses).collect();
    let work = problem.work_ns::<T::Lane>(d + e);
    threads::try_for_each(work, pieces.into_iter().rev(), |(((i, rows), out), lse)| {
        block::<T>(problem, &operands, i, rows, out, lse, cx)
    })?;
    Ok([out, lse].into_iter().map(|buffer| buffer.into_storage()).collect())
}

struct Operands<'a> {
    q: Operand<'a>,
    k: Operand<'a>,
    v: Operand<'a>,
}

/// A block of rows of one matrix, over all keys.
fn block<T: Stored>(
    problem: &Problem<'_>,
    operands: &Operands<'_>,
    matrix: usize,
    rows: Range<usize>,
    out: &mut [T],
    lse: &mut [T::Lane],
    cx: &Context<'_>,
) -> Result<()>
where
    T::Lane: Attend,
{
    let Problem { t, s, d, e, .. } = *problem;
    let (q, k, v) = (operands.q.matrix(matrix), operands.k.matrix(matrix), operands.v.matrix(matrix));
    let scoring = Job { m: t, k: d, n: s, lhs: q, rhs: Matrix::transposed(k) };
    let left = Left::new(scoring, rows.clone(), cx)?;
    let (mut scores, mut sums) = (cx.take::<T::Lane>(rows.len() * KEYS)?, cx.take::<T::Lane>(rows.len() * e)?);
    let (scores, sums) = (scores.slice_mut::<T::Lane>(), sums.slice_mut::<T::Lane>());
    sums.fill(T::Lane::ZERO);
    let mut state = [(T::Lane::LOWEST, T::Lane::ZERO); ROWS];
    let first_row = rows.start;
    for keys in blocks(problem.seen(rows.end - 1), KEYS) {
        multiply(&left, &Right::new(scoring, keys.clone(), 0, cx)?, scores, KEYS, false);
        let state = &mut state[..rows.len()];
        simd::run(Weights { problem, matrix, first_row, keys: keys.clone(), scores, sums, state });
        let weights = Matrix { data: &*scores, offset: 0, row: KEYS as isize, col: 1 };
        let mixing = Job { m: rows.len(), k: keys.len(), n: e, lhs: weights, rhs: v.from(keys.start, 0) };
        add_product(mixing, sums, e, cx)?;
    }
    simd::run(Finish { sums, state: &state, out, lse });
    Ok(())
}

/// Turns the scores of a block into weights, and keeps the books of every row: its largest score and sum of weights.
struct Weights<'a, 'b, L> {
    problem: &'a Problem<'a>,
    matrix: usize,
    first_row: usize,
    keys: Range<usize>,
    scores: &'b mut [L],
    sums: &'b mut [L],
    state: &'b mut [(L, L)],
}

impl<L: Attend> Kernel for Weights<'_, '_, L> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Self { problem, matrix, first_row, keys, .. } = self;
        let (e, scale) = (problem.e, L::constant(problem.scale));
        let rows = self.scores.chunks_mut(KEYS).zip(self.sums.chunks_mut(e)).zip(self.state);
        for (r, ((scores, sums), (top, total))) in rows.enumerate() {
            let seen = problem.seen_of(first_row + r, &keys);
            // Whole vectors: what follows the last key seen weighs nothing.
            let padded = seen.next_multiple_of(SIDES);
            scores[..padded].iter_mut().for_each(|x| *x = x.times(scale));
            scores[seen..padded].fill(L::LOWEST);
            problem.each_hidden(matrix, first_row + r, keys.start, seen, |key| scores[key] = L::LOWEST);
            let new = top.larger(max(&scores[..padded]));
            let shift = if new.abs() < L::HIGHEST { new } else { L::ZERO };
            if new != *top {
                let by = exponential(*top, shift);
                *total = total.times(by);
                sums.iter_mut().for_each(|x| *x = x.times(by));
                *top = new;
            }
            let mut sides = [L::ZERO; SIDES];
            for chunk in scores[..padded].as_chunks_mut::<SIDES>().0 {
                for (side, x) in sides.iter_mut().zip(chunk) {
                    *x = exponential(*x, shift);
                    *side = side.plus(*x);
                }
            }
            *total = total.plus(by_halves(sides, L::plus));
            if padded < keys.len() {
                scores[padded..keys.len()].fill(L::ZERO);
            }
        }
    }
}

/// Divides by the sums of weights.
struct Finish<'a, T: Stored> {
    sums: &'a [T::Lane],
    state: &'a [(T::Lane, T::Lane)],
    out: &'a mut [T],
    lse: &'a mut [T::Lane],
}

impl<T: Stored> Kernel for Finish<'_, T>
where
    T::Lane: Attend,
{
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let e = self.out.len() / self.lse.len();
        let rows = self.out.chunks_mut(e).zip(self.sums.chunks(e)).zip(self.state).zip(self.lse);
        for (((out, sums), &(top, total)), lse) in rows {
            out.iter_mut().zip(sums).for_each(|(out, &sum)| *out = T::store(sum / total));
            let shift = if top.abs() < T::Lane::HIGHEST { top } else { T::Lane::ZERO };
            *lse = math::ln(total).plus(shift);
        }
    }
}
