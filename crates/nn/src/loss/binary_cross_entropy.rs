//! Cross-entropy of yes-or-no predictions.

use tensor_core::{Error, Result, Tensor};

use super::{Reduction, reduced, same_shape};

/// The mean of −t·ln p − (1 − t)·ln(1 − p), p a probability. Better: [`binary_cross_entropy_with_logits`], which keeps its
/// digits and its gradient where p rounds to 0 or 1.
///
/// # Shapes
/// Prediction and target have one shape; the result is a scalar.
///
/// # Errors
/// If the shapes or dtypes differ, the dtype is not a float, or there is no element.
pub fn binary_cross_entropy(prediction: &Tensor, target: &Tensor) -> Result<Tensor> {
    BinaryCrossEntropy::default().loss(prediction, target)
}

/// The mean of −t·ln σ(x) − (1 − t)·ln(1 − σ(x)), exact for logits x of any size.
///
/// # Errors
/// As [`binary_cross_entropy`].
pub fn binary_cross_entropy_with_logits(prediction: &Tensor, target: &Tensor) -> Result<Tensor> {
    BinaryCrossEntropyWithLogits::default().loss(prediction, target)
}

/// −t·ln p − (1 − t)·ln(1 − p), the logarithms not below −100.
#[derive(Clone, Copy, Debug, Default)]
pub struct BinaryCrossEntropy {
    /// What becomes of the elements; [`Reduction::Mean`].
    pub reduction: Reduction,
}

impl BinaryCrossEntropy {
    /// The loss. NaN for a prediction outside [0, 1].
    ///
    /// # Gradient
    /// By p it is 0 where the logarithm has reached −100.
    ///
    /// # Errors
    /// As [`binary_cross_entropy`].
    pub fn loss(&self, prediction: &Tensor, target: &Tensor) -> Result<Tensor> {
        let op = "binary_cross_entropy";
        same_shape(op, prediction, target)?;
        reduced(op, self.reduction, [prediction, target], |[p, t]| {
            let (yes, no) = (p.ln().max(-100.0), (1 - p).ln().max(-100.0));
            -(t * yes + (1 - t) * no)
        })
    }
}

/// −w·t·ln σ(x) − (1 − t)·ln(1 − σ(x)), x the logits.
#[derive(Clone, Copy, Debug, Default)]
pub struct BinaryCrossEntropyWithLogits<'a> {
    /// What becomes of the elements; [`Reduction::Mean`].
    pub reduction: Reduction,
    /// w, the weight of a yes: broadcasts to the prediction; 1.
    pub positive_weight: Option<&'a Tensor>,
}

impl BinaryCrossEntropyWithLogits<'_> {
    /// The loss.
    ///
    /// # Errors
    /// As [`binary_cross_entropy`], or if the weight does not broadcast to the prediction.
    pub fn loss(&self, prediction: &Tensor, target: &Tensor) -> Result<Tensor> {
        let op = "binary_cross_entropy_with_logits";
        same_shape(op, prediction, target)?;
        // −ln σ(x) = softplus(−x) and −ln(1 − σ(x)) = softplus(x); no difference of large numbers is taken.
        let Some(weight) = self.positive_weight else {
            return reduced(op, self.reduction, [prediction, target], |[x, t]| {
                t * (-x).softplus() + (1 - t) * x.softplus()
            });
        };
        if prediction.shape().broadcast(weight.shape()).as_ref() != Some(prediction.shape()) {
            return Err(Error::shape(
                op,
                format!(
                    "the positive weight must broadcast to the prediction: prediction {}, weight {}",
                    prediction.shape(),
                    weight.shape()
                ),
            ));
        }
        reduced(op, self.reduction, [prediction, target, weight], |[x, t, w]| {
            w * t * (-x).softplus() + (1 - t) * x.softplus()
        })
    }
}
