//! Running folds, positions of extrema, and sorting along an axis.

use tensor_core::{Result, Tensor};

use super::{shape_and_axis, subject, with_argument};
use crate::suite::case::{Call, Subject};
use crate::suite::draw::Draw;
use crate::suite::input::Input;

type Along = fn(&Tensor, i64) -> Result<Tensor>;

const ALONG: &[(&str, Along)] = methods_with!(cumsum, cumprod, cummax, argmax, argmax_keepdim, argmin, argmin_keepdim);

/// A shape and one of its axes for sorting, once in a while longer than a block of any kernel.
fn rows(draw: &mut Draw<'_>) -> (Vec<usize>, i64) {
    if super::is_rare(draw, 100) { (vec![2, 8193], 1) } else { shape_and_axis(draw) }
}

pub(super) fn subjects() -> Vec<Subject> {
    let argument = |draw: &mut Draw<'_>| {
        let (dims, axis) = shape_and_axis(draw);
        (dims, axis, format!("axis {axis}"))
    };
    let along = ALONG.iter().map(|&(name, run)| with_argument(name, "axis", argument, run));
    let sorts = [
        subject("sort", "sort(axis, descending)", |draw, _| {
            let ((dims, axis), descending) = (rows(draw), draw.flag());
            Call::many(format!("axis {axis}, descending {descending}"), vec![Input::data(&dims)], move |_, x| {
                x[0].sort(axis, descending).map(|(values, positions)| vec![values, positions])
            })
        }),
        subject("argsort", "argsort(axis, descending)", |draw, _| {
            let ((dims, axis), descending) = (rows(draw), draw.flag());
            Call::new(format!("axis {axis}, descending {descending}"), vec![Input::data(&dims)], move |x| {
                x[0].argsort(axis, descending)
            })
        }),
        subject("topk", "topk(k, axis)", |draw, _| {
            let ((dims, axis), k) = (shape_and_axis(draw), draw.pick(&[1, 2, 0, 3, 5]));
            Call::many(format!("k {k}, axis {axis}"), vec![Input::data(&dims)], move |_, x| {
                x[0].topk(k, axis).map(|(values, positions)| vec![values, positions])
            })
        }),
    ];
    along.chain(sorts).collect()
}
