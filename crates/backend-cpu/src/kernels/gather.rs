//! Picking and adding along an axis by index.
//!
//! Operands are seen as [outer, n, inner] around the axis. Where the index is the same for a whole row of `inner`
//! elements (an embedding: stride 0 along the inner axes), rows are copied and added whole.

use std::ops::Range;

use bytemuck::{cast_slice, cast_slice_mut};
use half::{bf16, f16};
use smallvec::SmallVec;
use tensor_core::op::{Gather, ScatterAdd};
use tensor_core::{DType, Error, Meta, Movement, Result, Storages, Tensor};

use super::copy;
use super::dense::{dense, widened};
use super::number::Arithmetic;
use crate::eval::{LaneType, Stored, narrow};
use crate::simd::{self, Kernel};
use crate::{Context, Elem, input, threads};

#[cfg(test)]
mod tests;

/// Elements that one piece of spread work picks.
const PIECE: usize = 1 << 14;

/// Elements picked along the axis.
pub(crate) fn run(op: &Gather, inputs: &[&Tensor], outputs: &[Meta], cx: &Context<'_>) -> Result<Storages> {
    let x = inputs[0];
    let mut out = cx.output(&outputs[0])?;
    let (index, is_by_row) = one_per_row(inputs[1], x, op.axis)?;
    match index.dtype() {
        DType::I32 => {
            let values = dense::<i32>(&index, cx)?;
            Places::new("gather", op.axis, x, inputs[1], &values, is_by_row)?.gather(x, out.bytes_mut(), cx)?;
        }
        _ => {
            let values = dense::<i64>(&index, cx)?;
            Places::new("gather", op.axis, x, inputs[1], &values, is_by_row)?.gather(x, out.bytes_mut(), cx)?;
        }
    }
    Ok(out.into_storages())
}

/// Elements added along the axis, repeated indices in row-major order.
pub(crate) fn scatter_add(op: &ScatterAdd, inputs: &[&Tensor], outputs: &[Meta], cx: &Context<'_>) -> Result<Storages> {
    let x = inputs[0];
    let mut out = cx.output(&outputs[0])?;
    let (index, is_by_row) = one_per_row(inputs[1], x, op.axis)?;
    match index.dtype() {
        DType::I32 => {
            let values = dense::<i32>(&index, cx)?;
            let places = Places::new("scatter_add", op.axis, x, inputs[1], &values, is_by_row)?;
            places.scatter_add(x, inputs[2], out.bytes_mut(), cx)?;
        }
        _ => {
            let values = dense::<i64>(&index, cx)?;
            let places = Places::new("scatter_add", op.axis, x, inputs[1], &values, is_by_row)?;
            places.scatter_add(x, inputs[2], out.bytes_mut(), cx)?;
        }
    }
    Ok(out.into_storages())
}

/// The index with one element left of each row inside the axis, and true, if it is the same along all x's rows.
fn one_per_row(index: &Tensor, x: &Tensor, axis: usize) -> Result<(Tensor, bool)> {
    let inner = axis + 1..x.rank();
    let (dims, strides) = (&index.dims()[inner.clone()], &index.layout().strides()[inner.clone()]);
    let is_repeated = dims.iter().zip(strides).all(|(&n, &stride)| stride == 0 || n == 1);
    if !is_repeated || dims != &x.dims()[inner.clone()] || dims.iter().product::<usize>() < 2 {
        return Ok((index.clone(), false));
    }
    let first = |index: Tensor, axis| index.view(&Movement::Slice { axis, start: 0, len: 1, step: 1 });
    Ok((inner.into_iter().try_fold(index.clone(), first)?, true))
}

/// An integer that indices come in.
trait Index: Elem {
    /// As i64.
    fn wide(self) -> i64;
}

impl Index for i32 {
    #[inline(always)]
    fn wide(self) -> i64 {
        self.into()
    }
}

impl Index for i64 {
    #[inline(always)]
    fn wide(self) -> i64 {
        self
    }
}

/// What an index names in a row-major x of [outer, n, inner]; all of it is in range.
struct Places<'a, I> {
    /// [outer, n_picked, inner], or [outer, n_picked] where whole rows are meant.
    index: &'a [I],
    n_picked: usize,
    inner: usize,
    is_by_row: bool,
    /// x's sizes.
    x_outer: usize,
    n: usize,
    x_inner: usize,
    /// Outer and inner positions in x, where the index is narrower than x.
    outer_places: Option<Vec<usize>>,
    inner_places: Option<Vec<usize>>,
}

