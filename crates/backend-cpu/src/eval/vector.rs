//! The loops: a function of one, two or three elements over chunks, each operand a vector or one value for all.
//!
//! There is one body per function, over a block of constant size: a single value is a block that stays where it is, and
//! what is left at the end is worked in a block of its own. So each function is compiled once for each vector level.

use bytemuck::{cast_slice, cast_slice_mut};

use super::lane::Lane;
use crate::simd::{self, Kernel, Level};

/// An operand of a chunk.
#[derive(Clone, Copy)]
pub(super) enum Operand<'a> {
    /// Lanes, at least as many as the chunk has elements.
    Vector(&'a [u8]),
    /// One value for every element, as a slot.
    Scalar(u64),
}

/// Elements of a block: a few of the widest vectors.
const BLOCK: usize = 64;

/// A block of elements.
type Block<T> = [T; BLOCK];

/// A function of one element. Implementations are `#[inline(always)]`, to be compiled for every vector level.
pub(super) trait Fn1<T: Lane> {
    type Out: Lane;
    const WIDEST: Level = T::WIDEST;
    fn call(x: T) -> Self::Out;
}

/// A function of two elements.
pub(super) trait Fn2<T: Lane> {
    type Out: Lane;
    fn call(x: T, y: T) -> Self::Out;
}

/// An operand as blocks.
#[derive(Clone, Copy)]
enum Blocks<'a, T> {
    Each(&'a [T]),
    Same(&'a Block<T>),
}

impl<'a, T: Lane> Blocks<'a, T> {
    /// The block from element `at` on; where it is cut short, `end` is filled with what there is.
    #[inline(always)]
    fn at<'b>(self, at: usize, len: usize, end: &'b mut Block<T>) -> &'b Block<T>
    where
        'a: 'b,
    {
        match self {
            Self::Same(block) => block,
            Self::Each(elements) if len == BLOCK => {
                elements[at..at + BLOCK].try_into().expect("invariant: a whole block")
            }
            Self::Each(elements) => {
                end[..len].copy_from_slice(&elements[at..at + len]);
                end
            }
        }
    }
}

impl<'a> Operand<'a> {
    /// As blocks of at least `n` elements; a single value is spread over `same`.
    #[inline(always)]
    fn blocks<'b, T: Lane>(self, n: usize, same: &'b mut Block<T>) -> Blocks<'b, T>
    where
        'a: 'b,
    {
        match self {
            Self::Vector(bytes) => Blocks::Each(&cast_slice(bytes)[..n]),
            Self::Scalar(slot) => {
                *same = [T::of_slot(slot); BLOCK];
                Blocks::Same(same)
            }
        }
    }
}

/// Runs `body` for every block of `out`, the last one padded. No closure: one that the compiler does not inline would be
/// compiled without the vector instructions.
macro_rules! for_blocks {
    ($out:expr, |$at:ident, $len:ident, $block:ident| $body:expr) => {
        let out = $out;
        let n = out.len();
        let mut end = [Default::default(); BLOCK];
        let mut $at = 0;
        while $at < n {
            let $len = BLOCK.min(n - $at);
            let $block = if $len == BLOCK {
                (&mut out[$at..$at + BLOCK]).try_into().expect("invariant: a whole block")
            } else {
                &mut end
            };
            $body;
            $at += $len;
        }
        let rest = n % BLOCK;
        out[n - rest..].copy_from_slice(&end[..rest]);
    };
}

struct Loop1<'a, F: Fn1<T>, T: Lane> {
    x: Blocks<'a, T>,
    out: &'a mut [F::Out],
}

impl<F: Fn1<T>, T: Lane> Kernel for Loop1<'_, F, T> {
    type Output = ();
    const WIDEST: Level = F::WIDEST;

    #[inline(always)]
    fn run(self) {
        let mut x = [T::default(); BLOCK];
        for_blocks!(self.out, |at, len, block| body1::<F, T>(self.x.at(at, len, &mut x), block));
    }
}

