//! The gradients: weights are made again from scores and lse, block by block.
//!
//! Where there are matrices for every thread, one passes over its blocks once and makes all three gradients; else blocks of
//! rows make dq and blocks of keys make dk and dv, each with scores of its own. Sums are in the same order either way.

use std::ops::Range;

use tensor_core::{Meta, Result, Storages, Tensor};

use super::{Attend, Operand, Problem, ROWS, add_product, blocks, is_wide};
use crate::eval::{Stored, narrow};
use crate::kernels::dense::{Dense, dense};
use crate::kernels::gemm::{Job, Left, Matrix, Right, multiply};
use crate::kernels::softmax::{SIDES, exponential};
use crate::simd::{self, Kernel};
use crate::{Buffer, Context, threads};

/// Keys of a block.
const KEYS: usize = 64;

pub(super) fn run<T: Stored>(
    problem: &Problem<'_>,
    inputs: &[&Tensor],
    outputs: &[Meta],
    cx: &Context<'_>,
) -> Result<Storages>
where
    T::Lane: Attend,
{
    debug_assert!(is_wide(inputs[3], inputs[0].dtype()) && is_wide(inputs[5], inputs[0].dtype()));
    let operands = Operands {
        q: Operand::new::<T>(inputs[0], cx)?,
        k: Operand::new::<T>(inputs[1], cx)?,
        v: Operand::new::<T>(inputs[2], cx)?,
        g: Operand::new::<T>(inputs[4], cx)?,
        lse: dense(inputs[3], cx)?,
        delta: dense(inputs[5], cx)?,
    };
    let Problem { n, t, s, d, e, .. } = *problem;
    let mut sums = [n * t * d, n * s * d, n * s * e].map(|len| cx.take::<T::Lane>(len)).into_iter();
    let mut next = || sums.next().expect("invariant: three of them");
    let (mut dq, mut dk, mut dv) = (next()?, next()?, next()?);
    let work = problem.work_ns::<T::Lane>(3 * d + 2 * e);
    let pass = Pass { problem, operands: &operands, cx };
    if n >= threads::n_threads() || !threads::is_worthwhile(work) {
        let dks = dk.slice_mut::<T::Lane>().chunks_mut(s * d).zip(dv.slice_mut::<T::Lane>().chunks_mut(s * e));
        let pieces = dq.slice_mut::<T::Lane>().chunks_mut(t * d).zip(dks).enumerate();
        threads::try_for_each(work, pieces, |(i, (dq, (dk, dv)))| pass.matrix(i, dq, dk, dv))?;
    } else {
        let rows = (0..n).flat_map(|i| blocks(t, ROWS).map(move |rows| (i, rows)));
        let dqs = dq.slice_mut::<T::Lane>().chunks_mut(t * d).flat_map(|matrix| matrix.chunks_mut(ROWS * d));
        threads::try_for_each(work, rows.zip(dqs), |((i, rows), dq)| pass.rows(i, rows, dq))?;
        let keys = (0..n).flat_map(|i| blocks(s, KEYS).map(move |keys| (i, keys)));
        let dks = dk.slice_mut::<T::Lane>().chunks_mut(s * d).flat_map(|matrix| matrix.chunks_mut(KEYS * d));
        let dvs = dv.slice_mut::<T::Lane>().chunks_mut(s * e).flat_map(|matrix| matrix.chunks_mut(KEYS * e));
        threads::try_for_each(work, keys.zip(dks.zip(dvs)), |((i, keys), (dk, dv))| pass.keys(i, keys, dk, dv))?;
    }
    if size_of::<T>() == size_of::<T::Lane>() {
        return Ok([dq, dk, dv].into_iter().map(Buffer::into_storage).collect());
    }
    let narrowed = |(sums, meta): (&Buffer, &Meta)| {
        let mut out = cx.output(meta)?;
        narrow(sums.slice::<T::Lane>(), out.slice_mut::<T>());
        Ok(out.into_storage())
    };
    [dq, dk, dv].iter().zip(outputs).map(narrowed).collect()
}

struct Operands<'a, L> {
    q: Operand<'a>,
    k: Operand<'a>,
    v: Operand<'a>,
    g: Operand<'a>,
    lse: Dense<'a, L>,
    delta: Dense<'a, L>,
}

/// All that blocks are made from.
struct Pass<'a, L> {
    problem: &'a Problem<'a>,
    operands: &'a Operands<'a, L>,
    cx: &'a Context<'a>,
}

