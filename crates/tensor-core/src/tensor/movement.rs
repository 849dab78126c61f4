//! Movements: another layout of the same elements. No data moves, except where a reshape of a strided view copies.

use std::ops::{Range, RangeFrom, RangeFull, RangeInclusive, RangeTo, RangeToInclusive};

use smallvec::SmallVec;

use crate::{Dim, Dims, Error, IntoAxes, IntoAxis, IntoAxisRange, IntoShape, Movement, Result, Tensor};

/// A range of positions along an axis: `a..b`, `a..`, `..b`, `a..=b` or `..`; a negative bound counts from the end.
pub trait IntoRange {
    /// The bounds as written, the second one excluded; `None` where there is none.
    fn bounds(self) -> (Option<i64>, Option<i64>);
}

impl<D: Dim> IntoRange for Range<D> {
    fn bounds(self) -> (Option<i64>, Option<i64>) {
        (Some(self.start.dim()), Some(self.end.dim()))
    }
}

impl<D: Dim> IntoRange for RangeFrom<D> {
    fn bounds(self) -> (Option<i64>, Option<i64>) {
        (Some(self.start.dim()), None)
    }
}

impl<D: Dim> IntoRange for RangeTo<D> {
    fn bounds(self) -> (Option<i64>, Option<i64>) {
        (None, Some(self.end.dim()))
    }
}

/// The bound after the last position; −1 is the last one.
fn after<D: Dim>(last: D) -> Option<i64> {
    if last.dim() == -1 { None } else { Some(last.dim().saturating_add(1)) }
}

impl<D: Dim> IntoRange for RangeInclusive<D> {
    fn bounds(self) -> (Option<i64>, Option<i64>) {
        (Some(self.start().dim()), after(*self.end()))
    }
}

impl<D: Dim> IntoRange for RangeToInclusive<D> {
    fn bounds(self) -> (Option<i64>, Option<i64>) {
        (None, after(self.end))
    }
}

impl IntoRange for RangeFull {
    fn bounds(self) -> (Option<i64>, Option<i64>) {
        (None, None)
    }
}

/// The positions `start..stop` of a range along an axis of `len` elements.
pub(super) fn resolve(op: &'static str, range: impl IntoRange, len: usize) -> Result<Range<usize>> {
    let (start, stop) = range.bounds();
    let n = len as i64;
    let at = |bound: i64| if bound < 0 { bound + n } else { bound };
    let (a, b) = (at(start.unwrap_or(0)), at(stop.unwrap_or(n)));
    if !(0..=n).contains(&a) || !(0..=n).contains(&b) || a > b {
        let (start, stop) = (start.unwrap_or(0), stop.unwrap_or(n));
        return Err(Error::index(
            op,
            format!("the range does not lie within the axis: range {start}..{stop}, size {len}"),
        ));
    }
    Ok(a as usize..b as usize)
}

impl Tensor {
    /// The same elements in row-major order under another shape; one size may be −1: what is left over.
    ///
    /// # Errors
    /// If the shape holds another number of elements, or −1 stands more than once or has no single answer.
    pub fn reshape(&self, shape: impl IntoShape) -> Result<Tensor> {
        let written = shape.into_dims();
        let fail = |rule: &str| {
            Err(Error::shape(
                "reshape",
                format!("{rule}: input {} with {} elements, shape {written:?}", self.shape(), self.len()),
            ))
        };
        if written.iter().any(|&d| d < -1) || written.iter().filter(|&&d| d == -1).count() > 1 {
            return fail("sizes must not be negative, but for one -1");
        }
        let known = written.iter().filter(|&&d| d != -1).try_fold(1i64, |n, &d| n.checked_mul(d));
        let len = self.len() as i64;
        let missing = match known {
            Some(known) if written.contains(&-1) => {
                if known == 0 || len % known != 0 {
                    return fail("the elements do not divide into the sizes");
                }
                len / known
            }
            Some(known) if known == len => 1,
            _ => return fail("the number of elements differs"),
        };
        let dims: SmallVec<[i64; 4]> = written.iter().map(|&d| if d == -1 { missing } else { d }).collect();
        let shape = dims.as_slice().into_shape("reshape")?;
        if shape == *self.shape() { Ok(self.clone()) } else { self.view(&Movement::Reshape(shape)) }
    }

    /// Output axis i is input axis `axes[i]`; every axis once.
    ///
    /// # Errors
    /// If an axis is missing, named twice or out of range.
    pub fn permute(&self, axes: impl IntoAxes) -> Result<Tensor> {
        let axes = axes.resolve_in_order("permute", self.rank())?;
        if axes.len() != self.rank() {
            return Err(Error::axis(
                "permute",
                format!("every axis must be named once: axes {axes:?}, rank {}", self.rank()),
            ));
        }
        self.view(&Movement::Permute(axes))
    }

