//! Picking and adding along an axis by index.
//!
//! Operands are seen as [outer, n, inner] around the axis. Where the index is the same for a whole row of `inner`
//! elements (an embedding: stride 0 along the inner axes), rows are copied and added whole.

use tensor_core::op::{Gather, ScatterAdd};
use tensor_core::{DType, Error, Layout, Meta, Movement, Result, Storages, Tensor};

use super::copy;
use super::dense::dense;
use super::number::Arithmetic;
use crate::eval::Stored;
use crate::simd::{self, Kernel};
use crate::{Context, Elem, for_dtype, threads};

#[cfg(test)]
mod tests;

/// Bytes of output that one piece of spread work makes.
const PIECE_BYTES: usize = 64 << 10;

/// Elements picked along the axis.
pub(crate) fn run(op: &Gather, inputs: &[&Tensor], outputs: &[Meta], cx: &Context<'_>) -> Result<Storages> {
    let (x, index) = (inputs[0], inputs[1]);
    let places = Places::new("gather", op.axis, x, index)?;
    let mut out = cx.output(&outputs[0])?;
    for_dtype!(x.dtype(), T => {
        let x = dense::<T>(x, cx)?;
        let row = places.row;
        let rows_per_piece = (PIECE_BYTES / (row * size_of::<T>()).max(1)).max(1);
        let pieces = out.slice_mut::<T>().chunks_mut(rows_per_piece * row.max(1)).enumerate();
        threads::for_each(x.len().min(places.len() * row) * size_of::<T>() / 4, pieces, |(i, piece)| {
            let first = i * rows_per_piece;
            if row == 1 {
                piece.iter_mut().enumerate().for_each(|(k, v)| *v = x[places.at(first + k)]);
            } else {
                for (k, target) in piece.chunks_mut(row).enumerate() {
                    target.copy_from_slice(&x[places.at(first + k)..][..row]);
                }
            }
        });
    });
    Ok(out.into_storages())
}

/// Elements added along the axis, repeated indices in row-major order.
pub(crate) fn scatter_add(op: &ScatterAdd, inputs: &[&Tensor], outputs: &[Meta], cx: &Context<'_>) -> Result<Storages> {
    let (x, index, source) = (inputs[0], inputs[1], inputs[2]);
    let places = Places::new("scatter_add", op.axis, x, index)?;
    let mut out = cx.output(&outputs[0])?;
    copy::to_bytes(x, out.bytes_mut());
    for_dtype!(x.dtype(), T => {
        let source = dense::<T>(source, cx)?;
        add::<T>(&places, &source, out.slice_mut());
    });
    Ok(out.into_storages())
}

/// Adds the source's rows at their places. 16-bit floats are added in f32 and rounded once.
fn add<T: Stored>(places: &Places, source: &[T], out: &mut [T])
where
    T::Lane: Arithmetic,
{
    if size_of::<T>() == 2 {
        let mut wide: Vec<T::Lane> = out.iter().map(|&v| v.load()).collect();
        let terms: Vec<T::Lane> = source.iter().map(|&v| v.load()).collect();
        add_lanes(places, &terms, &mut wide);
        out.iter_mut().zip(wide).for_each(|(v, sum)| *v = T::store(sum));
    } else {
        // The other types are their own lanes.
        add_lanes::<T::Lane>(places, bytemuck::cast_slice(source), bytemuck::cast_slice_mut(out));
    }
}

fn add_lanes<L: Arithmetic>(places: &Places, source: &[L], out: &mut [L]) {
    let row = places.row;
    if source.is_empty() {
        return;
    }
    // Whole outer slices go to different threads: no two of them touch the same place.
    let slice = places.slice.max(1);
    let per_slice = places.len() / places.outer.max(1);
    let pieces = out.chunks_mut(slice).enumerate().take(places.outer);
    let spread = if places.is_aligned { source.len() } else { 0 };
    if !places.is_aligned {
        for (k, &term) in source.iter().enumerate() {
            let place = places.at(k);
            out[place] = out[place].plus(term);
        }
        return;
    }
    threads::for_each(spread, pieces, |(o, target)| {
        for k in o * per_slice..(o + 1) * per_slice {
            let place = places.at(k) - o * slice;
            if row == 1 {
                target[place] = target[place].plus(source[k]);
            } else {
                simd::run(AddRow { target: &mut target[place..place + row], source: &source[k * row..][..row] });
            }
        }
    });
}

