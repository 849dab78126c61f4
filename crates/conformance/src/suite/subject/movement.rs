//! The same elements under other shapes, orders and strides.

use tensor_core::{DType, Result, Tensor};

use super::{axis, is_rare, shape_and_axis, small, subject, with_argument};
use crate::suite::case::{Call, Subject};
use crate::suite::draw::Draw;
use crate::suite::input::Input;

type Along = fn(&Tensor, i64) -> Result<Tensor>;

/// A shape of another rank with as many elements; once in a while not quite.
fn reshape(draw: &mut Draw<'_>, _: DType) -> Call {
    let rank = draw.pick(&[2, 1, 3, 0]);
    let dims = small(draw, rank);
    let n = dims.iter().product::<usize>() as i64;
    let mut to: Vec<i64> = match draw.below(4) {
        0 => vec![n],
        1 => dims.iter().rev().map(|&n| n as i64).collect(),
        2 => vec![1, n, 1],
        _ => (2..=7).find(|d| n % d == 0).map_or_else(|| vec![n, 1], |d| vec![d, n / d]),
    };
    if draw.flag() && !to.is_empty() {
        let i = draw.below(to.len());
        to[i] = -1;
    }
    if is_rare(draw, 24) {
        to.push(3);
    }
    Call::new(format!("to {to:?}"), vec![Input::data(&dims)], move |x| x[0].reshape(&to[..]))
}

/// An order of axes; once in a while one is named twice.
fn permute(draw: &mut Draw<'_>, _: DType) -> Call {
    let rank = draw.pick(&[3, 2, 4, 1]);
    let (dims, mut left) = (small(draw, rank), (0..rank).collect::<Vec<usize>>());
    let mut order: Vec<usize> = (0..rank).map(|_| left.remove(draw.below(left.len()))).collect();
    if is_rare(draw, 24) {
        order[0] = order[rank - 1];
    }
    Call::new(format!("{order:?}"), vec![Input::data(&dims)], move |x| x[0].permute(&order))
}

/// A shape and one that it broadcasts to, in part written −1; once in a while it does not.
fn broadcast(draw: &mut Draw<'_>) -> (Vec<usize>, Vec<usize>) {
    let rank = draw.pick(&[2, 1, 3]);
    let to = small(draw, rank);
    let mut from = draw.broadcast(&to);
    if let Some(last) = from.last_mut()
        && is_rare(draw, 24)
    {
        *last += 1;
    }
    (from, to)
}

/// Axes of size 1 to be taken out; once in a while one that is not.
fn squeeze(draw: &mut Draw<'_>, _: DType) -> Call {
    let rank = draw.pick(&[2, 1, 3]);
    let mut dims = small(draw, rank);
    let axes = draw.axes(rank);
    if !is_rare(draw, 16) {
        axes.iter().for_each(|&axis| dims[axis] = 1);
    }
    Call::new(format!("axes {axes:?}"), vec![Input::data(&dims)], move |x| x[0].squeeze(&axes))
}

/// A range of an axis with a step of either sign; once in a while beyond its end.
fn slice(draw: &mut Draw<'_>, _: DType) -> Call {
    let rank = draw.pick(&[2, 1, 3]);
    let (dims, at) = (small(draw, rank), axis(draw, rank));
    let n = dims[at.rem_euclid(rank as i64) as usize];
    let start = draw.below(n + 1);
    let stop = start + draw.below(n - start + 1) + usize::from(is_rare(draw, 24));
    let step = draw.pick(&[1, 2, -1, -2, 3, -5, 0]);
    let text = format!("axis {at}, {start}..{stop}, step {step}");
    Call::new(text, vec![Input::data(&dims)], move |x| x[0].slice(at, start as i64..stop as i64, step))
}

fn narrow(draw: &mut Draw<'_>, _: DType) -> Call {
    let rank = draw.pick(&[2, 1, 3]);
    let (dims, at) = (small(draw, rank), axis(draw, rank));
    let n = dims[at.rem_euclid(rank as i64) as usize];
    let start = draw.below(n + 1);
    let len = draw.below(n - start + 1) + usize::from(is_rare(draw, 24));
    let text = format!("axis {at}, start {start}, len {len}");
    Call::new(text, vec![Input::data(&dims)], move |x| x[0].narrow(at, start, len))
}

const ALONG: &[(&str, Along)] = methods_with!(unsqueeze, flip);

pub(super) fn subjects() -> Vec<Subject> {
    let argument = |draw: &mut Draw<'_>| {
        let (dims, axis) = shape_and_axis(draw);
        (dims, axis, format!("axis {axis}"))
    };
    let along = ALONG.iter().map(|&(name, run)| with_argument(name, "axis", argument, run));
    let others = [
        subject("reshape", "reshape(shape)", reshape),
        subject("permute", "permute(axes)", permute),
        subject("squeeze", "squeeze(axes)", squeeze),
        subject("slice", "slice(axis, range, step)", slice),
        subject("narrow", "narrow(axis, start, len)", narrow),
        subject("transpose", "transpose(a, b)", |draw, _| {
            let rank = draw.pick(&[2, 1, 3, 4]);
            let (dims, a, b) = (small(draw, rank), axis(draw, rank), axis(draw, rank));
            Call::new(format!("axes {a}, {b}"), vec![Input::data(&dims)], move |x| x[0].transpose(a, b))
        }),
        subject("t", "t()", |draw, _| {
            let rank = if is_rare(draw, 12) { 3 } else { 2 };
            Call::new("", vec![Input::data(&small(draw, rank))], |x| x[0].t())
        }),
        subject("expand", "expand(shape)", |draw, _| {
            let (from, to) = broadcast(draw);
            Call::new(format!("to {to:?}"), vec![Input::data(&from)], move |x| x[0].expand(&to[..]))
        }),
        subject("expand_as", "expand_as(other)", |draw, _| {
            let (from, to) = broadcast(draw);
            Call::new("", vec![Input::data(&from), Input::data(&to)], |x| x[0].expand_as(&x[1]))
        }),
        subject("flatten", "flatten(axes)", |draw, _| {
            let rank = draw.pick(&[3, 2, 1, 4, 0]);
            let (dims, start) = (small(draw, rank), draw.below(rank + 1));
            let stop = (start + draw.below(rank - start + 1)) as i64 - i64::from(is_rare(draw, 16));
            let text = format!("axes {start}..{stop}");
            Call::new(text, vec![Input::data(&dims)], move |x| x[0].flatten(start as i64..stop))
        }),
        subject("contiguous", "contiguous()", |draw, _| {
            Call::new("", vec![Input::data(&draw.shape())], |x| x[0].contiguous())
        }),
        subject("stop_gradient", "stop_gradient()", |draw, _| {
            Call::new("", vec![Input::data(&draw.shape())], |x| x[0].stop_gradient().mul(&x[0]))
        }),
    ];
    along.chain(others).collect()
}
