//! The two patterns that every fold comes down to, vectorised: rows to one value each, and rows side by side.

use std::marker::PhantomData;

use super::Source;
use crate::eval::{Stored, Worker, widen};
use crate::kernels::number::Arithmetic;
use crate::simd::{self, Kernel};

/// Elements that are folded before they are added to the totals; also what a producer computes at a time.
const BLOCK: usize = 4096;
/// Rows that are added side by side before they are added to the totals.
const MAX_ROWS: usize = 128;
/// Values that are folded side by side within a row.
const LANES: usize = 32;

/// An associative operation.
pub(crate) trait Fold {
    /// The value of nothing.
    fn first<A: Arithmetic>() -> A;
    fn fold<A: Arithmetic>(a: A, b: A) -> A;
}

macro_rules! folds {
    ($($(#[$doc:meta])* $name:ident: $first:ident, $fold:ident;)*) => { $(
        $(#[$doc])*
        pub(crate) struct $name;
        impl Fold for $name {
            #[inline(always)]
            fn first<A: Arithmetic>() -> A { A::$first }
            #[inline(always)]
            fn fold<A: Arithmetic>(a: A, b: A) -> A { a.$fold(b) }
        }
    )* };
}
folds! {
    /// Σ
    Sum: ZERO, plus;
    /// Π
    Prod: ONE, times;
    /// The largest; NaN wins.
    Max: LOWEST, larger;
    /// The smallest; NaN wins.
    Min: HIGHEST, smaller;
}

/// Reads a source and folds what it reads; one per thread.
pub(crate) struct Folder<'b, 'a, T: Stored> {
    source: Reader<'b, 'a, T>,
    elements: Vec<T>,
    lanes: Vec<T::Lane>,
    sums: Vec<T::Lane>,
}

enum Reader<'b, 'a, T> {
    Memory(&'b [T]),
    Producer(Worker<'b, 'a>),
}

type Total<T> = <<T as Stored>::Lane as Arithmetic>::Total;

impl<'b, 'a, T: Stored> Folder<'b, 'a, T>
where
    T::Lane: Arithmetic,
{
    pub(super) fn new(source: Source<'b, 'a, T>) -> Self {
        let source = match source {
            Source::Memory(x) => Reader::Memory(x),
            Source::Producer(bound) => Reader::Producer(bound.worker()),
        };
        Self { source, elements: Vec::new(), lanes: Vec::new(), sums: Vec::new() }
    }

    /// Folds `n` rows of `width` elements, which follow each other from `start` on, into a total each.
    pub(super) fn rows<F: Fold>(&mut self, start: usize, n: usize, width: usize, totals: &mut [Total<T>]) {
        if width == 0 {
            return;
        }
        let per_block = (BLOCK / width).max(1);
        for first in (0..n).step_by(per_block) {
            let totals = &mut totals[first..n.min(first + per_block)];
            // More than one turn only for rows longer than a block, which come one at a time.
            for column in (0..width).step_by(BLOCK) {
                let n_columns = BLOCK.min(width - column);
                let x = self.read(start + first * width + column, totals.len() * n_columns);
                simd::run(FoldRows::<F, T::Lane> { x, width: n_columns, totals, fold: PhantomData });
            }
        }
    }

    /// Folds `n` rows of `width` elements, their starts `stride` apart from `start` on, side by side into as many totals.
    pub(super) fn columns<F: Fold>(
        &mut self,
        start: usize,
        n: usize,
        stride: usize,
        width: usize,
        totals: &mut [Total<T>],
    ) {
        if width < LANES && stride == width && n >= 4 * LANES {
            return self.narrow_columns::<F>(start, n, width, totals);
        }
        let mut sums = std::mem::take(&mut self.sums);
        for column in (0..width).step_by(BLOCK / 2) {
            let width_here = (BLOCK / 2).min(width - column);
            let totals = &mut totals[column..column + width_here];
            for first in (0..n).step_by(MAX_ROWS) {
                let n = MAX_ROWS.min(n - first);
                sums.clear();
                sums.resize(width_here, F::first());
                self.add_rows::<F>(start + first * stride + column, n, stride, width_here, &mut sums);
                simd::run(FoldTotals::<F, T::Lane> { sums: &sums, totals, fold: PhantomData });
            }
        }
        self.sums = sums;
    }

    /// Columns narrower than a vector: several rows are taken as one.
    fn narrow_columns<F: Fold>(&mut self, start: usize, n: usize, width: usize, totals: &mut [Total<T>]) {
        let by = 2 * LANES / width;
        let mut wide = vec![F::first(); by * width];
        self.columns::<F>(start, n / by, by * width, by * width, &mut wide);
        for row in wide.chunks(width) {
            totals.iter_mut().zip(row).for_each(|(total, &sum)| *total = F::fold(*total, sum));
        }
        self.columns::<F>(start + n / by * by * width, n % by, width, width, totals);
    }

    fn add_rows<F: Fold>(&mut self, start: usize, n: usize, stride: usize, width: usize, sums: &mut [T::Lane]) {
        if let Some(x) = self.in_place() {
            return simd::run(AddRows::<F, _> { x: &x[start..], n, stride, sums, fold: PhantomData });
        }
        // Neighbouring rows are read at once.
        let per_read = if stride == width { (BLOCK / width).clamp(1, n) } else { 1 };
        for first in (0..n).step_by(per_read) {
            let n = per_read.min(n - first);
            let x = self.read(start + first * stride, n * width);
            simd::run(AddRows::<F, _> { x, n, stride: width, sums, fold: PhantomData });
        }
    }

    /// All elements, if they lie in memory in the type that is computed in.
    fn in_place(&self) -> Option<&'b [T::Lane]> {
        match self.source {
            Reader::Memory(x) if size_of::<T>() == size_of::<T::Lane>() => Some(bytemuck::cast_slice(x)),
            _ => None,
        }
    }

    /// Elements `start..start + n`.
    fn read(&mut self, start: usize, n: usize) -> &[T::Lane] {
        if let Some(x) = self.in_place() {
            return &x[start..start + n];
        }
        let elements = match &mut self.source {
            Reader::Memory(x) => &x[start..start + n],
            Reader::Producer(worker) => {
                self.elements.resize(n.max(self.elements.len()), T::default());
                worker.fill(start, &mut self.elements[..n]);
                &self.elements[..n]
            }
        };
        if size_of::<T>() == size_of::<T::Lane>() {
            return bytemuck::cast_slice(elements);
        }
        self.lanes.resize(n.max(self.lanes.len()), T::Lane::ZERO);
        widen(elements, &mut self.lanes[..n]);
        &self.lanes[..n]
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
                let mut half = LANES / 2;
                while half > 0 {
                    for i in 0..half {
                        lanes[i] = F::fold(lanes[i], lanes[i + half]);
                    }
                    half /= 2;
                }
                sum = lanes[0];
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
