//! Value and gradient of every loss, in each reduction.

use nn::loss::{
    BinaryCrossEntropy, BinaryCrossEntropyWithLogits, CrossEntropy, Huber, Mae, Mse, Nll, Reduction, SmoothL1,
};
use nn::{Module, Param, with_gradient};
use tensor_core::{Result, Tensor};

use crate::Case;

#[derive(Module, Clone, Debug)]
struct Prediction(Param);

fn check(name: &'static str, loss: impl Fn(&Case, &Tensor, &Tensor) -> Result<Tensor>) {
    Case::each(name, |case| {
        let (prediction, target) = (Prediction(Param::new(case.get("prediction")?)), case.get("target")?);
        let ((_, value), grads) = with_gradient(&prediction, |m| {
            let value = loss(case, &m.0, &target)?;
            Ok((value.sum(..)?, value))
        })?;
        case.compare("output", &value.stop_gradient())?;
        case.compare("grad/prediction", grads.of(&prediction.0).expect("the prediction reaches the loss"))
    });
}

/// Checks `{name}_mean`, `{name}_sum` and `{name}_none`.
fn reductions(name: &str, loss: impl Fn(&Case, Reduction, &Tensor, &Tensor) -> Result<Tensor>) {
    for (end, reduction) in [("mean", Reduction::Mean), ("sum", Reduction::Sum), ("none", Reduction::None)] {
        let name: &'static str = format!("{name}_{end}").leak();
        check(name, |case, p, t| loss(case, reduction, p, t));
    }
}

#[test]
fn pointwise() {
    reductions("mse", |_, reduction, p, t| Mse { reduction }.loss(p, t));
    reductions("mae", |_, reduction, p, t| Mae { reduction }.loss(p, t));
    reductions("huber", |_, reduction, p, t| Huber { reduction, ..Default::default() }.loss(p, t));
    reductions("smooth_l1", |_, reduction, p, t| SmoothL1 { reduction, ..Default::default() }.loss(p, t));
    check("huber_delta", |_, p, t| Huber { delta: 0.3, ..Default::default() }.loss(p, t));
    check("smooth_l1_beta", |_, p, t| SmoothL1 { beta: 0.3, ..Default::default() }.loss(p, t));
}

#[test]
fn cross_entropy() {
    reductions("cross_entropy", |_, reduction, p, t| CrossEntropy { reduction, ..Default::default() }.loss(p, t));
    reductions("cross_entropy_weight", |case, reduction, p, t| {
        CrossEntropy { reduction, weight: Some(&case.get("weight")?), ..Default::default() }.loss(p, t)
    });
    reductions("cross_entropy_ignore", |_, reduction, p, t| {
        CrossEntropy { reduction, ignore_index: Some(0), ..Default::default() }.loss(p, t)
    });
    reductions("cross_entropy_smooth", |_, reduction, p, t| {
        CrossEntropy { reduction, label_smoothing: 0.2, ..Default::default() }.loss(p, t)
    });
    reductions("cross_entropy_all", |case, reduction, p, t| {
        let weight = case.get("weight")?;
        CrossEntropy { reduction, weight: Some(&weight), ignore_index: Some(0), label_smoothing: 0.2 }.loss(p, t)
    });
    reductions("cross_entropy_probabilities", |_, reduction, p, t| {
        CrossEntropy { reduction, ..Default::default() }.loss(p, t)
    });
    reductions("cross_entropy_probabilities_all", |case, reduction, p, t| {
        let weight = case.get("weight")?;
        CrossEntropy { reduction, weight: Some(&weight), label_smoothing: 0.2, ..Default::default() }.loss(p, t)
    });
    check("cross_entropy_plane", |_, p, t| nn::loss::cross_entropy(p, t));
    check("cross_entropy_plane_all", |case, p, t| {
        let weight = case.get("weight")?;
        let reduction = Reduction::Mean;
        CrossEntropy { reduction, weight: Some(&weight), ignore_index: Some(1), label_smoothing: 0.2 }.loss(p, t)
    });
}

#[test]
fn nll() {
    reductions("nll", |_, reduction, p, t| Nll { reduction, ..Default::default() }.loss(p, t));
    reductions("nll_all", |case, reduction, p, t| {
        Nll { reduction, weight: Some(&case.get("weight")?), ignore_index: Some(0) }.loss(p, t)
    });
}

#[test]
fn binary_cross_entropy() {
    reductions("binary", |_, reduction, p, t| BinaryCrossEntropy { reduction }.loss(p, t));
    reductions("binary_logits", |_, reduction, p, t| {
        BinaryCrossEntropyWithLogits { reduction, ..Default::default() }.loss(p, t)
    });
    check("binary_logits_positive", |case, p, t| {
        let positive = case.get("positive")?;
        BinaryCrossEntropyWithLogits { positive_weight: Some(&positive), ..Default::default() }.loss(p, t)
    });
}
