//! Reductions over every subset of the axes.

use tensor_core::{Result, Tensor};

use super::{MANY, is_rare, small, subject};
use crate::suite::case::{Call, Subject};
use crate::suite::draw::Draw;
use crate::suite::input::Input;

type Reduction = fn(&Tensor, &[i64]) -> Result<Tensor>;
type Spread = fn(&Tensor, &[i64], usize) -> Result<Tensor>;

const REDUCTIONS: &[(&str, Reduction)] = methods_with!(
    sum,
    sum_keepdim,
    mean,
    mean_keepdim,
    prod,
    prod_keepdim,
    max,
    max_keepdim,
    min,
    min_keepdim,
    any,
    any_keepdim,
    all,
    all_keepdim,
    norm,
    norm_keepdim,
    logsumexp,
    logsumexp_keepdim,
);

const SPREADS: &[(&str, Spread)] = &[
    ("var", |x, axes, correction| x.var(axes, correction)),
    ("var_keepdim", |x, axes, correction| x.var_keepdim(axes, correction)),
    ("std", |x, axes, correction| x.std(axes, correction)),
    ("std_keepdim", |x, axes, correction| x.std_keepdim(axes, correction)),
];

/// A shape and axes of it, in any order, from either end; once in a while many rows or columns, or an axis twice.
fn shape_and_axes(draw: &mut Draw<'_>) -> (Vec<usize>, Vec<i64>) {
    if is_rare(draw, 100) {
        let n = draw.between(1, 2);
        return if draw.flag() { (vec![n, MANY], vec![0]) } else { (vec![MANY, n], vec![1]) };
    }
    let rank = draw.pick(&[2, 1, 3, 4, 0]);
    let dims = small(draw, rank);
    let mut axes: Vec<i64> = draw.axes(rank).into_iter().map(|axis| axis as i64).collect();
    match draw.below(24) {
        23 => axes.push(axes.first().copied().unwrap_or(rank as i64)),
        1..4 => axes.iter_mut().for_each(|axis| *axis -= rank as i64),
        4 | 5 => axes.reverse(),
        _ => {}
    }
    (dims, axes)
}

pub(super) fn subjects() -> Vec<Subject> {
    let reductions = REDUCTIONS.iter().map(|&(name, run)| {
        subject(name, format!("{name}(axes)"), move |draw, _| {
            let (dims, axes) = shape_and_axes(draw);
            Call::new(format!("axes {axes:?}"), vec![Input::data(&dims)], move |x| run(&x[0], &axes))
        })
    });
    let spreads = SPREADS.iter().map(|&(name, run)| {
        subject(name, format!("{name}(axes, correction)"), move |draw, _| {
            let ((dims, axes), correction) = (shape_and_axes(draw), draw.below(3));
            let text = format!("axes {axes:?}, correction {correction}");
            Call::new(text, vec![Input::data(&dims)], move |x| run(&x[0], &axes, correction))
        })
    });
    reductions.chain(spreads).collect()
}
