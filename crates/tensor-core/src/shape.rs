//! Shapes, what can be written where a shape is expected, and broadcasting.

use std::borrow::Cow;
use std::fmt;
use std::ops::Deref;

use smallvec::SmallVec;

use crate::{Error, Result};

/// A short list of sizes or axes, kept inline up to four.
pub type Dims = SmallVec<[usize; 4]>;

/// The sizes of a tensor's axes, outermost first. Derefs to `[usize]`.
#[derive(PartialEq, Eq, Hash, Default)]
pub struct Shape(Dims);

impl Clone for Shape {
    // A copy of the bytes; SmallVec's own clone goes element by element.
    fn clone(&self) -> Self {
        Self(Dims::from_slice(&self.0))
    }
}

impl Shape {
    /// A shape of the given sizes.
    pub fn new(dims: &[usize]) -> Self {
        Self(Dims::from_slice(dims))
    }

    /// The number of elements: the product of the sizes, 1 for a scalar.
    pub fn len(&self) -> usize {
        self.0.iter().product()
    }

    /// An error naming `op` if the elements are too many to be counted. Empty axes count as 1, so that the number of
    /// elements along the others fits too.
    pub(crate) fn check_len<O: Into<Cow<'static, str>>>(&self, op: impl FnOnce() -> O) -> Result<()> {
        let len = self.0.iter().try_fold(1usize, |len, &n| len.checked_mul(n.max(1)));
        match len.and_then(|len| isize::try_from(len).ok()) {
            Some(_) => Ok(()),
            None => Err(Error::shape(op(), format!("the number of elements overflows: shape {self}"))),
        }
    }

    /// Whether some axis has size 0.
    pub fn is_empty(&self) -> bool {
        self.0.contains(&0)
    }

    /// The number of axes.
    pub fn rank(&self) -> usize {
        self.0.len()
    }

    /// The sizes.
    pub fn dims(&self) -> &[usize] {
        &self.0
    }

    /// The shape that both broadcast to: aligned at the last axis, sizes equal or one of them 1; `None` if they do not.
    pub fn broadcast(&self, other: &Self) -> Option<Self> {
        let (long, short) = if self.rank() >= other.rank() { (self, other) } else { (other, self) };
        let mut dims = Dims::from_slice(&long.0);
        let lead = long.rank() - short.rank();
        for (d, &n) in dims[lead..].iter_mut().zip(&short.0) {
            match (*d, n) {
                (a, b) if a == b => {}
                (1, b) => *d = b,
                (_, 1) => {}
                _ => return None,
            }
        }
        Some(Self(dims))
    }

    /// The shape after `axes` (resolved, any order) are reduced: size 1 with `keepdim`, else left out.
    pub fn reduced(&self, axes: &[usize], keepdim: bool) -> Self {
        self.0
            .iter()
            .enumerate()
            .filter_map(|(axis, &n)| if !axes.contains(&axis) { Some(n) } else { keepdim.then_some(1) })
            .collect()
    }
}

impl Deref for Shape {
    type Target = [usize];
    fn deref(&self) -> &[usize] {
        &self.0
    }
}

impl From<Dims> for Shape {
    fn from(dims: Dims) -> Self {
        Self(dims)
    }
}

impl FromIterator<usize> for Shape {
    fn from_iter<I: IntoIterator<Item = usize>>(iter: I) -> Self {
        Self(iter.into_iter().collect())
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.0)
    }
}

impl fmt::Debug for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.0)
    }
}

impl PartialEq<[usize]> for Shape {
    fn eq(&self, other: &[usize]) -> bool {
        self.0[..] == *other
    }
}

impl<const N: usize> PartialEq<[usize; N]> for Shape {
    fn eq(&self, other: &[usize; N]) -> bool {
        self.0[..] == *other
    }
}

/// An integer that can stand for one size; −1 asks `reshape` to work it out.
pub trait Dim: Copy {
    /// The size as i64; a size past i64 gives i64::MAX.
    fn dim(self) -> i64;
}

macro_rules! dims {
    ($($t:ty),*) => { $(
        impl Dim for $t {
            fn dim(self) -> i64 { i64::try_from(self).unwrap_or(i64::MAX) }
        }
        impl IntoShape for $t {
            fn into_dims(self) -> SmallVec<[i64; 4]> { SmallVec::from_slice(&[self.dim()]) }
        }
    )* };
}
dims!(usize, i32, i64, isize, u32);

/// What can be written where a shape is expected: an array, slice or `Vec` of integers, one integer,
/// `()` for a scalar, a tuple of integers, a [`Shape`].
pub trait IntoShape {
    /// The sizes as written, −1 included.
    fn into_dims(self) -> SmallVec<[i64; 4]>;

