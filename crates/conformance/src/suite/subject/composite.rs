//! Softmax, cross-entropy, normalisation and attention.

use tensor_core::{AttentionOptions, DType, Result, Tensor};

use super::{is_rare, shape_and_axis, small, subject, with_argument};
use crate::suite::case::{Call, Subject};
use crate::suite::draw::Draw;
use crate::suite::input::Input;

type Along = fn(&Tensor, i64) -> Result<Tensor>;
type Norm = fn(&Tensor, &[usize], f64) -> Result<Tensor>;

const SOFTMAXES: &[(&str, Along)] = methods_with!(softmax, log_softmax);
const NORMS: &[(&str, Norm)] = &[
    ("normalize", |x, axes, epsilon| x.normalize(axes, epsilon)),
    ("rms_normalize", |x, axes, epsilon| x.rms_normalize(axes, epsilon)),
];

/// Query, key and value with batch axes that broadcast, and options: causal, scaled, masked.
fn attention(draw: &mut Draw<'_>) -> Call {
    let rank = draw.below(3);
    let batch = draw.dims(rank, 4);
    let (t, s) = (draw.size(17), draw.size(17));
    let (d, e) = (draw.pick(&[4, 1, 3, 8]), draw.pick(&[2, 1, 5]));
    let (causal, scale, masked) = (draw.flag(), draw.pick(&[None, Some(0.5), Some(2.0)]), draw.flag());
    let s = if causal || draw.flag() { t } else { s };
    let key_d = if is_rare(draw, 24) { d + 1 } else { d };
    let of = |last: [usize; 2]| Input::data(&[&batch[..], &last].concat());
    let mut inputs = vec![of([t, d]), of([s, key_d]), of([s, e])];
    if masked {
        inputs.push(Input::mask(&draw.broadcast(&[&batch[..], &[t, s]].concat())));
    }
    Call::new(format!("causal {causal}, scale {scale:?}"), inputs, move |x| {
        x[0].attention(&x[1], &x[2], &AttentionOptions { scale, causal, mask: x.get(3) })
    })
}

pub(super) fn subjects() -> Vec<Subject> {
    let argument = |draw: &mut Draw<'_>| {
        let (dims, axis) = shape_and_axis(draw);
        (dims, axis, format!("axis {axis}"))
    };
    let softmaxes = SOFTMAXES.iter().map(|&(name, run)| with_argument(name, "axis", argument, run));
    let norms = NORMS.iter().map(|&(name, run)| {
        subject(name, format!("{name}(axes, epsilon)"), move |draw, _| {
            let rank = draw.pick(&[2, 1, 3, 4]);
            let (dims, axes) = (small(draw, rank), draw.axes(rank));
            let epsilon = draw.pick(&[1e-5, 0.1, 1e-3]);
            let text = format!("axes {axes:?}, epsilon {epsilon}");
            Call::new(text, vec![Input::data(&dims)], move |x| run(&x[0], &axes, epsilon))
        })
    });
    let others = [
        subject("cross_entropy", "cross_entropy(target)", |draw, _| {
            let rank = draw.pick(&[2, 1, 3]);
            let mut dims = small(draw, rank);
            dims[rank - 1] = dims[rank - 1].max(1);
            let (n, index) = (dims[rank - 1], draw.pick(&[DType::I64, DType::I32]));
            let below = if is_rare(draw, 24) { n + 2 } else { n };
            let inputs = vec![Input::data(&dims), Input::index(&dims[..rank - 1], below, index)];
            Call::new("", inputs, |x| x[0].cross_entropy(&x[1]))
        }),
        subject("attention", "attention(key, value, options)", |draw, _| attention(draw)),
    ];
    softmaxes.chain(norms).chain(others).collect()
}
