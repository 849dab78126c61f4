//! The negative logarithm of the likelihood, and what losses over classes share.

use tensor_core::{DType, Error, IntoAxis, Result, Shape, Tensor, zip};

use super::{Reduction, not_empty};

/// The mean of −p\[class\], p the logarithms of probabilities (from [`Tensor::log_softmax`]).
///
/// # Shapes
/// | | shape |
/// |---|---|
/// | prediction | [N, C, L…], or \[C\] |
/// | target | [N, L…], or []; class indices, i64 or i32 |
/// | result | [] |
///
/// # Errors
/// If the shapes do not fit, the prediction's dtype is not a float or the target's not i64 or i32, or there is no element. On
/// the CPU if a class is out of range.
pub fn nll(prediction: &Tensor, target: &Tensor) -> Result<Tensor> {
    Nll::default().loss(prediction, target)
}

/// −w\[class\]·p\[class\].
#[derive(Clone, Copy, Debug, Default)]
pub struct Nll<'a> {
    /// What becomes of the elements; [`Reduction::Mean`], which divides by the sum of the weights of the classes that count.
    pub reduction: Reduction,
    /// \[C\]: a weight per class; 1.
    pub weight: Option<&'a Tensor>,
    /// A class that does not count; none. PyTorch's is −100 by default.
    pub ignore_index: Option<i64>,
}

impl Nll<'_> {
    /// The loss.
    ///
    /// # Errors
    /// As [`nll`], or if the weight is not \[C\].
    pub fn loss(&self, prediction: &Tensor, target: &Tensor) -> Result<Tensor> {
        let rows = Rows::new("nll", prediction, target, self.weight)?;
        rows.not_empty(self.reduction)?;
        let Counted { target, weight, .. } = rows.counted(target, self.weight, self.ignore_index)?;
        let picked = rows.scores.gather(-1, &target.unsqueeze(-1)?)?.squeeze(-1)?;
        match &weight {
            Some(weight) => reduce_weighted(self.reduction, &zip(&picked, weight, |p, w| -p * w)?, weight),
            None => reduce(self.reduction, &picked.neg()?),
        }
    }
}

/// Scores with the classes along the last axis.
pub(super) struct Rows {
    op: &'static str,
    /// [.., C].
    pub(super) scores: Tensor,
}

impl Rows {
    /// Checks a prediction [N, C, L…] against indices [N, L…] or probabilities of the prediction's own shape.
    pub(super) fn new(op: &'static str, prediction: &Tensor, target: &Tensor, weight: Option<&Tensor>) -> Result<Self> {
        let rank = prediction.rank();
        let axis = if rank == 1 { 0 } else { 1.resolve_axis(op, rank)? };
        let without: Shape = prediction.shape().reduced(&[axis], false);
        let n_classes = prediction.dims()[axis];
        let expected = if target.dtype().is_float() { prediction.shape() } else { &without };
        if target.shape() != expected {
            let what = if target.dtype().is_float() { "probabilities" } else { "class indices" };
            return Err(Error::shape(
                op,
                format!(
                    "a target of {what} must be {expected} for a prediction with classes along axis {axis}: prediction {}, target {}",
                    prediction.shape(),
                    target.shape()
                ),
            ));
        }
        if let Some(weight) = weight
            && weight.dims() != [n_classes]
        {
            return Err(Error::shape(
                op,
                format!("the weight must have one number per class: weight {}, classes {n_classes}", weight.shape()),
            ));
        }
        Ok(Self { op, scores: classes_last(prediction)? })
    }

    /// The target with every class in range, and what each row counts.
    pub(super) fn counted(
        &self,
        target: &Tensor,
        weight: Option<&Tensor>,
        ignore_index: Option<i64>,
    ) -> Result<Counted> {
        if !matches!(target.dtype(), DType::I64 | DType::I32) {
            return Err(Error::dtype(
                self.op,
                format!(
                    "class indices must be i64 or i32: target {}; cast them with .cast(DType::I64)",
                    target.dtype()
                ),
            ));
        }
        let ignored = ignore_index.map(|class| target.eq(class)).transpose()?;
        let target = ignored.as_ref().map_or_else(|| Ok(target.clone()), |ignored| target.masked_fill(ignored, 0))?;
        let of_class = |w: &Tensor| w.index_select(0, &target.reshape(target.len())?)?.reshape(target.shape());
        let weight = match (weight.map(of_class).transpose()?, &ignored) {
            (weight, None) => weight,
            (Some(weight), Some(ignored)) => Some(weight.masked_fill(ignored, 0)?),
            (None, Some(ignored)) => Some(ignored.logical_not()?.cast(self.scores.dtype())?),
        };
        Ok(Counted { target, weight, ignored })
    }

    /// That a mean has something to divide by.
    pub(super) fn not_empty(&self, reduction: Reduction) -> Result<()> {
        if reduction == Reduction::Mean { not_empty(self.op, &self.scores) } else { Ok(()) }
    }
}

/// A target of class indices.
pub(super) struct Counted {
    /// The classes, 0 in rows that do not count.
    pub(super) target: Tensor,
    /// The weight of each row, 0 where it does not count; none where all are 1.
    pub(super) weight: Option<Tensor>,
    /// Which rows do not count; none where all do.
    pub(super) ignored: Option<Tensor>,
}

/// [N, C, L…] as [N, L…, C].
pub(super) fn classes_last(x: &Tensor) -> Result<Tensor> {
    if x.rank() < 3 {
        return Ok(x.clone());
    }
    let axes: Vec<usize> = std::iter::once(0).chain(2..x.rank()).chain([1]).collect();
    x.permute(axes)
}

pub(super) fn reduce(reduction: Reduction, losses: &Tensor) -> Result<Tensor> {
    match reduction {
        Reduction::Mean => losses.mean(..),
        Reduction::Sum => losses.sum(..),
        Reduction::None => Ok(losses.clone()),
    }
}

/// Weighted losses: their mean divides by the sum of the weights.
pub(super) fn reduce_weighted(reduction: Reduction, losses: &Tensor, weights: &Tensor) -> Result<Tensor> {
    match reduction {
        Reduction::Mean => losses.sum(..)?.div(&weights.sum(..)?),
        other => reduce(other, losses),
    }
}
