//! Where a tensor's elements lie in its storage: sizes, signed strides and an offset, in elements; and the
//! movement operations, which change the layout and move no data.

use smallvec::SmallVec;

use crate::{Dims, Shape};

/// Signed element strides, one per axis.
pub type Strides = SmallVec<[isize; 4]>;

/// Sizes, signed strides and offset of a view into a storage, counted in elements.
#[derive(Debug, PartialEq, Eq)]
pub struct Layout {
    shape: Shape,
    strides: Strides,
    offset: usize,
}

impl Clone for Layout {
    fn clone(&self) -> Self {
        Self { shape: self.shape.clone(), strides: Strides::from_slice(&self.strides), offset: self.offset }
    }
}

/// A change of layout that moves no data (a reshape of a strided view excepted, which copies first).
///
/// Sizes and axes are resolved and checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Movement {
    /// The same elements in row-major order under another shape.
    Reshape(Shape),
    /// Output axis `i` is input axis `axes[i]`.
    Permute(Dims),
    /// Axes of size 1, and new leading axes, repeated to this shape.
    Expand(Shape),
    /// Along `axis`: `len` elements, the first at `start`, each `step` (negative: backwards, never 0) after the last.
    Slice {
        /// The axis that is cut.
        axis: usize,
        /// The index of the first element.
        start: usize,
        /// How many elements.
        len: usize,
        /// From one to the next.
        step: isize,
    },
}

impl Movement {
    /// The name used in errors and profiles.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Reshape(_) => "reshape",
            Self::Permute(_) => "permute",
            Self::Expand(_) => "expand",
            Self::Slice { .. } => "slice",
        }
    }
}

impl Layout {
    /// Row-major, offset 0.
    pub fn contiguous(shape: &Shape) -> Self {
        let mut strides = Strides::from_elem(0, shape.rank());
        let mut stride = 1isize;
        for (s, &n) in strides.iter_mut().zip(shape.iter()).rev() {
            *s = stride;
            stride *= n as isize;
        }
        Self { shape: shape.clone(), strides, offset: 0 }
    }

    /// A layout from its parts; one stride per axis.
    pub fn from_parts(shape: Shape, strides: Strides, offset: usize) -> Self {
        assert_eq!(shape.rank(), strides.len(), "invariant: one stride per axis");
        Self { shape, strides, offset }
    }

    /// The sizes.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// The strides.
    pub fn strides(&self) -> &[isize] {
        &self.strides
    }

    /// The position of the first element.
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        self.shape.len()
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.shape.is_empty()
    }

    /// Whether the elements lie row-major without gaps (from the offset on).
    pub fn is_contiguous(&self) -> bool {
        let mut stride = 1isize;
        for (&s, &n) in self.strides.iter().zip(self.shape.iter()).rev() {
            if n != 1 && s != stride {
                return self.is_empty();
            }
            stride *= n as isize;
        }
        true
    }

    /// This layout broadcast to `shape`: stride 0 along repeated axes; `None` if it does not broadcast.
    pub fn broadcast_to(&self, shape: &Shape) -> Option<Self> {
        let lead = shape.rank().checked_sub(self.shape.rank())?;
        let mut strides = Strides::from_elem(0, shape.rank());
        for (axis, &n) in self.shape.iter().enumerate() {
            if n == shape[lead + axis] {
                strides[lead + axis] = self.strides[axis];
            } else if n != 1 {
                return None;
            }
        }
        Some(Self { shape: shape.clone(), strides, offset: self.offset })
    }

    /// The layout after a movement that has been checked against this shape; `None` when a reshape needs a copy.
    pub fn apply(&self, movement: &Movement) -> Option<Self> {
        match movement {
            Movement::Reshape(shape) => self.reshape(shape),
            Movement::Permute(axes) => Some(Self {
                shape: axes.iter().map(|&a| self.shape[a]).collect(),
                strides: axes.iter().map(|&a| self.strides[a]).collect(),
                offset: self.offset,
            }),
            Movement::Expand(shape) => self.broadcast_to(shape),
            &Movement::Slice { axis, start, len, step } => {
                let mut layout = self.clone();
                layout.shape = self.shape.iter().enumerate().map(|(a, &n)| if a == axis { len } else { n }).collect();
                layout.strides[axis] *= step;
                if len > 0 {
                    layout.offset = self.position(start as isize * self.strides[axis]);
                }
                Some(layout)
            }
        }
    }

    fn position(&self, delta: isize) -> usize {
        self.offset.checked_add_signed(delta).expect("invariant: a layout stays inside its storage")
    }

    fn reshape(&self, shape: &Shape) -> Option<Self> {
        if self.is_empty() || self.is_contiguous() {
            return Some(Self { offset: self.offset, ..Self::contiguous(shape) });
        }
        // Axes that step through memory evenly merge into one; the new axes must each divide such a group.
        let old: SmallVec<[(usize, isize); 4]> =
            self.shape.iter().copied().zip(self.strides.iter().copied()).filter(|&(n, _)| n != 1).collect();
        let mut strides = Strides::from_elem(0, shape.rank());
        let (mut axis, mut group) = (shape.rank(), old.len());
        while group > 0 {
            let (mut n, stride) = old[group - 1];
            group -= 1;
            while group > 0 && old[group - 1].1 == stride * n as isize {
                n *= old[group - 1].0;
                group -= 1;
            }
            let mut step = stride;
            while n > 1 {
                axis = axis.checked_sub(1)?;
                if n % shape[axis] != 0 {
                    return None;
                }
                strides[axis] = step;
                step *= shape[axis] as isize;
                n /= shape[axis];
            }
        }
        Some(Self { shape: shape.clone(), strides, offset: self.offset })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(shape: &[usize], strides: &[isize], offset: usize) -> Layout {
        Layout::from_parts(Shape::new(shape), Strides::from_slice(strides), offset)
    }

    #[test]
    fn contiguity_looks_only_at_axes_that_move() {
        let cases = [
            (layout(&[2, 3], &[3, 1], 0), true),
            (layout(&[2, 3], &[3, 1], 7), true),
            (layout(&[2, 3], &[1, 2], 0), false),
            (layout(&[1, 3], &[99, 1], 0), true),
            (layout(&[3, 1], &[1, 0], 0), true),
            (layout(&[2, 3], &[0, 1], 0), false),
            (layout(&[3], &[-1], 2), false),
            (layout(&[0, 3], &[5, 7], 0), true),
            (layout(&[], &[], 4), true),
        ];
        for (layout, expected) in cases {
            assert_eq!(layout.is_contiguous(), expected, "{layout:?}");
        }
        assert_eq!(Layout::contiguous(&Shape::new(&[2, 0, 3])).strides(), [0, 3, 1]);
    }

    #[test]
    fn broadcasting_repeats_with_stride_0() {
        let of = |x: &Layout, shape: &[usize]| x.broadcast_to(&Shape::new(shape));
        let x = layout(&[3, 1], &[1, 1], 5);
        assert_eq!(of(&x, &[2, 3, 4]), Some(layout(&[2, 3, 4], &[0, 1, 0], 5)));
        assert_eq!(of(&x, &[3, 1]), Some(x.clone()));
        assert_eq!(of(&x, &[3, 0]), Some(layout(&[3, 0], &[1, 0], 5)));
        assert_eq!((of(&x, &[2, 4]), of(&x, &[3])), (None, None));
    }
}
