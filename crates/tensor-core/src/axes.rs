//! What can be written where an axis or a list of axes is expected; negative counts from the end.

use std::ops::{Range, RangeFrom, RangeFull, RangeInclusive, RangeTo, RangeToInclusive};

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

/// A list of axes: `..` for all, one integer, a range, or an array, slice or `Vec` of integers. No axis twice.
pub trait IntoAxes {
    /// The axes in the order they were written, or an error naming `op`.
    fn resolve_in_order(self, op: &'static str, rank: usize) -> Result<Dims>;

    /// The axes in ascending order, or an error naming `op`.
    fn resolve_axes(self, op: &'static str, rank: usize) -> Result<Dims>
    where
        Self: Sized,
    {
        let mut axes = self.resolve_in_order(op, rank)?;
        axes.sort_unstable();
        Ok(axes)
    }
}

fn resolve_list<A: IntoAxis>(axes: &[A], op: &'static str, rank: usize) -> Result<Dims> {
    let mut resolved = Dims::with_capacity(axes.len());
    for axis in axes {
        let axis = axis.resolve_axis(op, rank)?;
        if resolved.contains(&axis) {
            return Err(Error::axis(op, format!("axis is named twice: axis {axis}, rank {rank}")));
        }
        resolved.push(axis);
    }
    Ok(resolved)
}

/// Consecutive axes: `1..`, `..`, `0..2`, `1..=-1`, `..-1`. A negative bound counts from the end.
pub trait IntoAxisRange {
    /// The first axis and the one after the last, or an error naming `op`.
    fn resolve_range(self, op: &'static str, rank: usize) -> Result<Range<usize>>;
}

/// A bound between two axes: 0 to the rank.
fn bound<A: IntoAxis>(bound: A, op: &'static str, rank: usize) -> Result<usize> {
    let axis = bound.axis();
    let resolved = if axis < 0 { axis + rank as i64 } else { axis };
    if (0..=rank as i64).contains(&resolved) {
        Ok(resolved as usize)
    } else {
        Err(Error::axis(op, format!("axis is out of range: axis {axis}, rank {rank}")))
    }
}

fn span(op: &'static str, start: usize, stop: usize) -> Result<Range<usize>> {
    if start <= stop {
        return Ok(start..stop);
    }
    Err(Error::axis(op, format!("the range of axes runs backwards: start {start}, stop {stop}")))
}

impl IntoAxisRange for RangeFull {
    fn resolve_range(self, _: &'static str, rank: usize) -> Result<Range<usize>> {
        Ok(0..rank)
    }
}

impl<A: IntoAxis> IntoAxisRange for RangeFrom<A> {
    fn resolve_range(self, op: &'static str, rank: usize) -> Result<Range<usize>> {
        Ok(bound(self.start, op, rank)?..rank)
    }
}

impl<A: IntoAxis> IntoAxisRange for RangeTo<A> {
    fn resolve_range(self, op: &'static str, rank: usize) -> Result<Range<usize>> {
        Ok(0..bound(self.end, op, rank)?)
    }
}

impl<A: IntoAxis> IntoAxisRange for RangeToInclusive<A> {
    fn resolve_range(self, op: &'static str, rank: usize) -> Result<Range<usize>> {
        Ok(0..self.end.resolve_axis(op, rank)? + 1)
    }
}

impl<A: IntoAxis> IntoAxisRange for Range<A> {
    fn resolve_range(self, op: &'static str, rank: usize) -> Result<Range<usize>> {
        span(op, bound(self.start, op, rank)?, bound(self.end, op, rank)?)
    }
}

impl<A: IntoAxis> IntoAxisRange for RangeInclusive<A> {
    fn resolve_range(self, op: &'static str, rank: usize) -> Result<Range<usize>> {
        span(op, bound(*self.start(), op, rank)?, self.end().resolve_axis(op, rank)? + 1)
    }
}

macro_rules! axes {
    ($($t:ty),*) => { $(
        impl IntoAxis for $t {
            fn axis(self) -> i64 { i64::try_from(self).unwrap_or(i64::MAX) }
        }
        impl IntoAxes for $t {
            fn resolve_in_order(self, op: &'static str, rank: usize) -> Result<Dims> { resolve_list(&[self], op, rank) }
        }
    )* };
}
axes!(i32, i64, isize, usize);

impl IntoAxes for RangeFull {
    fn resolve_in_order(self, _: &'static str, rank: usize) -> Result<Dims> {
        Ok((0..rank).collect())
    }
}

macro_rules! ranges {
    ($($t:ident),*) => { $(
        impl<A: IntoAxis> IntoAxes for $t<A> {
            fn resolve_in_order(self, op: &'static str, rank: usize) -> Result<Dims> {
                Ok(self.resolve_range(op, rank)?.collect())
            }
        }
    )* };
}
ranges!(RangeFrom, RangeTo, RangeToInclusive, Range, RangeInclusive);

impl<A: IntoAxis, const N: usize> IntoAxes for [A; N] {
    fn resolve_in_order(self, op: &'static str, rank: usize) -> Result<Dims> {
        resolve_list(&self, op, rank)
    }
}

impl<A: IntoAxis, const N: usize> IntoAxes for &[A; N] {
    fn resolve_in_order(self, op: &'static str, rank: usize) -> Result<Dims> {
        resolve_list(self, op, rank)
    }
}

impl<A: IntoAxis> IntoAxes for &[A] {
    fn resolve_in_order(self, op: &'static str, rank: usize) -> Result<Dims> {
        resolve_list(self, op, rank)
    }
}

impl<A: IntoAxis> IntoAxes for &Vec<A> {
    fn resolve_in_order(self, op: &'static str, rank: usize) -> Result<Dims> {
        resolve_list(self, op, rank)
    }
}

impl<A: IntoAxis> IntoAxes for Vec<A> {
    fn resolve_in_order(self, op: &'static str, rank: usize) -> Result<Dims> {
        resolve_list(&self, op, rank)
    }
}

#[cfg(test)]
#[allow(clippy::reversed_empty_ranges)] // `2..1` is what is rejected.
mod tests {
    use super::*;

    fn axes(axes: impl IntoAxes, rank: usize) -> Result<Vec<usize>, String> {
        axes.resolve_axes("f", rank).map(|a| a.to_vec()).map_err(|e| e.to_string())
    }

    fn range(axes: impl IntoAxisRange, rank: usize) -> Result<Range<usize>, String> {
        axes.resolve_range("f", rank).map_err(|e| e.to_string())
    }

    #[test]
    fn lists_of_axes_resolve_in_ascending_order() {
        let cases = [
            (axes(.., 3), Ok(vec![0, 1, 2])),
            (axes(.., 0), Ok(vec![])),
            (axes(-1, 3), Ok(vec![2])),
            (axes(1usize, 3), Ok(vec![1])),
            (axes([2, 0], 3), Ok(vec![0, 2])),
            (axes(&[-1, 0][..], 3), Ok(vec![0, 2])),
            (axes(vec![0usize], 1), Ok(vec![0])),
            (axes(1.., 3), Ok(vec![1, 2])),
            (axes(..-1, 3), Ok(vec![0, 1])),
            (axes(3, 3), Err("f: axis is out of range: axis 3, rank 3".into())),
            (axes(0, 0), Err("f: axis is out of range: axis 0, rank 0".into())),
            (axes([1, -2], 3), Err("f: axis is named twice: axis 1, rank 3".into())),
            (axes(usize::MAX, 3), Err(format!("f: axis is out of range: axis {}, rank 3", i64::MAX))),
        ];
        for (got, expected) in cases {
            assert_eq!(got, expected);
        }
        assert_eq!([2, 0, 1].resolve_in_order("f", 3).expect("axes").to_vec(), [2, 0, 1]);
    }

    #[test]
    fn ranges_of_axes_lie_within_the_rank() {
        let cases = [
            (range(.., 3), Ok(0..3)),
            (range(1.., 3), Ok(1..3)),
            (range(3.., 3), Ok(3..3)),
            (range(-2.., 3), Ok(1..3)),
            (range(..=-1, 3), Ok(0..3)),
            (range(0..=1, 3), Ok(0..2)),
            (range(4.., 3), Err("f: axis is out of range: axis 4, rank 3".into())),
            (range(2..1, 3), Err("f: the range of axes runs backwards: start 2, stop 1".into())),
        ];
        for (got, expected) in cases {
            assert_eq!(got, expected);
        }
    }
}
