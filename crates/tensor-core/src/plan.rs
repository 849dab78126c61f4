//! How the elements of a launch lie in memory, for backends with one thread per element: axes merged where they can be,
//! so that most launches have one.

use crate::{Layout, Shape};
use smallvec::{SmallVec, smallvec};

/// The axes of a launch, outermost first, and for each operand the elements from one to the next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Sizes; at least one axis.
    pub dims: SmallVec<[usize; 4]>,
    /// Per operand, per axis.
    pub strides: SmallVec<[SmallVec<[isize; 4]>; 4]>,
}

impl Plan {
    /// The plan for operands that broadcast to a shape.
    pub fn new(shape: &[usize], layouts: &[&Layout]) -> Self {
        let shape_ = Shape::new(shape);
        let strides = layouts.iter().map(|layout| {
            let broadcast = layout.broadcast_to(&shape_).expect("invariant: core checked the broadcast");
            SmallVec::from_slice(broadcast.strides())
        });
        Self::of(shape, strides.collect())
    }

    /// The plan of these sizes and strides, with axes of size 1 left out and neighbours merged.
    pub fn of(shape: &[usize], strides: SmallVec<[SmallVec<[isize; 4]>; 4]>) -> Self {
        let mut dims: SmallVec<[usize; 4]> = SmallVec::new();
        let mut merged: SmallVec<[SmallVec<[isize; 4]>; 4]> = strides.iter().map(|_| SmallVec::new()).collect();
        for axis in (0..shape.len()).filter(|&axis| shape[axis] != 1) {
            let n = shape[axis];
            let continues = |own: &SmallVec<[isize; 4]>, all: &SmallVec<[isize; 4]>| {
                own.last().is_some_and(|&outer| outer == all[axis] * n as isize)
            };
            let fits = !dims.is_empty() && merged.iter().zip(&strides).all(|(own, all)| continues(own, all));
            if fits {
                *dims.last_mut().expect("invariant: an axis to merge with") *= n;
                merged
                    .iter_mut()
                    .zip(&strides)
                    .for_each(|(own, all)| *own.last_mut().expect("invariant: as many strides as axes") = all[axis]);
            } else {
                dims.push(n);
                merged.iter_mut().zip(&strides).for_each(|(own, all)| own.push(all[axis]));
            }
        }
        if dims.is_empty() {
            dims.push(1);
            merged.iter_mut().for_each(|own| *own = smallvec![0]);
        }
        Self { dims, strides: merged }
    }

    /// How many axes.
    pub fn rank(&self) -> usize {
        self.dims.len()
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.dims.contains(&0)
    }

    /// How many elements.
    pub fn len(&self) -> usize {
        self.dims.iter().product()
    }
}

/// ⌊n/d⌋ of any n below 2³¹ as a multiplication: (n·multiplier)/2³² shifted right; d = 1 has the multiplier 0.
///
/// Granlund and Montgomery, 1994: p = 31 + ⌈log₂ d⌉ and ⌈2ᵖ/d⌉ fit for such n.
pub fn divisor(d: usize) -> (u32, u32) {
    if d <= 1 {
        return (0, 0);
    }
    let p = 31 + (usize::BITS - (d - 1).leading_zeros());
    let multiplier = (1u64 << p).div_ceil(d as u64);
    (multiplier as u32, p - 32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_merge_where_every_operand_allows_it() {
        let contiguous = Layout::contiguous(&Shape::new(&[2, 1, 3, 4]));
        let plan = Plan::new(&[2, 1, 3, 4], &[&contiguous, &contiguous]);
        assert_eq!((&plan.dims[..], &plan.strides[0][..]), (&[24][..], &[1][..]));
        let row = Layout::contiguous(&Shape::new(&[4]));
        let plan = Plan::new(&[2, 3, 4], &[&Layout::contiguous(&Shape::new(&[2, 3, 4])), &row]);
        assert_eq!((&plan.dims[..], &plan.strides[1][..]), (&[6, 4][..], &[0, 1][..]));
        let scalar = Layout::contiguous(&Shape::default());
        assert_eq!(Plan::new(&[], &[&scalar]).dims[..], [1]);
    }

    #[test]
    fn division_by_multiplication_is_exact() {
        for d in [1usize, 2, 3, 5, 7, 10, 64, 65, 1000, 65_537, 1 << 20, (1 << 30) + 1, (1 << 31) - 1] {
            let (multiplier, shift) = divisor(d);
            for n in [0u64, 1, 2, d as u64 - 1, d as u64, d as u64 + 1, 1_000_003, (1 << 31) - 1, (1 << 31) - 2] {
                let n = n.min((1 << 31) - 1);
                let q = if d == 1 { n } else { ((n * u64::from(multiplier)) >> 32) >> shift };
                assert_eq!(q, n / d as u64, "{n} / {d}");
            }
        }
    }
}
