//! Copying a tensor of any layout to row-major memory, or into a part of it.
//!
//! Runs are copied whole, one element is repeated by filling, and an axis that is consecutive in the source but not in
//! the target goes through square tiles, so that every cache line is read and written once.

use bytemuck::{cast_slice, cast_slice_mut};
use smallvec::SmallVec;
use tensor_core::{DType, HostData, Layout, Meta, Result, Storages, Tensor};

use crate::storage::buffer;
use crate::{Context, threads};

/// The same elements, row-major.
pub(crate) fn run(inputs: &[&Tensor], outputs: &[Meta], cx: &Context<'_>) -> Result<Storages> {
    let mut out = cx.output(&outputs[0])?;
    to_bytes(inputs[0], out.bytes_mut());
    Ok(out.into_storages())
}

/// The elements as host values, row-major.
pub(crate) fn download(x: &Tensor) -> HostData {
    let mut data = HostData::zeros(x.dtype(), x.len());
    match &mut data {
        HostData::F64(v) => to_bytes(x, cast_slice_mut(v)),
        HostData::F32(v) => to_bytes(x, cast_slice_mut(v)),
        HostData::F16(v) => to_bytes(x, cast_slice_mut(v)),
        HostData::BF16(v) => to_bytes(x, cast_slice_mut(v)),
        HostData::I64(v) => to_bytes(x, cast_slice_mut(v)),
        HostData::I32(v) => to_bytes(x, cast_slice_mut(v)),
        HostData::U8(v) => to_bytes(x, v),
        HostData::Bool(v) => {
            let mut bytes = vec![0u8; v.len()];
            to_bytes(x, &mut bytes);
            v.iter_mut().zip(&bytes).for_each(|(v, &byte)| *v = byte != 0);
        }
    }
    data
}

/// Copies a tensor's elements to `out`, row-major.
pub(crate) fn to_bytes(x: &Tensor, out: &mut [u8]) {
    let strides: SmallVec<[usize; 4]> = Layout::contiguous(x.shape()).strides().iter().map(|&s| s as usize).collect();
    into_part(x.dtype(), buffer(x).bytes(), x.layout(), out, 0, &strides);
}

/// Copies the elements of `layout` in `source` to `out`, element (i, j, …) to position `offset + i·strides[0] + …`.
/// The places are in row-major order: each stride spans what the axes inside it reach.
pub(crate) fn into_part(
    dtype: DType,
    source: &[u8],
    layout: &Layout,
    out: &mut [u8],
    offset: usize,
    strides: &[usize],
) {
    if layout.is_empty() {
        return;
    }
    let axes = Axis::merge(layout, strides);
    let start = layout.offset() as isize;
    match dtype.size_bytes() {
        1 => copy::<u8>(source, start, &mut out[offset..], &axes),
        2 => copy::<u16>(cast_slice(source), start, &mut cast_slice_mut(out)[offset..], &axes),
        4 => copy::<u32>(cast_slice(source), start, &mut cast_slice_mut(out)[offset..], &axes),
        _ => copy::<u64>(cast_slice(source), start, &mut cast_slice_mut(out)[offset..], &axes),
    }
}

/// One axis of a copy: its size and what a step means in source and target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Axis {
    n: usize,
    from: isize,
    to: usize,
}

impl Axis {
    /// The axes outermost first, merged where source and target allow it; at least one.
    fn merge(layout: &Layout, strides: &[usize]) -> SmallVec<[Self; 4]> {
        let mut axes: SmallVec<[Self; 4]> = SmallVec::new();
        for ((&n, &from), &to) in layout.shape().iter().zip(layout.strides()).zip(strides) {
            match axes.last_mut() {
                _ if n == 1 => {}
                Some(outer) if outer.from == from * n as isize && outer.to == to * n => {
                    *outer = Self { n: outer.n * n, from, to };
                }
                _ => axes.push(Self { n, from, to }),
            }
        }
        if axes.is_empty() {
            axes.push(Self { n: 1, from: 1, to: 1 });
        }
        axes
    }
}

/// An element, by its size.
trait Word: bytemuck::Pod + Send + Sync + Default {}
impl Word for u8 {}
impl Word for u16 {}
impl Word for u32 {}
impl Word for u64 {}

