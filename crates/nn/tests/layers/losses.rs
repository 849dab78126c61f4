//! Losses at extreme values, and what they say about shapes and options.

use nn::loss::{
    BinaryCrossEntropy, BinaryCrossEntropyWithLogits, CrossEntropy, Huber, Nll, Reduction, binary_cross_entropy,
    binary_cross_entropy_with_logits, cross_entropy, huber, mae, mse, nll, smooth_l1,
};
use tensor_core::{DType, Result, Tensor};

use crate::{FLOATS, device, fails, values, vector};

/// Value and gradient in f32.
fn check(
    name: &str,
    loss: impl Fn(&Tensor, &Tensor) -> Result<Tensor>,
    prediction: Tensor,
    target: &Tensor,
    value: f64,
    gradient: &[f64],
) -> Result<()> {
    let (got, grad) = nn::value_and_gradient(|p| loss(p, target), &prediction)?;
    let close = |a: f64, b: f64| (a - b).abs() <= 1e-6 * b.abs().max(f64::MIN_POSITIVE);
    let got = values(&got)?[0];
    assert!(close(got, value), "{name}: {got:?}, wanted {value:?}");
    let grad = values(&grad)?;
    assert!(grad.iter().zip(gradient).all(|(a, b)| close(*a, *b)), "{name}: gradient {grad:?}, wanted {gradient:?}");
    Ok(())
}

#[test]
fn values_and_gradients_stay_right_at_ten_thousand() -> Result<()> {
    let classes = |c: i64| Tensor::from_slice(&[c], 1, &device());
    let logits = || Tensor::from_slice(&[1e4f32, -1e4, 0.0], [1, 3], &device());
    check("sure and right", cross_entropy, logits()?, &classes(0)?, 0.0, &[0.0, 0.0, 0.0])?;
    check("sure and wrong", cross_entropy, logits()?, &classes(1)?, 2e4, &[1.0, -1.0, 0.0])?;
    let probabilities = Tensor::from_slice(&[0.0f32, 0.5, 0.5], [1, 3], &device())?;
    check("in parts", cross_entropy, logits()?, &probabilities, 1.5e4, &[1.0, -0.5, -0.5])?;
    let smooth = CrossEntropy { label_smoothing: 0.3, ..Default::default() };
    check("smoothed", |p, t| smooth.loss(p, t), logits()?, &classes(0)?, 3e3, &[0.2, -0.1, -0.1])?;

    let x = || vector(&[1e4, -1e4, 1e4, -1e4]);
    let y = vector(&[1.0, 0.0, 0.0, 1.0])?;
    check("logits", binary_cross_entropy_with_logits, x()?, &y, 5e3, &[0.0, 0.0, 0.25, -0.25])?;
    // e⁻²⁰ is not lost beside 1.
    let tiny = (-20.0f64).exp();
    check("tail", binary_cross_entropy_with_logits, vector(&[20.0])?, &vector(&[1.0])?, tiny, &[-tiny])?;
    check("middle", binary_cross_entropy_with_logits, vector(&[0.0])?, &vector(&[1.0])?, 2f64.ln(), &[-0.5])?;
    check("huber", huber, x()?, &y, 1e4 - 0.5, &[0.25, -0.25, 0.25, -0.25])?;
    check("smooth_l1", smooth_l1, vector(&[1e4])?, &vector(&[-1e4])?, 2e4 - 0.5, &[1.0])?;
    check("mae at 0", mae, vector(&[1.0])?, &vector(&[1.0])?, 0.0, &[0.0])?;
    check(
        "certain",
        binary_cross_entropy,
        vector(&[0.0, 1.0])?,
        &vector(&[0.0, 1.0])?,
        0.0,
        &[1.0, -1.0].map(|g| g / 2.0),
    )?;
    check("certainly wrong", binary_cross_entropy, vector(&[0.0])?, &vector(&[1.0])?, 100.0, &[0.0])
}

#[test]
fn the_mean_in_16_bits_does_not_overflow() -> Result<()> {
    // Σ e² is 1000·400, beyond f16's 65504; the mean is 400.
    for dtype in FLOATS {
        let (a, b) = (Tensor::full(1000, 10.0, (&device(), dtype))?, Tensor::full(1000, -10.0, (&device(), dtype))?);
        let loss = mse(&a, &b)?;
        assert_eq!(loss.dtype(), dtype);
        let got = values(&loss)?[0];
        let tolerance = 400.0 * (1000.0 * dtype.compute().epsilon() + dtype.epsilon());
        assert!((got - 400.0).abs() <= tolerance, "{dtype}: {got}");
    }
    Ok(())
}

