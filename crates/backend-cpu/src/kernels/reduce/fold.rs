//! The two patterns that every fold comes down to, vectorised: rows to one value each, and rows side by side.

use std::marker::PhantomData;

use bytemuck::{cast_slice, cast_slice_mut};
use half::{bf16, f16};
use tensor_core::DType;
use tensor_core::op::ReduceKind;

use super::Source;
use crate::eval::{Worker, widen};
use crate::kernels::number::{Arithmetic, by_halves};
use crate::simd::{self, Kernel};

/// Elements that are folded before they are added to the totals; also what a producer computes at a time.
const BLOCK: usize = 4096;
/// Rows that are added side by side before they are added to the totals.
const MAX_ROWS: usize = 128;
/// Values that are folded side by side within a row.
const LANES: usize = 32;

/// An associative operation.
trait Fold {
    /// The value of nothing.
    fn first<A: Arithmetic>() -> A;
    fn fold<A: Arithmetic>(a: A, b: A) -> A;
}

macro_rules! folds {
    ($($kind:ident: $first:ident, $fold:ident;)*) => {
        $(
            struct $kind;
            impl Fold for $kind {
                #[inline(always)]
                fn first<A: Arithmetic>() -> A { A::$first }
                #[inline(always)]
                fn fold<A: Arithmetic>(a: A, b: A) -> A { a.$fold(b) }
            }
        )*

        /// Runs an expression with `$f` as the operation of a kind.
        macro_rules! for_fold {
            ($value:expr, $f:ident => $body:expr) => {
                match $value { $(ReduceKind::$kind => { type $f = $kind; $body })* }
            };
        }
    };
}
folds! {
    Sum: ZERO, plus;
    Prod: ONE, times;
    Max: LOWEST, larger;
    Min: HIGHEST, smaller;
}

/// The total of nothing.
pub(super) fn first_total<L: Arithmetic>(kind: ReduceKind) -> L::Total {
    for_fold!(kind, F => F::first())
}

/// Two totals as one.
pub(super) fn fold_totals<L: Arithmetic>(kind: ReduceKind, a: L::Total, b: L::Total) -> L::Total {
    for_fold!(kind, F => F::fold(a, b))
}

/// Reads a source and folds what it reads; one per thread.
pub(super) struct Folder<'b, 'a, L> {
    reader: Reader<'b, 'a>,
    dtype: DType,
    kind: ReduceKind,
    lanes: Vec<L>,
    halves: Vec<f16>,
    sums: Vec<L>,
}

enum Reader<'b, 'a> {
    Memory(&'b [u8]),
    Producer(Worker<'b, 'a>),
}

impl<'b, 'a, L: Arithmetic> Folder<'b, 'a, L> {
    pub(super) fn new(source: Source<'b, 'a>, dtype: DType, kind: ReduceKind) -> Self {
        let reader = match source {
            Source::Memory(x) => Reader::Memory(x),
            Source::Producer(bound) => Reader::Producer(bound.worker()),
        };
        Self { reader, dtype, kind, lanes: Vec::new(), halves: Vec::new(), sums: Vec::new() }
    }

    /// Folds `n` rows of `width` elements, which follow each other from `start` on, into a total each.
    pub(super) fn rows(&mut self, start: usize, n: usize, width: usize, totals: &mut [L::Total]) {
        if width == 0 {
            return;
        }
        let kind = self.kind;
        let per_block = (BLOCK / width).max(1);
        for first in (0..n).step_by(per_block) {
            let totals = &mut totals[first..n.min(first + per_block)];
            // More than one turn only for rows longer than a block, which come one at a time.
            for column in (0..width).step_by(BLOCK) {
                let width_here = BLOCK.min(width - column);
                let x = self.read(start + first * width + column, totals.len() * width_here);
                for_fold!(kind, F => simd::run(FoldRows::<F, L> { x, width: width_here, totals, fold: PhantomData }));
            }
        }
    }

    /// Folds `n` rows of `width` elements, their starts `stride` apart from `start` on, side by side into as many totals.
    pub(super) fn columns(&mut self, start: usize, n: usize, stride: usize, width: usize, totals: &mut [L::Total]) {
        if width < LANES && stride == width && n >= 4 * LANES {
            return self.narrow_columns(start, n, width, totals);
        }
        let mut sums = std::mem::take(&mut self.sums);
        for column in (0..width).step_by(BLOCK / 2) {
            let width_here = (BLOCK / 2).min(width - column);
            let totals = &mut totals[column..column + width_here];
            for first in (0..n).step_by(MAX_ROWS) {
                let n = MAX_ROWS.min(n - first);
                sums.clear();
                sums.resize(width_here, for_fold!(self.kind, F => F::first()));
                self.add_rows(start + first * stride + column, n, stride, width_here, &mut sums);
                for_fold!(self.kind, F => simd::run(FoldTotals::<F, L> { sums: &sums, totals, fold: PhantomData }));
            }
        }
        self.sums = sums;
    }