impl<'a, I: Index> Places<'a, I> {
    fn new(
        op: &'static str,
        axis: usize,
        x: &Tensor,
        index: &Tensor,
        values: &'a [I],
        is_by_row: bool,
    ) -> Result<Self> {
        let n = x.dims()[axis];
        let in_range = |i: &I| (0..n as i64).contains(&i.wide());
        // The whole is looked at: that vectorises.
        if !values.iter().fold(true, |all, i| all & in_range(i)) {
            let bad = values.iter().position(|i| !in_range(i)).expect("invariant: one is out of range");
            let dims = index.dims().iter().enumerate();
            let dims: SmallVec<[usize; 4]> = dims.map(|(a, &n)| if is_by_row && a > axis { 1 } else { n }).collect();
            let (mut at, mut rest) = (SmallVec::<[usize; 4]>::from_elem(0, dims.len()), bad);
            for (at, &n) in at.iter_mut().zip(&dims).rev() {
                (*at, rest) = (rest % n, rest / n);
            }
            let value = values[bad].wide();
            return Err(Error::index(
                op,
                format!("index is out of range: index {value} at {at:?}, axis {axis} has {n}; indices count from 0"),
            ));
        }
        let (outer, inner) = (0..axis, axis + 1..x.rank());
        let product = |x: &Tensor, axes: &Range<usize>| x.dims()[axes.clone()].iter().product();
        Ok(Self {
            index: values,
            n_picked: index.dims()[axis],
            inner: product(index, &inner),
            is_by_row,
            x_outer: product(x, &outer),
            n,
            x_inner: product(x, &inner),
            outer_places: places(&index.dims()[outer.clone()], &x.dims()[outer]),
            inner_places: places(&index.dims()[inner.clone()], &x.dims()[inner]),
        })
    }

    /// Elements are moved as bits: types of one size are the same here.
    fn gather(&self, x: &Tensor, out: &mut [u8], cx: &Context<'_>) -> Result<()> {
        match x.dtype() {
            DType::F64 => self.pick::<f64>(&dense(x, cx)?, cast_slice_mut(out)),
            DType::I64 => self.pick::<f64>(cast_slice(&dense::<i64>(x, cx)?), cast_slice_mut(out)),
            DType::F32 => self.pick::<f32>(&dense(x, cx)?, cast_slice_mut(out)),
            DType::I32 => self.pick::<f32>(cast_slice(&dense::<i32>(x, cx)?), cast_slice_mut(out)),
            DType::F16 | DType::BF16 => self.pick::<f16>(cast_slice(&dense::<f16>(x, cx)?), cast_slice_mut(out)),
            DType::U8 | DType::Bool => self.pick::<u8>(&dense(x, cx)?, out),
        }
        Ok(())
    }

    fn pick<T: Elem>(&self, x: &[T], out: &mut [T]) {
        let &Self { index, n_picked, inner, is_by_row, n, x_inner, .. } = self;
        if out.is_empty() {
            return;
        }
        let rows_per_piece = (PIECE / inner).max(1);
        let work_ns = if is_by_row { size_of_val(out) / 16 } else { out.len() };
        threads::for_each(work_ns, out.chunks_mut(rows_per_piece * inner).enumerate(), |(i, piece)| {
            for (row, out) in (i * rows_per_piece..).zip(piece.chunks_mut(inner)) {
                let outer = row / n_picked;
                let start = self.outer_places.as_ref().map_or(outer, |places| places[outer]) * n;
                let place = |i: I| (start + i.wide() as usize) * x_inner;
                if is_by_row {
                    out.copy_from_slice(&x[place(index[row])..][..inner]);
                    continue;
                }
                let index = &index[row * inner..][..inner];
                match &self.inner_places {
                    None if inner == 1 => out[0] = x[place(index[0])],
                    None => (0..).zip(out).zip(index).for_each(|((k, out), &i)| *out = x[place(i) + k]),
                    Some(inner) => inner.iter().zip(out).zip(index).for_each(|((k, out), &i)| *out = x[place(i) + k]),
                }
            }
        });
    }

    fn scatter_add(&self, x: &Tensor, source: &Tensor, out: &mut [u8], cx: &Context<'_>) -> Result<()> {
        match x.dtype() {
            DType::F16 => return self.through_f32::<f16>(x, source, cast_slice_mut(out), cx),
            DType::BF16 => return self.through_f32::<bf16>(x, source, cast_slice_mut(out), cx),
            _ => {}
        }
        match LaneType::of(x.dtype()) {
            LaneType::F64 => self.add_to::<f64>(x, &dense(source, cx)?, cast_slice_mut(out)),
            LaneType::F32 => self.add_to::<f32>(x, &dense(source, cx)?, cast_slice_mut(out)),
            LaneType::I64 => self.add_to::<i64>(x, &dense(source, cx)?, cast_slice_mut(out)),
            LaneType::I32 => self.add_to::<i32>(x, &dense(source, cx)?, cast_slice_mut(out)),
            LaneType::U8 => self.add_to::<u8>(x, &dense(source, cx)?, out),
        }
        Ok(())
    }