struct AddRow<'a, L> {
    target: &'a mut [L],
    source: &'a [L],
}

impl<L: Arithmetic> Kernel for AddRow<'_, L> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        self.target.iter_mut().zip(self.source).for_each(|(t, &s)| *t = t.plus(s));
    }
}

/// Where in a row-major x the elements lie that an index names, in units of `row` elements.
struct Places {
    /// The position of each row's first element, in the index's row-major order.
    positions: Vec<usize>,
    /// How many elements follow one another under one index.
    row: usize,
    /// Slices of x that no index leaves, their length, and whether the index covers x off the axis.
    outer: usize,
    slice: usize,
    is_aligned: bool,
}

impl Places {
    fn new(op: &'static str, axis: usize, x: &Tensor, index: &Tensor) -> Result<Self> {
        let (inner, outer) = (&index.dims()[axis + 1..], &index.dims()[..axis]);
        let is_aligned = (0..x.rank()).all(|a| a == axis || index.dims()[a] == x.dims()[a]);
        let by_row =
            is_aligned && inner.iter().zip(&index.layout().strides()[axis + 1..]).all(|(&n, &s)| s == 0 || n == 1);
        let row = if by_row { inner.iter().product() } else { 1 };
        let index = if by_row && row != 1 { one_per_row(index, axis)? } else { index.clone() };
        let values = indices(&index);
        let strides = Layout::contiguous(x.shape());
        let strides: Vec<usize> = strides.strides().iter().map(|&s| s as usize).collect();
        let n = x.dims()[axis];
        let mut positions = Vec::with_capacity(values.len());
        let mut at = vec![0usize; index.rank()];
        let mut base = 0;
        for value in values {
            let i = usize::try_from(value).ok().filter(|&i| i < n).ok_or_else(|| {
                Error::index(
                    op,
                    format!(
                        "index is out of range: index {value} at {at:?}, axis {axis} has {n}; indices count from 0"
                    ),
                )
            })?;
            positions.push(base + i * strides[axis]);
            // The next index in row-major order; the axis itself adds nothing to the base.
            for a in (0..at.len()).rev() {
                let step = if a == axis { 0 } else { strides[a] };
                at[a] += 1;
                base += step;
                if at[a] < index.dims()[a] {
                    break;
                }
                base -= at[a] * step;
                at[a] = 0;
            }
        }
        let slice = n * x.dims()[axis + 1..].iter().product::<usize>();
        Ok(Self { positions, row, outer: outer.iter().product(), slice, is_aligned })
    }

    fn len(&self) -> usize {
        self.positions.len()
    }

    #[inline]
    fn at(&self, row: usize) -> usize {
        self.positions[row]
    }
}

/// The index with one element left of each inner axis.
fn one_per_row(index: &Tensor, axis: usize) -> Result<Tensor> {
    (axis + 1..index.rank()).try_fold(index.clone(), |index, axis| {
        index.view(&Movement::Slice { axis, start: 0, len: index.dims()[axis].min(1), step: 1 })
    })
}

/// The index's elements, row-major.
fn indices(index: &Tensor) -> Vec<i64> {
    fn read<T: Elem>(index: &Tensor) -> Vec<T> {
        let mut values = vec![T::default(); index.len()];
        copy::to_bytes(index, bytemuck::cast_slice_mut(&mut values));
        values
    }
    match index.dtype() {
        DType::I32 => read::<i32>(index).into_iter().map(i64::from).collect(),
        _ => read::<i64>(index),
    }
}
