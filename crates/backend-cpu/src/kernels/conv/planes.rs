//! An operand's spatial axes copied into padded planes, in which every tap of the kernel is a shift.
//!
//! Along an axis of stride s, output o and tap k meet at the padded position o·s + k·d. Positions of the same remainder
//! by s make a plane of their own: there the tap k is the shift ⌊k·d / s⌋, whatever the stride. So a row of a
//! convolution's matrix is a stretch of a plane, contiguous over all outputs (and over the few positions between the
//! end of one row of outputs and the start of the next, whose results are not written).

use smallvec::SmallVec;
use tensor_core::Tensor;

use crate::eval::Stored;
use crate::input;

/// Sizes or strides, one per spatial axis.
pub(super) type PerAxis = SmallVec<[usize; 3]>;

/// How one axis is cut: plane `phase` holds at v the element v·step + phase − before, or zero outside the axis.
#[derive(Clone, Copy, Debug)]
pub(super) struct Axis {
    /// Elements of the operand.
    pub(super) n: usize,
    pub(super) step: usize,
    pub(super) before: usize,
    /// Elements of a plane.
    pub(super) size: usize,
}

/// The part of a plane's axis that holds elements of the operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stretch {
    first: usize,
    end: usize,
    /// The element at `first`.
    from: usize,
}

impl Axis {
    fn stretch(&self, phase: usize) -> Stretch {
        let first = self.before.saturating_sub(phase).div_ceil(self.step).min(self.size);
        let end = (self.n + self.before).saturating_sub(phase).div_ceil(self.step).clamp(first, self.size);
        Stretch { first, end, from: (first * self.step + phase).saturating_sub(self.before) }
    }
}

/// The planes of one channel, one per combination of phases.
#[derive(Clone, Debug)]
pub(super) struct Planes {
    axes: SmallVec<[Axis; 3]>,
    /// From one element of a plane to the next along each axis.
    pub(super) strides: PerAxis,
    /// Elements of a plane.
    pub(super) size: usize,
    /// Planes of a channel.
    pub(super) n_phases: usize,
    /// Phase by phase, axis by axis.
    stretches: Vec<Stretch>,
    /// The first axis of those at the end that are copied as they are.
    plain_from: usize,
}

impl Planes {
    pub(super) fn new(axes: SmallVec<[Axis; 3]>) -> Self {
        let strides = row_major(axes.iter().map(|axis| axis.size));
        let steps: PerAxis = axes.iter().map(|axis| axis.step).collect();
        let stretches = indices(&steps)
            .flat_map(|phases| axes.iter().zip(phases).map(|(axis, phase)| axis.stretch(phase)).collect::<Vec<_>>());
        let is_plain = |axis: &Axis| axis.step == 1 && axis.before == 0 && axis.size == axis.n;
        Self {
            stretches: stretches.collect(),
            strides,
            size: axes.iter().map(|axis| axis.size).product(),
            n_phases: steps.iter().product(),
            plain_from: axes.len() - axes.iter().rev().take_while(|axis| is_plain(axis)).count(),
            axes,
        }
    }

    /// The sizes of a plane.
    pub(super) fn sizes(&self) -> impl Iterator<Item = usize> {
        self.axes.iter().map(|axis| axis.size)
    }

    /// The sizes of the operand.
    pub(super) fn counts(&self) -> impl DoubleEndedIterator<Item = usize> {
        self.axes.iter().map(|axis| axis.n)
    }

    /// Copies one channel of one image; plane p goes to `to[p * apart..]`.
    pub(super) fn pack<T: Stored>(&self, x: &Tensor, image: usize, channel: usize, apart: usize, to: &mut [T::Lane]) {
        let (offset, strides) = (x.layout().offset() as isize, x.layout().strides());
        let base = offset + image as isize * strides[0] + channel as isize * strides[1];
        self.pack_from(input::<T>(x), base, &strides[2..], apart, to);
    }

    /// Copies the elements at `base` and these strides from it on.
    pub(super) fn pack_from<T: Stored>(
        &self,
        x: &[T],
        base: isize,
        strides: &[isize],
        apart: usize,
        to: &mut [T::Lane],
    ) {
        let rank = self.axes.len();
        // From this axis on the operand is copied in one piece.
        let is_whole = |&depth: &usize| {
            self.axes[depth].step == 1
                && depth + 1 >= self.plain_from
                && strides[depth..].iter().zip(&self.strides[depth..]).all(|(&a, &b)| a == b as isize)
        };
        let whole = (0..rank).find(is_whole).unwrap_or(rank);
        for (phase, stretches) in self.stretches.chunks(rank).enumerate() {
            let to = &mut to[phase * apart..][..self.size];
            if stretches.iter().zip(&self.axes).any(|(s, axis)| s.first > 0 || s.end < axis.size) {
                to.fill(T::Lane::default());
            }
            self.fill(x, base, strides, stretches, whole, 0, to);
        }
    }

    fn fill<T: Stored>(
        &self,
        x: &[T],
        base: isize,
        strides: &[isize],
        stretches: &[Stretch],
        whole: usize,
        depth: usize,
        to: &mut [T::Lane],
    ) {
        let Stretch { first, end, from } = stretches[depth];
        if first == end {
            return;
        }
        let stride = self.strides[depth];
        let base = base + from as isize * strides[depth];
        let step = self.axes[depth].step as isize * strides[depth];
        let inside = &mut to[first * stride..end * stride];
        if depth == whole {
            let from = &x[base as usize..][..inside.len()];
            inside.iter_mut().zip(from).for_each(|(to, from)| *to = from.load());
        } else if depth + 1 == self.axes.len() {
            for (i, to) in inside.iter_mut().enumerate() {
                *to = x[(base + i as isize * step) as usize].load();
            }
        } else {
            for (i, to) in inside.chunks_exact_mut(stride).enumerate() {
                self.fill(x, base + i as isize * step, strides, stretches, whole, depth + 1, to);
            }
        }
    }
}

/// Row-major strides.
pub(super) fn row_major(sizes: impl DoubleEndedIterator<Item = usize>) -> PerAxis {
    let mut stride = 1;
    let mut strides = PerAxis::new();
    for n in sizes.rev() {
        strides.push(stride);
        stride *= n;
    }
    strides.reverse();
    strides
}

/// All indices of these sizes, row-major; one index if there is no axis.
pub(super) fn indices(sizes: &[usize]) -> impl Iterator<Item = PerAxis> + use<'_> {
    (0..sizes.iter().product()).map(move |mut i: usize| {
        let mut index = PerAxis::from_elem(0, sizes.len());
        for (index, &n) in index.iter_mut().zip(sizes).rev() {
            (*index, i) = (i % n, i / n);
        }
        index
    })
}

/// Σ aᵢ·bᵢ.
pub(super) fn dot(a: &[usize], b: &[usize]) -> usize {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}