    /// Adds to a copy of x; one value everywhere, as for a gradient, is written by whoever adds to it, in the cache.
    fn add_to<L: Arithmetic>(&self, x: &Tensor, terms: &[L], sums: &mut [L]) {
        let is_one_value = !x.is_empty() && x.layout().strides().iter().zip(x.dims()).all(|(&s, &n)| s == 0 || n == 1);
        if is_one_value {
            return self.add(terms, sums, Some(input::<L>(x)[x.layout().offset()]));
        }
        copy::to_bytes(x, cast_slice_mut(sums));
        self.add(terms, sums, None);
    }

    /// Added in f32 and rounded once.
    fn through_f32<T: Stored<Lane = f32>>(
        &self,
        x: &Tensor,
        source: &Tensor,
        out: &mut [T],
        cx: &Context<'_>,
    ) -> Result<()> {
        let mut sums = widened::<T>(x, cx)?;
        self.add::<f32>(widened::<T>(source, cx)?.slice(), sums.slice_mut(), None);
        narrow(sums.slice(), out);
        Ok(())
    }

    /// Each thread adds to a stretch of x of its own and takes the terms that belong there in order.
    ///
    /// The sums begin with what is there, or with `start`.
    fn add<L: Arithmetic>(&self, terms: &[L], sums: &mut [L], start: Option<L>) {
        let &Self { n, x_outer, x_inner, .. } = self;
        if sums.is_empty() {
            return;
        }
        let work_ns = if self.is_by_row { size_of_val(terms) / 8 } else { 2 * terms.len() };
        let work_ns = work_ns + start.map_or(0, |_| size_of_val(sums) / 16);
        let mut slice_of = vec![usize::MAX; x_outer];
        match &self.outer_places {
            None => slice_of.iter_mut().enumerate().for_each(|(i, slice)| *slice = i),
            Some(places) => places.iter().enumerate().for_each(|(i, &place)| slice_of[place] = i),
        }
        // Few slices: each is cut along the axis, and every piece looks at all of the slice's indices.
        let wanted = if threads::is_worthwhile(work_ns) { 2 * threads::n_threads() } else { 1 };
        let n_parts = wanted.div_ceil(x_outer).min(n);
        let rows_per_part = n.div_ceil(n_parts);
        let slices = sums.chunks_mut(n * x_inner).zip(slice_of);
        let parts = slices.flat_map(|(sums, slice)| {
            let parts = sums.chunks_mut(rows_per_part * x_inner).enumerate();
            parts.map(move |(part, sums)| (slice, part * rows_per_part, sums))
        });
        threads::for_each(work_ns, parts, |(slice, first, sums): (usize, usize, &mut [L])| {
            if let Some(start) = start {
                sums.fill(start);
            }
            if slice != usize::MAX && !terms.is_empty() {
                self.add_slice(slice, first, terms, sums);
            }
        });
    }

    /// Adds the terms of a slice that fall on the rows of `sums`, the first of which is `first`.
    fn add_slice<L: Arithmetic>(&self, slice: usize, first: usize, terms: &[L], sums: &mut [L]) {
        let &Self { index, n_picked, inner, is_by_row, x_inner, .. } = self;
        let rows = first..first + sums.len() / x_inner;
        if inner == 1 && x_inner == 1 {
            let all = slice * n_picked..(slice + 1) * n_picked;
            for (i, &term) in index[all.clone()].iter().zip(&terms[all]) {
                if let Some(sum) = sums.get_mut((i.wide() as usize).wrapping_sub(first)) {
                    *sum = sum.plus(term);
                }
            }
            return;
        }
        for row in slice * n_picked..(slice + 1) * n_picked {
            let terms = &terms[row * inner..][..inner];
            if is_by_row {
                let i = index[row].wide() as usize;
                if rows.contains(&i) {
                    simd::run(AddRow { sums: &mut sums[(i - first) * inner..][..inner], terms });
                }
                continue;
            }
            let mut add = |k: usize, i: I, term: L| {
                let i = i.wide() as usize;
                if rows.contains(&i) {
                    let sum = &mut sums[(i - first) * x_inner + k];
                    *sum = sum.plus(term);
                }
            };
            let picked = index[row * inner..].iter().zip(terms);
            match &self.inner_places {
                None => picked.enumerate().for_each(|(k, (&i, &term))| add(k, i, term)),
                Some(inner) => picked.zip(inner).for_each(|((&i, &term), &k)| add(k, i, term)),
            }
        }
    }
}

/// Row-major positions in `whole` of all indices of `part`; none if they are the same.
fn places(part: &[usize], whole: &[usize]) -> Option<Vec<usize>> {
    if part == whole {
        return None;
    }
    let mut places = vec![0];
    for (&n, &all) in part.iter().zip(whole) {
        places = places.iter().flat_map(|place| (0..n).map(move |i| place * all + i)).collect();
    }
    Some(places)
}

struct AddRow<'a, L> {
    sums: &'a mut [L],
    terms: &'a [L],
}

impl<L: Arithmetic> Kernel for AddRow<'_, L> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        self.sums.iter_mut().zip(self.terms).for_each(|(sum, &term)| *sum = sum.plus(term));
    }
}
