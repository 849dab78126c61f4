//! Cross-entropy of logits over classes.

use tensor_core::{Error, Result, Tensor, zip, zip_n};

use super::Reduction;
use super::nll::{Counted, Rows, classes_last, reduce, reduce_weighted};

/// The mean of −ln softmax(x)\[class\], or of −Σ_c t_c·ln softmax(x)_c for a target of probabilities.
///
/// # Shapes
/// | | shape |
/// |---|---|
/// | prediction | [N, C, L…], or \[C\]: logits |
/// | target | [N, L…], or []: class indices, i64 or i32 |
/// | or target | the prediction's: probabilities, of its dtype |
/// | result | [] |
///
/// # Errors
/// If the shapes do not fit, the prediction's dtype is not a float, the target's neither that nor i64 or i32, or there is no
/// element. On the CPU if a class is out of range.
pub fn cross_entropy(prediction: &Tensor, target: &Tensor) -> Result<Tensor> {
    CrossEntropy::default().loss(prediction, target)
}

/// −Σ_c w_c·t′_c·ln softmax(x)_c, with t′ = (1 − s)·t + s/C and t the target, 1 at the class for indices.
#[derive(Clone, Copy, Debug, Default)]
pub struct CrossEntropy<'a> {
    /// What becomes of the rows; [`Reduction::Mean`], which, for class indices, divides by the sum of the weights of the classes
    /// that count.
    pub reduction: Reduction,
    /// \[C\]: w, a weight per class; 1.
    pub weight: Option<&'a Tensor>,
    /// A class that does not count; none. PyTorch's is −100 by default.
    pub ignore_index: Option<i64>,
    /// s, how much of the target is spread over all classes (Szegedy et al., 2016); 0.
    pub label_smoothing: f64,
}

impl CrossEntropy<'_> {
    /// The loss.
    ///
    /// # Errors
    /// As [`cross_entropy`]; if the weight is not \[C\], the smoothing not in [0, 1], or an ignored class is given with
    /// probabilities.
    pub fn loss(&self, prediction: &Tensor, target: &Tensor) -> Result<Tensor> {
        let rows = Rows::new("cross_entropy", prediction, target, self.weight)?;
        rows.not_empty(self.reduction)?;
        let smoothing = self.label_smoothing;
        if !(0.0..=1.0).contains(&smoothing) {
            let text = format!("label smoothing must be in [0, 1]: label_smoothing {smoothing:?}");
            return Err(Error::value("cross_entropy", text));
        }
        if target.dtype().is_float() { self.of_probabilities(&rows, target) } else { self.of_indices(&rows, target) }
    }

    fn of_indices(&self, rows: &Rows, target: &Tensor) -> Result<Tensor> {
        let Counted { target, weight, ignored } = rows.counted(target, self.weight, self.ignore_index)?;
        let picked = rows.scores.cross_entropy(&target)?;
        if self.label_smoothing == 0.0 {
            return match &weight {
                Some(weight) => reduce_weighted(self.reduction, &picked.mul(weight)?, weight),
                None => reduce(self.reduction, &picked),
            };
        }
        let spread = self.weighted(&rows.scores.log_softmax(-1)?)?.sum(-1)?.neg()?;
        let (hit, share) = (1.0 - self.label_smoothing, self.label_smoothing / self.n_classes(rows));
        let Some(weight) = &weight else {
            return reduce(self.reduction, &zip(&picked, &spread, |p, s| p * hit + s * share)?);
        };
        // The spread part has the weights of its own classes; the row's say only whether it counts.
        let losses = match &ignored {
            Some(ignored) => zip_n([&picked, &spread, weight, ignored], |[p, s, w, ignored]| {
                p * w * hit + ignored.select(0, s * share)
            })?,
            None => zip_n([&picked, &spread, weight], |[p, s, w]| p * w * hit + s * share)?,
        };
        reduce_weighted(self.reduction, &losses, weight)
    }

    fn of_probabilities(&self, rows: &Rows, target: &Tensor) -> Result<Tensor> {
        if let Some(ignored) = self.ignore_index {
            let text = format!(
                "an ignored class needs a target of class indices: ignore_index {ignored}, target {}",
                target.dtype()
            );
            return Err(Error::value("cross_entropy", text));
        }
        let (hit, share) = (1.0 - self.label_smoothing, self.label_smoothing / self.n_classes(rows));
        let scores = self.weighted(&rows.scores.log_softmax(-1)?)?;
        let losses = zip(&scores, &classes_last(target)?, |p, t| -p * (t * hit + share))?.sum(-1)?;
        reduce(self.reduction, &losses)
    }

    /// Scores times the weights of their classes.
    fn weighted(&self, scores: &Tensor) -> Result<Tensor> {
        self.weight.map_or_else(|| Ok(scores.clone()), |weight| scores.mul(weight))
    }

    fn n_classes(&self, rows: &Rows) -> f64 {
        rows.scores.dims()[rows.scores.rank() - 1] as f64
    }
}