/// The left-hand sides of a block of rows: query and grad.
struct RowSide<'a, L> {
    rows: Range<usize>,
    q: Left<'a, L>,
    g: Left<'a, L>,
}

/// The right-hand sides of a block of keys: key and value, transposed.
struct KeySide<'a, L> {
    keys: Range<usize>,
    k: Right<'a, L>,
    v: Right<'a, L>,
}

/// A block's P and dS.
struct Pair {
    weights: Buffer,
    by_score: Buffer,
}

impl<'a, L: Attend> Pass<'a, L> {
    fn pair(&self) -> Result<Pair> {
        let new = || self.cx.take::<L>(ROWS * KEYS);
        Ok(Pair { weights: new()?, by_score: new()? })
    }

    /// The products that make scores, and grad · vᵀ.
    fn jobs(&self, matrix: usize) -> [Job<'a, L>; 2] {
        let &Problem { t, s, d, e, .. } = self.problem;
        let Operands { q, k, v, g, .. } = self.operands;
        [
            Job { m: t, k: d, n: s, lhs: q.matrix(matrix), rhs: k.matrix(matrix).transposed() },
            Job { m: t, k: e, n: s, lhs: g.matrix(matrix), rhs: v.matrix(matrix).transposed() },
        ]
    }

    fn row_side(&self, matrix: usize, rows: Range<usize>) -> Result<RowSide<'a, L>> {
        let [q, g] = self.jobs(matrix);
        Ok(RowSide { q: Left::new(q, rows.clone(), self.cx)?, g: Left::new(g, rows.clone(), self.cx)?, rows })
    }

    fn key_side(&self, matrix: usize, keys: Range<usize>) -> Result<KeySide<'a, L>> {
        let [k, v] = self.jobs(matrix);
        Ok(KeySide { k: Right::new(k, keys.clone(), 0, self.cx)?, v: Right::new(v, keys.clone(), 0, self.cx)?, keys })
    }

    /// Fills in P and dS.
    fn fill(&self, matrix: usize, left: &RowSide<'_, L>, right: &KeySide<'_, L>, pair: &mut Pair) {
        let (weights, by_score) = (pair.weights.slice_mut::<L>(), pair.by_score.slice_mut::<L>());
        multiply(&left.q, &right.k, weights, KEYS, false);
        multiply(&left.g, &right.v, by_score, KEYS, false);
        let of_rows = |x: &'a [L]| &x[matrix * self.problem.t..][left.rows.clone()];
        simd::run(Slopes {
            problem: self.problem,
            matrix,
            first_row: left.rows.start,
            keys: right.keys.clone(),
            lse: of_rows(&self.operands.lse),
            delta: of_rows(&self.operands.delta),
            weights,
            by_score,
        });
    }

    /// All gradients of a matrix in one pass.
    fn matrix(&self, matrix: usize, dq: &mut [L], dk: &mut [L], dv: &mut [L]) -> Result<()> {
        let Problem { t, s, d, e, .. } = *self.problem;
        dq.fill(L::ZERO);
        let mut pair = self.pair()?;
        let lefts = blocks(t, ROWS).map(|rows| self.row_side(matrix, rows)).collect::<Result<Vec<_>>>()?;
        for keys in blocks(s, KEYS) {
            let right = self.key_side(matrix, keys.clone())?;
            let (dk, dv) = (&mut dk[keys.start * d..keys.end * d], &mut dv[keys.start * e..keys.end * e]);
            dk.fill(L::ZERO);
            dv.fill(L::ZERO);
            for left in lefts.iter().filter(|left| self.problem.seen(left.rows.end - 1) > keys.start) {
                self.fill(matrix, left, &right, &mut pair);
                self.add_to_keys(matrix, &left.rows, &keys, &pair, dk, dv)?;
                self.add_to_rows(matrix, &left.rows, &keys, &pair, &mut dq[left.rows.start * d..left.rows.end * d])?;
            }
            self.scale(dk);
        }
        self.scale(dq);
        Ok(())
    }

    /// dq of a block of rows.
    fn rows(&self, matrix: usize, rows: Range<usize>, dq: &mut [L]) -> Result<()> {
        dq.fill(L::ZERO);
        let (left, mut pair) = (self.row_side(matrix, rows.clone())?, self.pair()?);
        let seen = self.problem.seen(rows.end - 1);
        for keys in blocks(self.problem.s, KEYS).take_while(|keys| seen > keys.start) {
            self.fill(matrix, &left, &self.key_side(matrix, keys.clone())?, &mut pair);
            self.add_to_rows(matrix, &rows, &keys, &pair, dq)?;
        }
        self.scale(dq);
        Ok(())
    }

    /// dk and dv of a block of keys.
    fn keys(&self, matrix: usize, keys: Range<usize>, dk: &mut [L], dv: &mut [L]) -> Result<()> {
        dk.fill(L::ZERO);
        dv.fill(L::ZERO);
        let (right, mut pair) = (self.key_side(matrix, keys.clone())?, self.pair()?);
        for rows in blocks(self.problem.t, ROWS).filter(|rows| self.problem.seen(rows.end - 1) > keys.start) {
            self.fill(matrix, &self.row_side(matrix, rows.clone())?, &right, &mut pair);
            self.add_to_keys(matrix, &rows, &keys, &pair, dk, dv)?;
        }
        self.scale(dk);
        Ok(())
    }

    fn add_to_rows(
        &self,
        matrix: usize,
        rows: &Range<usize>,
        keys: &Range<usize>,
        pair: &Pair,
        dq: &mut [L],
    ) -> Result<()> {
        let d = self.problem.d;
        let k = self.operands.k.matrix(matrix).from(keys.start, 0);
        add_product(Job { m: rows.len(), k: keys.len(), n: d, lhs: square(&pair.by_score), rhs: k }, dq, d, self.cx)
    }

    fn add_to_keys(
        &self,
        matrix: usize,
        rows: &Range<usize>,
        keys: &Range<usize>,
        pair: &Pair,
        dk: &mut [L],
        dv: &mut [L],
    ) -> Result<()> {
        let Problem { d, e, .. } = *self.problem;
        let (q, g) = (self.operands.q.matrix(matrix), self.operands.g.matrix(matrix));
        let (m, k) = (keys.len(), rows.len());
        let (by_score, weights) = (square(&pair.by_score).transposed(), square(&pair.weights).transposed());
        add_product(Job { m, k, n: d, lhs: by_score, rhs: q.from(rows.start, 0) }, dk, d, self.cx)?;
        add_product(Job { m, k, n: e, lhs: weights, rhs: g.from(rows.start, 0) }, dv, e, self.cx)
    }

    fn scale(&self, sums: &mut [L]) {
        let scale = L::constant(self.problem.scale);
        sums.iter_mut().for_each(|x| *x = x.times(scale));
    }
}

