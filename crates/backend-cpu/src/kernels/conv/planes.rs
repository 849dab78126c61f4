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

/// The planes of one channel, one per combination of phases.
#[derive(Clone, Debug)]
pub(super) struct Planes {
    pub(super) axes: SmallVec<[Axis; 3]>,
    /// From one element of a plane to the next along each axis.
    pub(super) strides: PerAxis,
    /// Elements of a plane.
    pub(super) size: usize,
    /// Planes of a channel.
    pub(super) n_phases: usize,
}

impl Planes {
    pub(super) fn new(axes: SmallVec<[Axis; 3]>) -> Self {
        let strides = row_major(axes.iter().map(|axis| axis.size));
        let size = axes.iter().map(|axis| axis.size).product();
        let n_phases = axes.iter().map(|axis| axis.step).product();
        Self { axes, strides, size, n_phases }
    }

    /// Copies one channel of one image; plane p goes to `to[p * apart..]`.
    pub(super) fn pack<T: Stored>(&self, x: &Tensor, image: usize, channel: usize, apart: usize, to: &mut [T::Lane]) {
        let strides = x.layout().strides();
        let base = x.layout().offset() as isize + image as isize * strides[0] + channel as isize * strides[1];
        for phase in 0..self.n_phases {
            let to = &mut to[phase * apart..][..self.size];
            self.fill(input::<T>(x), &strides[2..], phase, self.n_phases, base, to, 0);
        }
    }

    fn fill<T: Stored>(
        &self,
        x: &[T],
        strides: &[isize],
        phases: usize,
        n_phases: usize,
        base: isize,
        to: &mut [T::Lane],
        depth: usize,
    ) {
        let axis = self.axes[depth];
        let n_phases = n_phases / axis.step;
        let (phase, phases) = (phases / n_phases, phases % n_phases);
        // The stretch that lies inside the operand.
        let first = axis.before.saturating_sub(phase).div_ceil(axis.step).min(axis.size);
        let end = (axis.n + axis.before).saturating_sub(phase).div_ceil(axis.step).clamp(first, axis.size);
        let at = |v: usize| base + ((v * axis.step + phase) as isize - axis.before as isize) * strides[depth];
        let stride = self.strides[depth];
        to[..first * stride].fill(T::Lane::default());
        to[end * stride..].fill(T::Lane::default());
        let inside = &mut to[first * stride..end * stride];
        if depth + 1 < self.axes.len() {
            for (to, v) in inside.chunks_exact_mut(stride).zip(first..end) {
                self.fill(x, strides, phases, n_phases, at(v), to, depth + 1);
            }
        } else if first < end && axis.step as isize * strides[depth] == 1 {
            let from = &x[at(first) as usize..][..end - first];
            inside.iter_mut().zip(from).for_each(|(to, from)| *to = from.load());
        } else {
            for (to, v) in inside.iter_mut().zip(first..end) {
                *to = x[at(v) as usize].load();
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
