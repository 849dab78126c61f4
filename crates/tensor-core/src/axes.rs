//! What can be written where an axis or a list of axes is expected; negative counts from the end.

use std::ops::RangeFull;

use crate::{Dims, Error, Result};

/// One axis: any integer; −1 is the last.
pub trait IntoAxis: Copy {
    /// The integer as written.
    fn axis(self) -> i64;

    /// The axis of a tensor of `rank`, or an error naming `op`.
    fn resolve_axis(self, op: &'static str, rank: usize) -> Result<usize> {
        let axis = self.axis();
        let resolved = if axis < 0 { axis + rank as i64 } else { axis };
        if (0..rank as i64).contains(&resolved) {
            Ok(resolved as usize)
        } else {
            Err(Error::axis(op, format!("axis is out of range: axis {axis}, rank {rank}")))
        }
    }
}

/// A list of axes: `..` for all, one integer, or an array, slice or `Vec` of integers.
pub trait IntoAxes {
    /// The axes in ascending order, each once, or an error naming `op`.
    fn resolve_axes(self, op: &'static str, rank: usize) -> Result<Dims>;
}

fn resolve_list<A: IntoAxis>(axes: &[A], op: &'static str, rank: usize) -> Result<Dims> {
    let mut resolved = axes.iter().map(|a| a.resolve_axis(op, rank)).collect::<Result<Dims>>()?;
    resolved.sort_unstable();
    match resolved.windows(2).find(|w| w[0] == w[1]) {
        Some(w) => Err(Error::axis(op, format!("axis is named twice: axis {}", w[0]))),
        None => Ok(resolved),
    }
}

macro_rules! axes {
    ($($t:ty),*) => { $(
        impl IntoAxis for $t {
            fn axis(self) -> i64 { i64::try_from(self).unwrap_or(i64::MAX) }
        }
        impl IntoAxes for $t {
            fn resolve_axes(self, op: &'static str, rank: usize) -> Result<Dims> { resolve_list(&[self], op, rank) }
        }
    )* };
}
axes!(i32, i64, isize, usize);

impl IntoAxes for RangeFull {
    fn resolve_axes(self, _: &'static str, rank: usize) -> Result<Dims> {
        Ok((0..rank).collect())
    }
}

impl<A: IntoAxis, const N: usize> IntoAxes for [A; N] {
    fn resolve_axes(self, op: &'static str, rank: usize) -> Result<Dims> {
        resolve_list(&self, op, rank)
    }
}

impl<A: IntoAxis, const N: usize> IntoAxes for &[A; N] {
    fn resolve_axes(self, op: &'static str, rank: usize) -> Result<Dims> {
        resolve_list(self, op, rank)
    }
}

impl<A: IntoAxis> IntoAxes for &[A] {
    fn resolve_axes(self, op: &'static str, rank: usize) -> Result<Dims> {
        resolve_list(self, op, rank)
    }
}

impl<A: IntoAxis> IntoAxes for Vec<A> {
    fn resolve_axes(self, op: &'static str, rank: usize) -> Result<Dims> {
        resolve_list(&self, op, rank)
    }
}
