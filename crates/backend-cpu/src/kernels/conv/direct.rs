//! Tiles whose vectors are stored where the results belong, without a copy between: the step up from tiles that run
//! across the ends of rows, where rows fill their vectors about as well.
//!
//! What a vector writes past the end of its row of results, the next row overwrites.

use std::ops::Range;

use smallvec::SmallVec;

use super::correlate::{Correlation, MAX_COLS, Pass, Place, Run};
use super::planes::{Axis, Planes};
use crate::kernels::gemm::{MAX_ROWS, columns, panels};
use crate::kernels::number::Float;
use crate::simd::{Apart, Product, Rhs, TileShape};

/// Vectors of one row of results, or one each of some rows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tile {
    column: usize,
    to: usize,
    n_vectors: usize,
    /// From a vector to the next in the results.
    apart: usize,
}

/// Planes of results of these sizes, whose rows are made a vector long if they are not much shorter: then rows of
/// results are vectors side by side.
pub(super) fn planes<L: Product>(mut axes: SmallVec<[Axis; 3]>, results: &[usize]) -> Planes {
    let lanes = L::tile().lanes;
    if let (Some(last), Some(&len)) = (axes.last_mut(), results.last())
        && last.size < lanes
        && 8 * len >= 5 * lanes
    {
        last.size = lanes;
    }
    Planes::new(axes)
}

/// The tiles of a pass that gives whole planes; none where they would be many more than those across the rows.
pub(super) fn tiles<L: Product>(pass: &Pass) -> Option<Vec<Tile>> {
    let TileShape { lanes, cols, .. } = L::tile();
    let runs = &pass.runs;
    let &Run { len, column, to, .. } = runs.first()?;
    let is_one = len * runs.len() == pass.n_columns;
    let whole = [Run { len: pass.n_columns, column, to, step: 1 }];
    let (runs, len) = if is_one { (&whole[..], pass.n_columns) } else { (&runs[..], len) };
    let is_close = |n_vectors: usize| 5 * n_vectors <= 6 * pass.n_columns.div_ceil(lanes);
    if len > lanes && is_close(runs.len() * len.div_ceil(lanes)) {
        let of_run = |run: &Run| {
            let (column, to) = (run.column, run.to);
            columns::<L>(len).map(move |part| Tile {
                column: column + part.start,
                to: to + part.start,
                n_vectors: part.len().div_ceil(lanes),
                apart: lanes,
            })
        };
        return Some(runs.iter().flat_map(of_run).collect());
    }
    let are_vectors = runs.windows(2).all(|two| two[1].column == two[0].column + lanes);
    if len > lanes || !are_vectors || !is_close(runs.len()) {
        return None;
    }
    let tile = |some: Range<usize>| {
        let Run { column, to, .. } = runs[some.start];
        Tile { column, to, n_vectors: some.len(), apart: len }
    };
    Some(panels(runs.len(), cols / lanes).map(tile).collect())
}

impl<L: Float + Product> Correlation<'_, L> {
    /// One group's results of a pass whose reads are one block.
    pub(super) fn direct(&self, pass: &Pass, tiles: &[Tile], place: &Place, packed: &[L], out: &mut [L]) {
        let TileShape { lanes, cols, rows } = L::tile();
        let plane = self.sizes.plane;
        let reads = &pass.reads[0];
        let mut last = [L::ZERO; MAX_ROWS * MAX_COLS];
        for panel in panels(place.rows.len(), rows) {
            let out = &mut out[panel.start * plane..];
            let starts = self.weight_rows(place, panel.start);
            let a = self.lhs(reads, &starts[..panel.len()]);
            for &Tile { column, to, n_vectors, apart } in tiles {
                let n = n_vectors * lanes;
                let b = Rhs { data: &packed[column..], rows: &reads.planes };
                if to + (n_vectors - 1) * apart + lanes <= plane {
                    L::product_apart(n, a, b, &mut out[to..], Apart { rows: plane, vectors: apart }, false);
                    continue;
                }
                // Past the end of a plane there is another.
                L::product(n, a, b, &mut last, cols, false);
                for (from, out) in last.chunks(cols).zip(out.chunks_mut(plane)).take(panel.len()) {
                    for (j, from) in from.chunks(lanes).take(n_vectors).enumerate() {
                        let to = &mut out[to + j * apart..];
                        let n = lanes.min(to.len());
                        to[..n].copy_from_slice(&from[..n]);
                    }
                }
            }
        }
    }
}
