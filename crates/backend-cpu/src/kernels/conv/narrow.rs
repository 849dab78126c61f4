//! The weight gradient's sums where output channels are too few to fill vectors: positions lie along the vectors, and
//! every lane sums its own until the end.

use std::ops::Range;

use crate::kernels::gemm::panels;
use crate::kernels::number::Float;
use crate::simd::{Product, Rows};

/// Vectors of sums: for every channel and tap, and every output channel, one.
pub(super) struct Sums<'a, L> {
    pub(super) lanes: &'a mut [L],
    pub(super) n_taps: usize,
    pub(super) n_rows: usize,
}

impl<L: Float + Product> Sums<'_, L> {
    /// Some taps and some output channels at a time, and where their sums are.
    fn blocks(&self) -> impl Iterator<Item = (Range<usize>, Range<usize>, Range<usize>)> + use<L> {
        let (n_taps, n_rows) = (self.n_taps, self.n_rows);
        let (max_taps, max_rows) = L::rows();
        let mut end = 0;
        panels(n_taps, max_taps)
            .flat_map(move |taps| panels(n_rows, max_rows).map(move |rows| (taps.clone(), rows)))
            .map(move |(taps, rows)| {
                let first = end;
                end += taps.len() * rows.len() * L::tile().lanes;
                (taps, rows, first..end)
            })
    }

    /// Adds the products of the first n positions, in whole vectors: the taps' in `x`, the output channels' in `g`.
    pub(super) fn add(&mut self, n: usize, x: Rows<'_, L>, g: Rows<'_, L>) {
        for (taps, rows, at) in self.blocks() {
            let (x, g) = (Rows { starts: &x.starts[taps], ..x }, Rows { starts: &g.starts[rows], ..g });
            L::add_products(n, x, g, &mut self.lanes[at]);
        }
    }

    /// Writes the sums [channel and tap, output channel] of all lanes.
    pub(super) fn fold(&self, sums: &mut [L]) {
        for (taps, rows, at) in self.blocks() {
            let mut vectors = self.lanes[at].chunks_exact(L::tile().lanes);
            for tap in taps {
                for (row, lanes) in rows.clone().zip(&mut vectors) {
                    sums[tap * self.n_rows + row] = by_halves(lanes);
                }
            }
        }
    }
}

/// The sum of a vector, whose length is a power of two.
fn by_halves<L: Float>(lanes: &[L]) -> L {
    match lanes {
        [sum] => *sum,
        _ => {
            let (left, right) = lanes.split_at(lanes.len() / 2);
            by_halves(left).plus(by_halves(right))
        }
    }
}