/// Cuts the copy into pieces along the outer axes, in the order of the target, and spreads them over threads.
fn copy<T: Word>(source: &[T], start: isize, out: &mut [T], axes: &[Axis]) {
    let n: usize = axes.iter().map(|a| a.n).product();
    let is_run = axes[axes.len() - 1].from == 1;
    let work_ns = n * size_of::<T>() * if is_run { 100 } else { 200 } / 1000;
    if !threads::is_worthwhile(work_ns) {
        return block(source, start, out, axes);
    }
    let n_pieces = (work_ns / 30_000).clamp(1, 1024);
    // Axes outside `cut` are walked one by one, `cut` in ranges.
    let mut cut = 0;
    let mut n_outer = 1;
    while cut + 1 < axes.len() && n_outer * axes[cut].n < n_pieces {
        n_outer *= axes[cut].n;
        cut += 1;
    }
    let rows = axes[cut].n.div_ceil(n_pieces.div_ceil(n_outer)).next_multiple_of(TILE);
    let n_ranges = axes[cut].n.div_ceil(rows);
    let mut rest = out;
    let mut taken = 0;
    let pieces = (0..n_outer * n_ranges).map(|piece| {
        let (mut outer, first) = (piece / n_ranges, piece % n_ranges * rows);
        let (mut from, mut to) = (start + first as isize * axes[cut].from, first * axes[cut].to);
        for axis in axes[..cut].iter().rev() {
            from += (outer % axis.n) as isize * axis.from;
            to += outer % axis.n * axis.to;
            outer /= axis.n;
        }
        let mut inner: SmallVec<[Axis; 4]> = SmallVec::from_slice(&axes[cut..]);
        inner[0].n = rows.min(axes[cut].n - first);
        let reach = inner.iter().map(|a| (a.n - 1) * a.to).sum::<usize>() + 1;
        let (_, after) = std::mem::take(&mut rest).split_at_mut(to - taken);
        let (part, after) = after.split_at_mut(reach);
        rest = after;
        taken = to + reach;
        (from, part, inner)
    });
    threads::for_each(work_ns, pieces, |(from, part, inner)| block(source, from, part, &inner));
}

/// Copies on one thread; the target begins with the first element.
fn block<T: Word>(source: &[T], start: isize, out: &mut [T], axes: &[Axis]) {
    let (&axis, inner) = axes.split_first().expect("invariant: a copy has an axis");
    let Some(last) = inner.last() else { return row(source, start, out, axis) };
    let is_tiled = last.to == 1 && last.from != 1 && last.from != 0 && last.n >= TILE;
    if is_tiled && let Some(across) = axes.iter().position(|a| a.from == 1 && a.n >= TILE) {
        let mut others: SmallVec<[Axis; 4]> = SmallVec::from_slice(axes);
        let along = others.pop().expect("invariant: two axes at least");
        let across = others.remove(across);
        return tiles(source, start, out, &others, across, along);
    }
    for i in 0..axis.n {
        block(source, start + i as isize * axis.from, &mut out[i * axis.to..], inner);
    }
}

fn row<T: Word>(source: &[T], start: isize, out: &mut [T], axis: Axis) {
    let start = start as usize;
    match (axis.from, axis.to) {
        (1, 1) => out[..axis.n].copy_from_slice(&source[start..][..axis.n]),
        (0, 1) => out[..axis.n].fill(source[start]),
        (-1, 1) => {
            let source = &source[start + 1 - axis.n..=start];
            out[..axis.n].iter_mut().zip(source.iter().rev()).for_each(|(to, &from)| *to = from);
        }
        (from, 1) if from > 0 => {
            let source = source[start..].iter().step_by(from as usize);
            out[..axis.n].iter_mut().zip(source).for_each(|(to, &from)| *to = from);
        }
        (from, to) => {
            for i in 0..axis.n {
                out[i * to] = source[(start as isize + i as isize * from) as usize];
            }
        }
    }
}

/// The side of a tile: a cache line of 4-byte elements.
const TILE: usize = 16;

/// Transposes: `across` is consecutive in the source, `along` in the target. Axes in `others` are walked.
fn tiles<T: Word>(source: &[T], start: isize, out: &mut [T], others: &[Axis], across: Axis, along: Axis) {
    if let Some((&axis, inner)) = others.split_first() {
        for i in 0..axis.n {
            tiles(source, start + i as isize * axis.from, &mut out[i * axis.to..], inner, across, along);
        }
        return;
    }
    for i in (0..across.n).step_by(TILE) {
        let height = TILE.min(across.n - i);
        for j in (0..along.n).step_by(TILE) {
            let width = TILE.min(along.n - j);
            let mut tile = [[T::default(); TILE]; TILE];
            for (k, line) in tile.iter_mut().enumerate().take(width) {
                let from = (start + i as isize + (j + k) as isize * along.from) as usize;
                if height == TILE {
                    line.copy_from_slice(&source[from..][..TILE]);
                } else {
                    line[..height].copy_from_slice(&source[from..][..height]);
                }
            }
            for k in 0..height {
                let to = &mut out[(i + k) * across.to + j..];
                if width == TILE {
                    // Of constant length: unrolled.
                    let to = &mut to[..TILE];
                    (0..TILE).for_each(|l| to[l] = tile[l][k]);
                } else {
                    (0..width).for_each(|l| to[l] = tile[l][k]);
                }
            }
        }
    }
}

/// Whether a copy goes through tiles where reading in row-major order would jump from line to line.
pub(crate) fn is_tiled(layout: &Layout) -> bool {
    let is_long = |axis: usize| layout.shape()[axis] >= TILE;
    let last = (0..layout.shape().rank()).rev().find(|&axis| layout.shape()[axis] != 1);
    last.is_some_and(|last| {
        let stride = layout.strides()[last];
        stride != 0 && stride != 1 && is_long(last) && (0..last).any(|a| layout.strides()[a] == 1 && is_long(a))
    })
}

#[cfg(test)]
mod tests;
