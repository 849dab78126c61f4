//! Stable sort along an axis.

use std::cmp::Ordering;

use tensor_core::op::Sort;
use tensor_core::{Meta, Result, Storages, Tensor};

use super::dense::dense;
use super::lanes::Lanes;
use super::number::Arithmetic;
use crate::eval::Stored;
use crate::{Context, for_dtype, threads};

#[cfg(test)]
mod tests;

/// Values in order and where they were.
pub(crate) fn run(op: &Sort, inputs: &[&Tensor], outputs: &[Meta], cx: &Context<'_>) -> Result<Storages> {
    let lanes = Lanes::new(inputs[0].dims(), op.axis);
    let mut values = cx.output(&outputs[0])?;
    let mut positions = cx.output(&outputs[1])?;
    for_dtype!(inputs[0].dtype(), T => {
        let x = dense::<T>(inputs[0], cx)?;
        let slice = lanes.slice().max(1);
        let work_ns = x.len() * (lanes.n.max(2).ilog2() as usize) * 4;
        // Rows next to one another make a piece: at least some thousand elements.
        let per_piece = (4096 / slice).max(1) * slice;
        let pieces = values.slice_mut::<T>().chunks_mut(per_piece).zip(positions.slice_mut::<i64>().chunks_mut(per_piece));
        threads::for_each(work_ns, pieces.enumerate(), |(i, (values, positions))| {
            let mut order: Vec<u32> = Vec::new();
            let x = &x[i * per_piece..][..values.len()];
            for ((x, values), positions) in x.chunks(slice).zip(values.chunks_mut(slice)).zip(positions.chunks_mut(slice)) {
                for lane in 0..lanes.inner {
                    sort_lane::<T>(&lanes, lane, x, values, positions, &mut order, op.descending);
                }
            }
        });
    });
    Ok(Storages::from_iter([values.into_storage(), positions.into_storage()]))
}

fn sort_lane<T: Stored>(
    lanes: &Lanes,
    lane: usize,
    x: &[T],
    values: &mut [T],
    positions: &mut [i64],
    order: &mut Vec<u32>,
    descending: bool,
) where
    T::Lane: Arithmetic,
{
    let at = |i: usize| i * lanes.inner + lane;
    order.clear();
    order.extend(0..lanes.n as u32);
    order.sort_by(|&a, &b| compare(x[at(a as usize)].load(), x[at(b as usize)].load(), descending));
    for (i, &from) in order.iter().enumerate() {
        values[at(i)] = x[at(from as usize)];
        positions[at(i)] = i64::from(from);
    }
}

/// NaN last in either direction.
fn compare<L: Arithmetic>(a: L, b: L, descending: bool) -> Ordering {
    match a.partial_cmp(&b) {
        Some(order) if descending => order.reverse(),
        Some(order) => order,
        None => a.is_nan().cmp(&b.is_nan()),
    }
}