    /// Two axes swapped.
    ///
    /// # Errors
    /// If an axis is out of range.
    pub fn transpose(&self, a: impl IntoAxis, b: impl IntoAxis) -> Result<Tensor> {
        let (a, b) = (a.resolve_axis("transpose", self.rank())?, b.resolve_axis("transpose", self.rank())?);
        let mut axes: Dims = (0..self.rank()).collect();
        axes.swap(a, b);
        self.view(&Movement::Permute(axes))
    }

    /// The transpose of a matrix.
    ///
    /// # Errors
    /// If this is not a matrix.
    pub fn t(&self) -> Result<Tensor> {
        if self.rank() != 2 {
            return Err(Error::shape("t", format!("needs a matrix: input {}; use transpose(a, b)", self.shape())));
        }
        self.transpose(0, 1)
    }

    /// Axes of size 1, and new leading axes, repeated to a shape; −1 keeps a size.
    ///
    /// # Errors
    /// If the tensor does not broadcast to the shape.
    pub fn expand(&self, shape: impl IntoShape) -> Result<Tensor> {
        let mut dims = shape.into_dims();
        let written = dims.clone();
        let lead = dims.len().checked_sub(self.rank());
        if let Some(lead) = lead {
            for (d, &n) in dims[lead..].iter_mut().zip(self.dims()) {
                if *d == -1 {
                    *d = n as i64;
                }
            }
        }
        let target = dims.as_slice().into_shape("expand")?;
        if self.shape().broadcast(&target).as_ref() != Some(&target) {
            return Err(Error::shape(
                "expand",
                format!("sizes must be equal or 1, from the last axis on: input {}, shape {written:?}", self.shape()),
            ));
        }
        if target == *self.shape() { Ok(self.clone()) } else { self.view(&Movement::Expand(target)) }
    }

    /// [`Tensor::expand`] to the shape of another tensor.
    ///
    /// # Errors
    /// If the tensor does not broadcast to the shape.
    pub fn expand_as(&self, other: &Tensor) -> Result<Tensor> {
        self.expand(other.shape())
    }

    /// Without these axes, each of size 1.
    ///
    /// # Errors
    /// If an axis is out of range or has another size.
    pub fn squeeze(&self, axes: impl IntoAxes) -> Result<Tensor> {
        let axes = axes.resolve_axes("squeeze", self.rank())?;
        if let Some(&axis) = axes.iter().find(|&&a| self.dims()[a] != 1) {
            return Err(Error::shape(
                "squeeze",
                format!("the axis must have size 1: input {}, axis {axis}", self.shape()),
            ));
        }
        self.view(&Movement::Reshape(self.shape().reduced(&axes, false)))
    }

    /// With a new axis of size 1 at this position of the result.
    ///
    /// # Errors
    /// If the position is out of range.
    pub fn unsqueeze(&self, axis: impl IntoAxis) -> Result<Tensor> {
        let axis = axis.resolve_axis("unsqueeze", self.rank() + 1)?;
        let mut dims = Dims::from_slice(self.dims());
        dims.insert(axis, 1);
        self.view(&Movement::Reshape(dims.into()))
    }

    /// Consecutive axes merged into one: `flatten(1..)` keeps the batch.
    ///
    /// # Errors
    /// If the range of axes does not lie within the rank.
    pub fn flatten(&self, axes: impl IntoAxisRange) -> Result<Tensor> {
        let axes = axes.resolve_range("flatten", self.rank())?;
        let d = self.dims();
        let merged = d[axes.clone()].iter().product();
        self.view(&Movement::Reshape(
            d[..axes.start].iter().copied().chain([merged]).chain(d[axes.end..].iter().copied()).collect(),
        ))
    }

    /// `len` elements along `axis` from `start` on.
    ///
    /// # Errors
    /// If the axis is out of range, or the elements are.
    pub fn narrow(&self, axis: impl IntoAxis, start: usize, len: usize) -> Result<Tensor> {
        let axis = axis.resolve_axis("narrow", self.rank())?;
        let size = self.dims()[axis];
        if start > size || len > size - start {
            return Err(Error::index(
                "narrow",
                format!("the range does not lie within the axis: start {start}, len {len}, size {size}"),
            ));
        }
        self.cut(axis, start, len, 1)
    }