/// A block as a matrix.
fn square<L: Attend>(block: &Buffer) -> Matrix<'_, L> {
    Matrix { data: block.slice(), offset: 0, row: KEYS as isize, col: 1 }
}

/// Turns scores into P and grad · vᵀ into dS.
struct Slopes<'a, 'b, L> {
    problem: &'a Problem<'a>,
    matrix: usize,
    first_row: usize,
    keys: Range<usize>,
    lse: &'a [L],
    delta: &'a [L],
    weights: &'b mut [L],
    by_score: &'b mut [L],
}

impl<L: Attend> Kernel for Slopes<'_, '_, L> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Self { problem, matrix, first_row, keys, .. } = self;
        let scale = L::constant(problem.scale);
        let rows = self.weights.chunks_mut(KEYS).zip(self.by_score.chunks_mut(KEYS));
        for (r, ((weights, by_score), (&lse, &delta))) in rows.zip(self.lse.iter().zip(self.delta)).enumerate() {
            // A row that may attend to nothing has no slopes.
            let seen = if lse == L::LOWEST { 0 } else { problem.seen_of(first_row + r, &keys) };
            let padded = seen.next_multiple_of(SIDES);
            let (weight_chunks, slope_chunks) =
                (weights[..padded].as_chunks_mut::<SIDES>().0, by_score[..padded].as_chunks_mut::<SIDES>().0);
            for (weights, slopes) in weight_chunks.iter_mut().zip(slope_chunks) {
                for (weight, slope) in weights.iter_mut().zip(slopes) {
                    *weight = exponential(weight.times(scale), lse);
                    *slope = weight.times(*slope - delta);
                }
            }
            let mut hide = |key: usize| (weights[key], by_score[key]) = (L::ZERO, L::ZERO);
            problem.each_hidden(matrix, first_row + r, keys.start, seen, &mut hide);
            (seen..keys.len()).for_each(hide);
        }
    }
}
