//! Losses: how far a prediction is from its target, smaller is better.
//!
//! Each is a function with mean reduction, and a struct whose fields are its options, for everything else. Shapes are compared,
//! never broadcast: a loss that silently paired [N, 1] with \[N\] would be wrong by a lot. A loss is a file here and a line below.

mod binary_cross_entropy;
mod cross_entropy;
mod nll;
mod pointwise;

pub use binary_cross_entropy::{
    BinaryCrossEntropy, BinaryCrossEntropyWithLogits, binary_cross_entropy, binary_cross_entropy_with_logits,
};
pub use cross_entropy::{CrossEntropy, cross_entropy};
pub use nll::{Nll, nll};
pub use pointwise::{Huber, Mae, Mse, SmoothL1, huber, mae, mse, smooth_l1};

use tensor_core::op::{Map, Reduce, ReduceKind};
use tensor_core::{Error, Op, Result, Sym, Tensor, execute, expr};

/// What becomes of the losses of single elements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reduction {
    /// Their mean, a scalar.
    #[default]
    Mean,
    /// Their sum, a scalar.
    Sum,
    /// They stay as they are.
    None,
}

/// That prediction and target have one shape.
fn same_shape(op: &'static str, prediction: &Tensor, target: &Tensor) -> Result<()> {
    if prediction.shape() == target.shape() {
        return Ok(());
    }
    let remedy = if prediction.len() == target.len() { "; reshape one to the other's shape" } else { "" };
    Err(Error::shape(
        op,
        format!(
            "prediction and target must have the same shape: prediction {}, target {}{remedy}",
            prediction.shape(),
            target.shape()
        ),
    ))
}

/// `f` of each element of the inputs, reduced in the same pass.
fn reduced<const N: usize>(
    op: &'static str,
    reduction: Reduction,
    inputs: [&Tensor; N],
    f: impl FnOnce([Sym; N]) -> Sym,
) -> Result<Tensor> {
    let n = inputs[0].len();
    let sum = |producer| {
        let axes = (0..inputs[0].rank()).collect();
        Op::Reduce(Reduce { name: op, kind: ReduceKind::Sum, axes, keepdim: false, producer })
    };
    let op = match reduction {
        Reduction::Mean => {
            not_empty(op, inputs[0])?;
            // Scaled before the sum, which then cannot overflow in 16 bits.
            sum(expr::build(|inputs| f(inputs) * (1.0 / n as f64)))
        }
        Reduction::Sum => sum(expr::build(f)),
        Reduction::None => Op::Map(Map::new(op, expr::build(f))),
    };
    let outputs = execute(&op, &inputs)?;
    Ok(outputs.into_iter().next().expect("invariant: an op has an output"))
}

/// That there is something to take the mean of.
fn not_empty(op: &'static str, prediction: &Tensor) -> Result<()> {
    if !prediction.is_empty() {
        return Ok(());
    }
    Err(Error::value(
        op,
        format!("the mean needs at least one element: prediction {}; skip empty batches", prediction.shape()),
    ))
}
