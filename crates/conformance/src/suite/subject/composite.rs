//! Softmax, cross-entropy, normalisation and attention.

use tensor_core::op::Attention;
use tensor_core::{AttentionOptions, DType, Op, Result, Tensor, execute};

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

/// Rows and keys at the edges of tiles.
const EDGES: &[usize] = &[32, 31, 33, 64, 63, 65, 1, 129];

/// Query, key and value: mostly small; else with rows, keys or depths at the edges of tiles; and options: causal, scaled,
/// masked.
fn attention(draw: &mut Draw<'_>) -> Call {
    let small = [3, 1, 2, 5, 8, 17, 0, 4];
    let (t, s, d, e, limit) = match draw.below(5) {
        0 | 1 => (draw.pick(&small), draw.pick(&small), draw.pick(&[4, 1, 3, 8, 0]), draw.pick(&[2, 1, 5, 8]), 6),
        2 => (draw.pick(EDGES), draw.pick(&small), draw.pick(&[4, 3, 9]), draw.pick(&[2, 5, 8]), 3),
        3 => (draw.pick(&small), draw.pick(EDGES), draw.pick(&[4, 3, 9]), draw.pick(&[2, 5, 8]), 3),
        _ if draw.flag() => (draw.pick(EDGES), draw.pick(EDGES), draw.pick(&[2, 1, 5]), draw.pick(&[2, 3]), 1),
        _ => (draw.pick(&small), draw.pick(&small), draw.pick(EDGES), draw.pick(EDGES), 2),
    };
    let rank = draw.below(3);
    let batch = draw.dims(rank, limit);
    let (causal, scale, masked) = (draw.flag(), draw.pick(&[None, Some(0.5), Some(2.0), Some(-0.3)]), draw.flag());
    let s = if draw.flag() { t } else { s };
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

/// The op itself, whose second output is a function of query and key, too.
fn attention_lse(draw: &mut Draw<'_>) -> Call {
    let (t, s) = (draw.pick(&[3, 1, 5, 33]), draw.pick(&[4, 2, 7, 65]));
    let (d, e, causal) = (draw.pick(&[4, 2, 5]), draw.pick(&[3, 1, 6]), draw.flag());
    // Every row has a key to attend to.
    let t = if causal { t.min(s) } else { t };
    let inputs = vec![Input::data(&[2, t, d]), Input::data(&[2, s, d]), Input::data(&[2, s, e])];
    Call::many(format!("causal {causal}"), inputs, move |_, x| {
        let op = Op::Attention(Attention { scale: 0.5, causal });
        Ok(execute(&op, &[&x[0], &x[1], &x[2]])?.into_vec())
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
        subject("attention_lse", "Attention { scale, causal }", |draw, _| attention_lse(draw)),
    ];
    softmaxes.chain(norms).chain(others).collect()
}
