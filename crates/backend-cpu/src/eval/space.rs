//! The shape that a range of elements is taken from: axes merged where every input allows it, and cut into pieces of
//! at most a register.

use smallvec::SmallVec;
use tensor_core::Shape;

use super::CHUNK;

/// Element strides of an input along the merged axes.
pub(super) type Strides = SmallVec<[isize; 4]>;

/// The merged axes and how they are cut.
///
/// A piece is some consecutive rows of axis `split`, each of `block` elements (the product of the axes inside it).
/// It never crosses a step of the axes outside, so that within a piece every input is a regular pattern.
#[derive(Clone, Debug)]
pub(super) struct Space {
    pub(super) dims: SmallVec<[usize; 4]>,
    pub(super) split: usize,
    /// Elements in a piece, the last one of a run excepted.
    pub(super) piece: usize,
    /// Elements in all of axis `split`: pieces start anew after it.
    pub(super) run: usize,
}

/// A part of a range that lies in one piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Part {
    /// Which run: the index over the axes outside `split`, row-major.
    pub(super) run: usize,
    /// From the start of the run to the start of the piece.
    pub(super) piece_start: usize,
    /// From the start of the piece to the part.
    pub(super) skip: usize,
    /// How many elements.
    pub(super) len: usize,
}

impl Space {
    /// `len` elements in a row.
    pub(super) fn flat(len: usize) -> Self {
        Self { dims: SmallVec::from_elem(len, 1), split: 0, piece: CHUNK, run: len.max(1) }
    }

    /// Merges the axes of `shape` for inputs of these strides, which are merged along with it.
    pub(super) fn merge(shape: &Shape, strides: &mut [Strides]) -> Self {
        let mut dims: SmallVec<[usize; 4]> = SmallVec::new();
        // Positions of the kept axes; written in place, as they never overtake the axis that is read.
        for axis in 0..shape.rank() {
            let n = shape[axis];
            if n == 1 {
                continue;
            }
            let merges = !dims.is_empty() && strides.iter().all(|s| s[dims.len() - 1] == s[axis] * n as isize);
            let kept = if merges { dims.len() - 1 } else { dims.len() };
            strides.iter_mut().for_each(|s| s[kept] = s[axis]);
            if merges {
                dims[kept] *= n;
            } else {
                dims.push(n);
            }
        }
        if dims.is_empty() {
            dims.push(1);
            strides.iter_mut().for_each(|s| if s.is_empty() { s.push(0) } else { s[0] = 0 });
        }
        strides.iter_mut().for_each(|s| s.truncate(dims.len()));
        Self::cut(dims)
    }

    fn cut(dims: SmallVec<[usize; 4]>) -> Self {
        if dims.contains(&0) {
            return Self { split: dims.len() - 1, dims, piece: 1, run: 1 };
        }
        let mut split = dims.len() - 1;
        let mut block = 1;
        // As much as fits a register; long rows are cut within themselves.
        while split > 0 && dims[split] * block <= CHUNK {
            block *= dims[split];
            split -= 1;
        }
        let n_rows = dims[split].max(1);
        let mut rows = n_rows.div_ceil(n_rows.div_ceil((CHUNK / block).max(1)));
        if block == 1 {
            // Whole vectors.
            rows = rows.next_multiple_of(64).min(CHUNK);
        }
        Self { run: (n_rows * block).max(1), piece: rows * block, dims, split }
    }

    /// The part of a piece that starts at element `start` and ends with the piece or before `end`.
    #[inline]
    pub(super) fn part(&self, start: usize, end: usize) -> Part {
        let run = start / self.run;
        let within = start - run * self.run;
        let piece_start = within - within % self.piece;
        let skip = within - piece_start;
        let len = self.piece.min(self.run - piece_start) - skip;
        Part { run, piece_start, skip, len: len.min(end - start) }
    }

    /// How far into an input run number `run` starts.
    pub(super) fn run_position(&self, run: usize, strides: &[isize]) -> isize {
        let mut rest = run;
        let mut position = 0;
        for axis in (0..self.split).rev() {
            position += (rest % self.dims[axis]) as isize * strides[axis];
            rest /= self.dims[axis];
        }
        position
    }
}