// A function of its own: that its arguments do not overlap is known only of arguments.
#[inline(always)]
fn body1<F: Fn1<T>, T: Lane>(x: &Block<T>, out: &mut Block<F::Out>) {
    for i in 0..BLOCK {
        out[i] = F::call(x[i]);
    }
}

struct Loop2<'a, F: Fn2<T>, T: Lane> {
    x: Blocks<'a, T>,
    y: Blocks<'a, T>,
    out: &'a mut [F::Out],
}

impl<F: Fn2<T>, T: Lane> Kernel for Loop2<'_, F, T> {
    type Output = ();
    const WIDEST: Level = T::WIDEST;

    #[inline(always)]
    fn run(self) {
        let mut ends = [[T::default(); BLOCK]; 2];
        for_blocks!(self.out, |at, len, block| {
            let [x, y] = &mut ends;
            body2::<F, T>(self.x.at(at, len, x), self.y.at(at, len, y), block);
        });
    }
}

#[inline(always)]
fn body2<F: Fn2<T>, T: Lane>(x: &Block<T>, y: &Block<T>, out: &mut Block<F::Out>) {
    for i in 0..BLOCK {
        out[i] = F::call(x[i], y[i]);
    }
}

struct Choose<'a, T> {
    condition: Blocks<'a, u8>,
    x: Blocks<'a, T>,
    y: Blocks<'a, T>,
    out: &'a mut [T],
}

impl<T: Lane> Kernel for Choose<'_, T> {
    type Output = ();
    const WIDEST: Level = T::WIDEST;

    #[inline(always)]
    fn run(self) {
        let mut condition = [0; BLOCK];
        let mut ends = [[T::default(); BLOCK]; 2];
        for_blocks!(self.out, |at, len, block| {
            let [x, y] = &mut ends;
            let condition = self.condition.at(at, len, &mut condition);
            choose_body(condition, self.x.at(at, len, x), self.y.at(at, len, y), block);
        });
    }
}

#[inline(always)]
fn choose_body<T: Lane>(condition: &Block<u8>, x: &Block<T>, y: &Block<T>, out: &mut Block<T>) {
    for i in 0..BLOCK {
        let (x, y) = (x[i], y[i]);
        out[i] = if condition[i] != 0 { x } else { y };
    }
}

/// out_i = F(x_i).
pub(super) fn each<F: Fn1<T>, T: Lane>(x: Operand<'_>, out: &mut [u8]) {
    let out = cast_slice_mut::<u8, F::Out>(out);
    let mut same = [T::default(); BLOCK];
    simd::run(Loop1::<F, T> { x: x.blocks(out.len(), &mut same), out });
}

/// out_i = F(x_i, y_i).
pub(super) fn zip<F: Fn2<T>, T: Lane>(x: Operand<'_>, y: Operand<'_>, out: &mut [u8]) {
    let out = cast_slice_mut::<u8, F::Out>(out);
    let (mut same_x, mut same_y) = ([T::default(); BLOCK], [T::default(); BLOCK]);
    let (x, y) = (x.blocks(out.len(), &mut same_x), y.blocks(out.len(), &mut same_y));
    simd::run(Loop2::<F, T> { x, y, out });
}

/// out_i = x_i where the condition is true, else y_i.
pub(super) fn select<T: Lane>(condition: Operand<'_>, x: Operand<'_>, y: Operand<'_>, out: &mut [u8]) {
    let out = cast_slice_mut::<u8, T>(out);
    let n = out.len();
    let (mut same, mut same_x, mut same_y) = ([0; BLOCK], [T::default(); BLOCK], [T::default(); BLOCK]);
    let (x, y) = (x.blocks(n, &mut same_x), y.blocks(n, &mut same_y));
    simd::run(Choose { condition: condition.blocks(n, &mut same), x, y, out });
}
