//! The loops: a function of one, two or three elements over chunks, each operand a vector or one value for all.

use bytemuck::{cast_slice, cast_slice_mut};

use super::lane::Lane;
use crate::simd::{self, Kernel};

/// An operand of a chunk.
#[derive(Clone, Copy)]
pub(super) enum Operand<'a> {
    /// Lanes, at least as many as the chunk has elements.
    Vector(&'a [u8]),
    /// One value for every element, as a slot.
    Scalar(u64),
}

/// An operand with its type.
#[derive(Clone, Copy)]
enum Typed<'a, T> {
    Vector(&'a [T]),
    Scalar(T),
}

impl<'a> Operand<'a> {
    #[inline(always)]
    fn typed<T: Lane>(self, n: usize) -> Typed<'a, T> {
        match self {
            Self::Vector(bytes) => Typed::Vector(&cast_slice(bytes)[..n]),
            Self::Scalar(slot) => Typed::Scalar(T::of_slot(slot)),
        }
    }
}

/// A function of one element. Implementations are `#[inline(always)]`, to be compiled for every vector level.
pub(super) trait Fn1<T> {
    type Out: Lane;
    fn call(x: T) -> Self::Out;
}

/// A function of two elements.
pub(super) trait Fn2<T> {
    type Out: Lane;
    fn call(x: T, y: T) -> Self::Out;
}

struct Loop1<'a, F: Fn1<T>, T> {
    x: &'a [T],
    out: &'a mut [F::Out],
}

impl<F: Fn1<T>, T: Lane> Kernel for Loop1<'_, F, T> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let n = self.out.len();
        let x = &self.x[..n];
        for i in 0..n {
            self.out[i] = F::call(x[i]);
        }
    }
}

struct LoopVv<'a, F: Fn2<T>, T> {
    x: &'a [T],
    y: &'a [T],
    out: &'a mut [F::Out],
}

impl<F: Fn2<T>, T: Lane> Kernel for LoopVv<'_, F, T> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let n = self.out.len();
        let (x, y) = (&self.x[..n], &self.y[..n]);
        for i in 0..n {
            self.out[i] = F::call(x[i], y[i]);
        }
    }
}

struct LoopVs<'a, F: Fn2<T>, T> {
    x: &'a [T],
    y: T,
    out: &'a mut [F::Out],
}

impl<F: Fn2<T>, T: Lane> Kernel for LoopVs<'_, F, T> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let n = self.out.len();
        let x = &self.x[..n];
        for i in 0..n {
            self.out[i] = F::call(x[i], self.y);
        }
    }
}

struct LoopSv<'a, F: Fn2<T>, T> {
    x: T,
    y: &'a [T],
    out: &'a mut [F::Out],
}

impl<F: Fn2<T>, T: Lane> Kernel for LoopSv<'_, F, T> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let n = self.out.len();
        let y = &self.y[..n];
        for i in 0..n {
            self.out[i] = F::call(self.x, y[i]);
        }
    }
}

/// out_i = F(x_i).
pub(super) fn each<F: Fn1<T>, T: Lane>(x: Operand<'_>, out: &mut [u8]) {
    let out = cast_slice_mut::<u8, F::Out>(out);
    match x.typed(out.len()) {
        Typed::Vector(x) => simd::run(Loop1::<F, T> { x, out }),
        Typed::Scalar(x) => {
            // Through the same loop, so that the bits are the same.
            let mut value = [F::Out::default()];
            simd::run(Loop1::<F, T> { x: &[x], out: &mut value });
            out.fill(value[0]);
        }
    }
}

/// out_i = F(x_i, y_i).
pub(super) fn zip<F: Fn2<T>, T: Lane>(x: Operand<'_>, y: Operand<'_>, out: &mut [u8]) {
    let out = cast_slice_mut::<u8, F::Out>(out);
    let n = out.len();
    match (x.typed(n), y.typed(n)) {
        (Typed::Vector(x), Typed::Vector(y)) => simd::run(LoopVv::<F, T> { x, y, out }),
        (Typed::Vector(x), Typed::Scalar(y)) => simd::run(LoopVs::<F, T> { x, y, out }),
        (Typed::Scalar(x), Typed::Vector(y)) => simd::run(LoopSv::<F, T> { x, y, out }),
        (Typed::Scalar(x), Typed::Scalar(y)) => {
            let mut value = [F::Out::default()];
            simd::run(LoopVs::<F, T> { x: &[x], y, out: &mut value });
            out.fill(value[0]);
        }
    }
}

struct Choose<'a, T> {
    condition: &'a [u8],
    x: Typed<'a, T>,
    y: Typed<'a, T>,
    out: &'a mut [T],
}

impl<T: Lane> Kernel for Choose<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let out = self.out;
        let n = out.len();
        let c = &self.condition[..n];
        match (self.x, self.y) {
            (Typed::Vector(x), Typed::Vector(y)) => {
                let (x, y) = (&x[..n], &y[..n]);
                for i in 0..n {
                    let (x, y) = (x[i], y[i]);
                    out[i] = if c[i] != 0 { x } else { y };
                }
            }
            (Typed::Vector(x), Typed::Scalar(y)) => {
                let x = &x[..n];
                for i in 0..n {
                    let x = x[i];
                    out[i] = if c[i] != 0 { x } else { y };
                }
            }
            (Typed::Scalar(x), Typed::Vector(y)) => {
                let y = &y[..n];
                for i in 0..n {
                    let y = y[i];
                    out[i] = if c[i] != 0 { x } else { y };
                }
            }
            (Typed::Scalar(x), Typed::Scalar(y)) => {
                for i in 0..n {
                    out[i] = if c[i] != 0 { x } else { y };
                }
            }
        }
    }
}

/// out_i = x_i where the condition is true, else y_i.
pub(super) fn select<T: Lane>(condition: Operand<'_>, x: Operand<'_>, y: Operand<'_>, out: &mut [u8]) {
    let out = cast_slice_mut::<u8, T>(out);
    let n = out.len();
    let (x, y) = (x.typed(n), y.typed(n));
    match condition {
        Operand::Vector(condition) => simd::run(Choose { condition, x, y, out }),
        Operand::Scalar(slot) => match if u8::of_slot(slot) != 0 { x } else { y } {
            Typed::Vector(v) => out.copy_from_slice(v),
            Typed::Scalar(v) => out.fill(v),
        },
    }
}
