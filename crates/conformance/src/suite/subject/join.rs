//! Joining, taking apart, surrounding, rotating and repeating.

use tensor_core::{DType, Tensor};

use super::{axis, is_rare, number, shape_and_axis, small, subject, with_argument};
use crate::suite::case::{Call, Subject};
use crate::suite::draw::Draw;
use crate::suite::input::Input;

/// Tensors that differ along one axis; once in a while along another one, too.
fn cat(draw: &mut Draw<'_>, _: DType) -> Call {
    let rank = draw.pick(&[2, 1, 3]);
    let (dims, at) = (draw.dims(rank, 128), axis(draw, rank));
    let along = at.rem_euclid(rank as i64) as usize;
    let part = |draw: &mut Draw<'_>| {
        let mut dims = dims.clone();
        dims[along] = draw.size(17);
        if is_rare(draw, 48) {
            dims[(along + 1) % rank] += 1;
        }
        Input::data(&dims)
    };
    let parts = (0..draw.between(1, 4)).map(|_| part(draw)).collect();
    Call::new(format!("axis {at}"), parts, move |x| Tensor::cat(x, at))
}

/// Sizes of parts that make up an axis; once in a while they do not.
fn split(draw: &mut Draw<'_>, _: DType) -> Call {
    let rank = draw.pick(&[2, 1, 3]);
    let (mut dims, at) = (draw.dims(rank, 64), axis(draw, rank));
    let sizes: Vec<usize> = (0..draw.between(1, 4)).map(|_| draw.size(7)).collect();
    let total: usize = sizes.iter().sum();
    dims[at.rem_euclid(rank as i64) as usize] = total + usize::from(is_rare(draw, 24));
    let text = format!("sizes {sizes:?}, axis {at}");
    Call::many(text, vec![Input::data(&dims)], move |_, x| x[0].split(&sizes, at))
}

fn pad(draw: &mut Draw<'_>, dtype: DType) -> Call {
    let rank = draw.pick(&[2, 1, 3, 0]);
    let (dims, value) = (draw.dims(rank, 128), number(draw, dtype));
    let n_pairs = if is_rare(draw, 24) { rank + 1 } else { rank };
    let pairs: Vec<(usize, usize)> = (0..n_pairs).map(|_| (draw.below(4), draw.below(3))).collect();
    Call::new(format!("{pairs:?} with {value}"), vec![Input::data(&dims)], move |x| x[0].pad(&pairs, value))
}

pub(super) fn subjects() -> Vec<Subject> {
    let shift = |draw: &mut Draw<'_>| {
        let ((dims, axis), shift) = (shape_and_axis(draw), draw.pick(&[1isize, 2, 0, -1, -3, 100]));
        (dims, (shift, axis), format!("shift {shift}, axis {axis}"))
    };
    vec![
        subject("cat", "cat(tensors, axis)", cat),
        subject("split", "split(sizes, axis)", split),
        subject("pad", "pad(pairs, value)", pad),
        with_argument("roll", "shift, axis", shift, |x, (shift, axis)| x.roll(shift, axis)),
        subject("stack", "stack(tensors, axis)", |draw, _| {
            let rank = draw.pick(&[1, 2, 0, 3]);
            let (dims, at) = (draw.dims(rank, 128), axis(draw, rank + 1));
            let mut parts = vec![Input::data(&dims); draw.between(1, 4)];
            if is_rare(draw, 24) {
                parts.push(Input::data(&[5]));
            }
            Call::new(format!("axis {at}"), parts, move |x| Tensor::stack(x, at))
        }),
        subject("chunk", "chunk(n, axis)", |draw, _| {
            let rank = draw.pick(&[2, 1, 3]);
            let (dims, at, n) = (small(draw, rank), axis(draw, rank), draw.pick(&[2, 1, 3, 5, 0]));
            Call::many(format!("n {n}, axis {at}"), vec![Input::data(&dims)], move |_, x| x[0].chunk(n, at))
        }),
        subject("repeat", "repeat(counts)", |draw, _| {
            let rank = draw.pick(&[2, 1, 0, 3]);
            let (dims, more) = (draw.dims(rank, 64), draw.below(2));
            let counts: Vec<usize> = (0..rank + more).map(|_| draw.pick(&[1, 2, 3, 0])).collect();
            Call::new(format!("{counts:?}"), vec![Input::data(&dims)], move |x| x[0].repeat(&counts[..]))
        }),
    ]
}
