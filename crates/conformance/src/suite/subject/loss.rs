//! Losses of the neural-network crate, with their options.

use nn::loss::{self, Reduction};
use tensor_core::{DType, Result, Tensor};

use super::{is_rare, small, subject};
use crate::suite::case::{Call, Subject};
use crate::suite::draw::Draw;
use crate::suite::input::Input;

/// A loss of two tensors of one shape; the number is δ, β or nothing.
type Pointwise = fn(Reduction, f64, &Tensor, &Tensor) -> Result<Tensor>;

const POINTWISE: &[(&str, Pointwise)] = &[
    ("loss::mse", |reduction, _, x, t| loss::Mse { reduction }.loss(x, t)),
    ("loss::mae", |reduction, _, x, t| loss::Mae { reduction }.loss(x, t)),
    ("loss::huber", |reduction, delta, x, t| loss::Huber { delta, reduction }.loss(x, t)),
    ("loss::smooth_l1", |reduction, beta, x, t| loss::SmoothL1 { beta, reduction }.loss(x, t)),
    ("loss::binary_cross_entropy", |reduction, _, x, t| loss::BinaryCrossEntropy { reduction }.loss(x, t)),
    ("loss::binary_cross_entropy_with_logits", |reduction, _, x, t| {
        loss::BinaryCrossEntropyWithLogits { reduction, positive_weight: None }.loss(x, t)
    }),
];

const REDUCTIONS: [Reduction; 3] = [Reduction::Mean, Reduction::Sum, Reduction::None];

fn pointwise(draw: &mut Draw<'_>, name: &str, run: Pointwise) -> Call {
    let rank = draw.pick(&[2, 1, 3, 0]);
    let (dims, reduction, number) = (small(draw, rank), draw.pick(&REDUCTIONS), draw.pick(&[1.0, 0.5, 2.0, 0.0]));
    let mut target = dims.clone();
    if is_rare(draw, 24) {
        target.push(1);
    }
    let inputs = match name {
        // Probabilities; logarithms at their ends are cut off, and have no slope.
        "loss::binary_cross_entropy" => vec![Input::within(&dims, 0.05, 0.95), Input::within(&target, 0.0, 1.0)],
        "loss::binary_cross_entropy_with_logits" => vec![Input::data(&dims), Input::within(&target, 0.0, 1.0)],
        _ => vec![Input::data(&dims), Input::data(&target)],
    };
    Call::new(format!("{reduction:?}, {number}"), inputs, move |x| run(reduction, number, &x[0], &x[1]))
}

/// Classes along axis 1 (0 of a vector), and the target's shape without it.
struct Classes {
    dims: Vec<usize>,
    target: Vec<usize>,
    n: usize,
    reduction: Reduction,
    ignore_index: Option<i64>,
}

impl Classes {
    fn new(draw: &mut Draw<'_>) -> Self {
        let rank = draw.pick(&[2, 1, 3, 4]);
        let mut dims = small(draw, rank);
        let at = usize::from(rank > 1);
        dims[at] = draw.pick(&[3, 2, 5, 1]);
        let mut target = dims.clone();
        target.remove(at);
        let (reduction, ignore_index) = (draw.pick(&REDUCTIONS), draw.pick(&[None, Some(1), Some(0), Some(-100)]));
        Self { n: dims[at], dims, target, reduction, ignore_index }
    }

    /// Prediction, target of indices and, maybe, a weight per class.
    fn inputs(&self, draw: &mut Draw<'_>) -> Vec<Input> {
        let index = draw.pick(&[DType::I64, DType::I32]);
        let mut inputs = vec![Input::data(&self.dims), Input::index(&self.target, self.n, index)];
        if draw.flag() {
            inputs.push(Input::within(&[self.n], 0.5, 2.0));
        }
        inputs
    }
}

fn cross_entropy(draw: &mut Draw<'_>, _: DType) -> Call {
    let (classes, label_smoothing) = (Classes::new(draw), draw.pick(&[0.0, 0.1, 0.5]));
    let mut inputs = classes.inputs(draw);
    let Classes { dims, reduction, mut ignore_index, .. } = classes;
    if draw.below(3) == 2 {
        // Probabilities of classes; nothing is ignored there, but for once in a while.
        inputs[1] = Input::within(&dims, 0.0, 1.0);
        ignore_index = ignore_index.filter(|_| is_rare(draw, 8));
    }
    let text = format!("{reduction:?}, ignore {ignore_index:?}, smoothing {label_smoothing}");
    Call::new(text, inputs, move |x| {
        loss::CrossEntropy { reduction, weight: x.get(2), ignore_index, label_smoothing }.loss(&x[0], &x[1])
    })
}

pub(super) fn subjects() -> Vec<Subject> {
    let pointwise = POINTWISE.iter().map(|&(name, run)| {
        subject(name, format!("{name}(prediction, target)"), move |draw, _| pointwise(draw, name, run))
    });
    let others = [
        subject("loss::cross_entropy", "loss::cross_entropy(prediction, target)", cross_entropy),
        subject("loss::nll", "loss::nll(prediction, target)", |draw, _| {
            let classes = Classes::new(draw);
            let inputs = classes.inputs(draw);
            let Classes { reduction, ignore_index, .. } = classes;
            Call::new(format!("{reduction:?}, ignore {ignore_index:?}"), inputs, move |x| {
                loss::Nll { reduction, weight: x.get(2), ignore_index }.loss(&x[0], &x[1])
            })
        }),
    ];
    pointwise.chain(others).collect()
}