#[test]
fn shapes_are_compared_and_never_broadcast() -> Result<()> {
    let zeros = |shape: &[usize]| Tensor::zeros(shape, &device());
    let (p, t) = (zeros(&[4, 1])?, zeros(&[4])?);
    fails(
        mse(&p, &t),
        "mse: prediction and target must have the same shape: prediction [4, 1], target [4]; reshape one to the other's shape",
    );
    fails(mae(&p, &zeros(&[3])?), "mae: prediction and target must have the same shape: prediction [4, 1], target [3]");
    for (name, loss) in [
        ("huber", huber as fn(&Tensor, &Tensor) -> Result<Tensor>),
        ("smooth_l1", smooth_l1),
        ("binary_cross_entropy", binary_cross_entropy),
        ("binary_cross_entropy_with_logits", binary_cross_entropy_with_logits),
    ] {
        let error = loss(&p, &t).expect_err(name);
        assert!(error.is_shape() && error.op() == name, "{error}");
    }
    let labels = Tensor::zeros([4, 1], (&device(), DType::I64))?;
    fails(
        cross_entropy(&zeros(&[4, 3])?, &labels),
        "cross_entropy: a target of class indices must be [4] for a prediction with classes along axis 1: prediction [4, 3], \
         target [4, 1]",
    );
    fails(
        cross_entropy(&zeros(&[4, 3])?, &zeros(&[4])?),
        "cross_entropy: a target of probabilities must be [4, 3] for a prediction with classes along axis 1: prediction [4, 3], \
         target [4]",
    );
    fails(nll(&zeros(&[])?, &labels), "nll: axis is out of range: axis 1, rank 0");
    Ok(())
}

#[test]
fn options_that_make_no_sense_are_errors() -> Result<()> {
    let d = &device();
    let (scores, classes) = (Tensor::zeros([2, 3], d)?, Tensor::zeros(2, (d, DType::I64))?);
    let (weight, chances) = (vector(&[1.0, 2.0])?, Tensor::zeros([2, 3], d)?);
    fails(
        CrossEntropy { weight: Some(&weight), ..Default::default() }.loss(&scores, &classes),
        "cross_entropy: the weight must have one number per class: weight [2], classes 3",
    );
    fails(
        Nll { weight: Some(&weight), ..Default::default() }.loss(&scores, &classes),
        "nll: the weight must have one number per class: weight [2], classes 3",
    );
    fails(
        CrossEntropy { label_smoothing: 1.5, ..Default::default() }.loss(&scores, &classes),
        "cross_entropy: label smoothing must be in [0, 1]: label_smoothing 1.5",
    );
    fails(
        CrossEntropy { ignore_index: Some(1), ..Default::default() }.loss(&scores, &chances),
        "cross_entropy: an ignored class needs a target of class indices: ignore_index 1, target f32",
    );
    fails(
        cross_entropy(&scores, &Tensor::zeros(2, (d, DType::U8))?),
        "cross_entropy: class indices must be i64 or i32: target u8; cast them with .cast(DType::I64)",
    );
    fails(
        Huber { delta: 0.0, ..Default::default() }.loss(&scores, &chances),
        "huber: delta must be positive: delta 0.0; use mae for 0",
    );
    fails(
        BinaryCrossEntropyWithLogits { positive_weight: Some(&weight), ..Default::default() }.loss(&scores, &chances),
        "binary_cross_entropy_with_logits: the positive weight must broadcast to the prediction: prediction [2, 3], weight [2]",
    );
    let error = cross_entropy(&scores, &Tensor::from_slice(&[0i64, 3], 2, d)?).expect_err("there is no class 3");
    assert!(error.is_index(), "{error}");
    Ok(())
}

#[test]
fn an_empty_batch_has_no_mean_but_a_sum() -> Result<()> {
    let d = &device();
    let empty = Tensor::zeros([0, 3], d)?;
    let classes = Tensor::zeros(0, (d, DType::I64))?;
    fails(mse(&empty, &empty), "mse: the mean needs at least one element: prediction [0, 3]; skip empty batches");
    fails(
        cross_entropy(&empty, &classes),
        "cross_entropy: the mean needs at least one element: prediction [0, 3]; skip empty batches",
    );
    fails(nll(&empty, &classes), "nll: the mean needs at least one element: prediction [0, 3]; skip empty batches");
    let sum = CrossEntropy { reduction: Reduction::Sum, ..Default::default() };
    assert_eq!(values(&sum.loss(&empty, &classes)?)?, [0.0]);
    let none = BinaryCrossEntropy { reduction: Reduction::None };
    assert_eq!(none.loss(&empty, &empty)?.dims(), [0, 3]);
    Ok(())
}

#[test]
fn a_batch_of_ignored_classes_has_the_mean_nan_and_no_gradient() -> Result<()> {
    let loss = CrossEntropy { ignore_index: Some(-100), ..Default::default() };
    let classes = Tensor::from_slice(&[-100i64, -100], 2, &device())?;
    let scores = Tensor::zeros([2, 3], &device())?;
    assert!(values(&loss.loss(&scores, &classes)?)?[0].is_nan());
    let sum = CrossEntropy { reduction: Reduction::Sum, ..loss };
    let (value, gradient) = nn::value_and_gradient(|scores| sum.loss(scores, &classes), &scores)?;
    assert_eq!(values(&value)?, [0.0]);
    assert_eq!(values(&gradient)?, [0.0; 6]);
    Ok(())
}

#[test]
fn classes_may_be_i32_and_scores_a_single_row() -> Result<()> {
    let scores = vector(&[0.0, 0.0])?;
    let class = Tensor::from_slice(&[1i32], (), &device())?;
    let loss = values(&cross_entropy(&scores, &class)?)?;
    assert!((loss[0] - 2f64.ln()).abs() < 1e-6, "{loss:?}");
    Ok(())
}