    /// A slice whose bounds have been checked.
    pub(super) fn cut(&self, axis: usize, start: usize, len: usize, step: isize) -> Result<Tensor> {
        if start == 0 && len == self.dims()[axis] && step == 1 {
            return Ok(self.clone());
        }
        self.view(&Movement::Slice { axis, start, len, step })
    }

    /// Every `step`-th element of a range along `axis`; a negative step walks the range from its end.
    ///
    /// # Errors
    /// If the axis is out of range, the range is, or the step is 0.
    ///
    /// # Example
    /// `x.slice(0, 1..6, 2)` picks 1, 3, 5; `x.slice(0, 1..6, -2)` picks 5, 3, 1; `x.slice(0, .., -1)` reverses.
    pub fn slice(&self, axis: impl IntoAxis, range: impl IntoRange, step: isize) -> Result<Tensor> {
        let axis = axis.resolve_axis("slice", self.rank())?;
        if step == 0 {
            return Err(Error::value("slice", "the step must not be 0: step 0"));
        }
        let range = resolve("slice", range, self.dims()[axis])?;
        let len = range.len().div_ceil(step.unsigned_abs());
        let start = if step > 0 { range.start } else { range.end.saturating_sub(1) };
        // A longer step leaves the range just as well.
        let longest = range.len().max(1) as isize;
        let step = step.clamp(-longest, longest);
        self.cut(axis, start, len, step)
    }

    /// Reversed along these axes.
    ///
    /// # Errors
    /// If an axis is out of range or named twice.
    pub fn flip(&self, axes: impl IntoAxes) -> Result<Tensor> {
        let axes = axes.resolve_axes("flip", self.rank())?;
        let mut x = self.clone();
        for axis in axes {
            let len = x.dims()[axis];
            x = x.cut(axis, len.saturating_sub(1), len, -1)?;
        }
        Ok(x)
    }

    /// `n` parts along `axis`, as equal as they can be: the last one may be smaller, and there may be fewer.
    ///
    /// # Errors
    /// If the axis is out of range or `n` is 0.
    pub fn chunk(&self, n: usize, axis: impl IntoAxis) -> Result<Vec<Tensor>> {
        let axis = axis.resolve_axis("chunk", self.rank())?;
        if n == 0 {
            return Err(Error::value("chunk", "needs one part or more: n 0"));
        }
        let size = self.dims()[axis];
        let len = size.div_ceil(n).max(1);
        (0..size.max(1)).step_by(len).map(|start| self.cut(axis, start, len.min(size - start), 1)).collect()
    }

    /// Parts of these sizes along `axis`.
    ///
    /// # Errors
    /// If the axis is out of range or the sizes do not add up to it.
    pub fn split(&self, sizes: &[usize], axis: impl IntoAxis) -> Result<Vec<Tensor>> {
        let axis = axis.resolve_axis("split", self.rank())?;
        let size = self.dims()[axis];
        if sizes.iter().try_fold(0usize, |sum, &n| sum.checked_add(n)) != Some(size) {
            return Err(Error::shape(
                "split",
                format!("the sizes must add up to the axis: sizes {sizes:?}, size {size} on axis {axis}"),
            ));
        }
        let mut start = 0;
        sizes
            .iter()
            .map(|&len| {
                let part = self.cut(axis, start, len, 1);
                start += len;
                part
            })
            .collect()
    }

    /// The tensor repeated this many times along each axis; there may be more counts than axes.
    ///
    /// # Errors
    /// If there are fewer counts than axes, or one is negative.
    pub fn repeat(&self, counts: impl IntoShape) -> Result<Tensor> {
        let counts = counts.into_shape("repeat")?;
        let Some(lead) = counts.rank().checked_sub(self.rank()) else {
            return Err(Error::shape(
                "repeat",
                format!("needs a count for every axis: input {}, counts {counts}", self.shape()),
            ));
        };
        let dims: SmallVec<[usize; 4]> = std::iter::repeat_n(1, lead).chain(self.dims().iter().copied()).collect();
        let spaced: Dims = dims.iter().flat_map(|&n| [1, n]).collect();
        let repeated: Dims = dims.iter().zip(counts.iter()).flat_map(|(&n, &r)| [r, n]).collect();
        let merged: Option<Dims> = dims.iter().zip(counts.iter()).map(|(&n, &r)| n.checked_mul(r)).collect();
        let Some(merged) = merged.filter(|merged| merged.as_slice().into_shape("repeat").is_ok()) else {
            return Err(Error::shape(
                "repeat",
                format!("the number of elements overflows: input {}, counts {counts}", self.shape()),
            ));
        };
        self.reshape(&spaced[..])?.expand(&repeated[..])?.reshape(&merged[..])
    }
}