    /// The shape, or an error naming `op` and the size that is negative or too large.
    fn into_shape(self, op: &'static str) -> Result<Shape>
    where
        Self: Sized,
    {
        let dims = self.into_dims();
        if dims.iter().any(|&d| d < 0) {
            return Err(Error::shape(op, format!("a size is negative: shape {dims:?}")));
        }
        let shape: Shape = dims.iter().map(|&d| d as usize).collect();
        shape.check_len(|| op).map(|()| shape)
    }
}

impl<D: Dim, const N: usize> IntoShape for [D; N] {
    fn into_dims(self) -> SmallVec<[i64; 4]> {
        self.iter().map(|d| d.dim()).collect()
    }
}

impl<D: Dim, const N: usize> IntoShape for &[D; N] {
    fn into_dims(self) -> SmallVec<[i64; 4]> {
        self.iter().map(|d| d.dim()).collect()
    }
}

impl<D: Dim> IntoShape for &[D] {
    fn into_dims(self) -> SmallVec<[i64; 4]> {
        self.iter().map(|d| d.dim()).collect()
    }
}

impl<D: Dim> IntoShape for Vec<D> {
    fn into_dims(self) -> SmallVec<[i64; 4]> {
        self.iter().map(|d| d.dim()).collect()
    }
}

impl<D: Dim> IntoShape for &Vec<D> {
    fn into_dims(self) -> SmallVec<[i64; 4]> {
        self.iter().map(|d| d.dim()).collect()
    }
}

impl IntoShape for () {
    fn into_dims(self) -> SmallVec<[i64; 4]> {
        SmallVec::new()
    }
}

impl IntoShape for Shape {
    fn into_dims(self) -> SmallVec<[i64; 4]> {
        self.0.iter().map(|d| d.dim()).collect()
    }
}

impl IntoShape for &Shape {
    fn into_dims(self) -> SmallVec<[i64; 4]> {
        self.0.iter().map(|d| d.dim()).collect()
    }
}

macro_rules! tuples {
    ($($($t:ident)*;)*) => { $(impl<$($t: Dim),*> IntoShape for ($($t,)*) {
        #[allow(non_snake_case)]
        fn into_dims(self) -> SmallVec<[i64; 4]> {
            let ($($t,)*) = self;
            SmallVec::from_slice(&[$($t.dim()),*])
        }
    })* };
}
tuples! { A; A B; A B C; A B C D; A B C D E; A B C D E F; }

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_that_reads_like_a_shape_is_one() {
        let expected = Shape::new(&[2, 3]);
        let shapes = [
            [2, 3].into_shape("f"),
            [2usize, 3].into_shape("f"),
            [2i64, 3].into_shape("f"),
            (&[2u32, 3]).into_shape("f"),
            (&[2isize, 3][..]).into_shape("f"),
            vec![2, 3].into_shape("f"),
            (&vec![2usize, 3]).into_shape("f"),
            (2, 3usize).into_shape("f"),
            (&expected).into_shape("f"),
        ];
        for (i, shape) in shapes.into_iter().enumerate() {
            assert_eq!(shape.expect("a shape"), expected, "form {i}");
        }
        assert_eq!(().into_shape("f").expect("a scalar"), []);
        assert_eq!(7.into_shape("f").expect("a vector"), [7]);
        assert_eq!((5,).into_dims()[..], [5]);
        assert_eq!((2, -1).into_dims()[..], [2, -1]);
    }

    #[test]
    fn broadcasting_aligns_at_the_last_axis() {
        let cases: &[(&[usize], &[usize], Option<&[usize]>)] = &[
            (&[2, 3], &[2, 3], Some(&[2, 3])),
            (&[2, 3], &[3], Some(&[2, 3])),
            (&[2, 1], &[3], Some(&[2, 3])),
            (&[], &[4, 5], Some(&[4, 5])),
            (&[5, 1, 3], &[4, 1], Some(&[5, 4, 3])),
            (&[0], &[1], Some(&[0])),
            (&[2, 0], &[2, 1], Some(&[2, 0])),
            (&[0], &[2], None),
            (&[2, 3], &[2], None),
        ];
        for (a, b, expected) in cases {
            let (a, b) = (Shape::new(a), Shape::new(b));
            assert_eq!(a.broadcast(&b), expected.map(Shape::new), "{a} with {b}");
            assert_eq!(b.broadcast(&a), expected.map(Shape::new), "{b} with {a}");
        }
    }

    #[test]
    fn reduced_shapes_drop_or_keep_their_axes() {
        let shape = Shape::new(&[2, 3, 4]);
        assert_eq!(
            (shape.reduced(&[1], false), shape.reduced(&[0, 2], true)),
            (Shape::new(&[2, 4]), Shape::new(&[1, 3, 1]))
        );
        assert_eq!((shape.len(), Shape::new(&[]).len(), Shape::new(&[3, 0]).is_empty()), (24, 1, true));
        assert_eq!(shape.to_string(), "[2, 3, 4]");
    }
}