    /// Columns narrower than a vector: several rows are taken as one.
    fn narrow_columns(&mut self, start: usize, n: usize, width: usize, totals: &mut [L::Total]) {
        let by = 2 * LANES / width;
        let mut wide = vec![first_total::<L>(self.kind); by * width];
        self.columns(start, n / by, by * width, by * width, &mut wide);
        for row in wide.chunks(width) {
            totals.iter_mut().zip(row).for_each(|(total, &sum)| *total = fold_totals::<L>(self.kind, *total, sum));
        }
        self.columns(start + n / by * by * width, n % by, width, width, totals);
    }

    fn add_rows(&mut self, start: usize, n: usize, stride: usize, width: usize, sums: &mut [L]) {
        let kind = self.kind;
        if let Some(x) = self.in_place() {
            let x = &x[start..];
            return for_fold!(kind, F => simd::run(AddRows::<F, L> { x, n, stride, sums, fold: PhantomData }));
        }
        // Neighbouring rows are read at once.
        let per_read = if stride == width { (BLOCK / width).clamp(1, n) } else { 1 };
        for first in (0..n).step_by(per_read) {
            let n = per_read.min(n - first);
            let x = self.read(start + first * stride, n * width);
            for_fold!(kind, F => simd::run(AddRows::<F, L> { x, n, stride: width, sums, fold: PhantomData }));
        }
    }

    /// All elements, if they lie in memory in the type that is computed in.
    fn in_place(&self) -> Option<&'b [L]> {
        match self.reader {
            Reader::Memory(x) if self.dtype.size_bytes() == size_of::<L>() => Some(cast_slice(x)),
            _ => None,
        }
    }

    /// Elements `start..start + n`.
    fn read(&mut self, start: usize, n: usize) -> &[L] {
        if let Some(x) = self.in_place() {
            return &x[start..start + n];
        }
        if self.lanes.len() < n {
            self.lanes.resize(n, L::ZERO);
            self.halves.resize(n, f16::ZERO);
        }
        let lanes = &mut self.lanes[..n];
        if self.dtype.size_bytes() == size_of::<L>() {
            if let Reader::Producer(worker) = &mut self.reader {
                worker.fill(start, lanes);
            }
            return lanes;
        }
        let halves = match &mut self.reader {
            Reader::Memory(x) => &cast_slice::<u8, f16>(x)[start..start + n],
            Reader::Producer(worker) => {
                worker.fill(start, &mut self.halves[..n]);
                &self.halves[..n]
            }
        };
        match self.dtype {
            DType::F16 => widen::<f16>(halves, cast_slice_mut(lanes)),
            _ => widen::<bf16>(cast_slice(halves), cast_slice_mut(lanes)),
        }
        lanes
    }
}

struct FoldRows<'a, F, L: Arithmetic> {
    x: &'a [L],
    width: usize,
    totals: &'a mut [L::Total],
    fold: PhantomData<F>,
}

impl<F: Fold, L: Arithmetic> Kernel for FoldRows<'_, F, L> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        for (total, row) in self.totals.iter_mut().zip(self.x.chunks_exact(self.width)) {
            let mut sum = F::first();
            let (blocks, rest) = row.as_chunks::<LANES>();
            if !blocks.is_empty() {
                let mut lanes = [F::first(); LANES];
                for block in blocks {
                    for (lane, &x) in lanes.iter_mut().zip(block) {
                        *lane = F::fold(*lane, x);
                    }
                }
                sum = by_halves(lanes, F::fold);
            }
            for &x in rest {
                sum = F::fold(sum, x);
            }
            *total = F::fold(*total, sum.to_total());
        }
    }
}

struct AddRows<'a, F, L> {
    x: &'a [L],
    n: usize,
    stride: usize,
    sums: &'a mut [L],
    fold: PhantomData<F>,
}

impl<F: Fold, L: Arithmetic> Kernel for AddRows<'_, F, L> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Self { x, n, stride, sums, .. } = self;
        let width = sums.len();
        let row = |i: usize| &x[i * stride..][..width];
        // Four rows at a time: the sums are read and written a quarter as often.
        let mut i = 0;
        while i + 4 <= n {
            let rows = row(i).iter().zip(row(i + 1)).zip(row(i + 2).iter().zip(row(i + 3)));
            for (sum, ((&a, &b), (&c, &d))) in sums.iter_mut().zip(rows) {
                *sum = F::fold(*sum, F::fold(F::fold(a, b), F::fold(c, d)));
            }
            i += 4;
        }
        for i in i..n {
            for (sum, &x) in sums.iter_mut().zip(row(i)) {
                *sum = F::fold(*sum, x);
            }
        }
    }
}

struct FoldTotals<'a, F, L: Arithmetic> {
    sums: &'a [L],
    totals: &'a mut [L::Total],
    fold: PhantomData<F>,
}

impl<F: Fold, L: Arithmetic> Kernel for FoldTotals<'_, F, L> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        for (total, &sum) in self.totals.iter_mut().zip(self.sums) {
            *total = F::fold(*total, sum.to_total());
        }
    }
}
