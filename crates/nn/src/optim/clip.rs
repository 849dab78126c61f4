//! Clipping of gradients: a number in the rule's formulas, so that it costs no pass of its own.

use tensor_core::op::{Reduce, ReduceKind};
use tensor_core::{DType, Error, Op, Result, Sym, Tensor, execute, expr};

/// What bounds the gradients.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Clip {
    /// Each number to [−limit, limit].
    Value(f64),
    /// All gradients together to this length.
    Norm(f64),
}

impl Clip {
    /// The number that [`Clip::formula`] takes; for the norm the gradients' length is read, which waits for the device.
    ///
    /// # Errors
    /// A limit that is not positive; for the norm, gradients that are not finite, which are named.
    pub(super) fn number(self, gradients: &[(impl Fn() -> String, &Tensor)]) -> Result<f64> {
        match self {
            Self::Value(limit) => positive("clip_by_value", limit),
            Self::Norm(limit) => {
                let limit = positive("clip_by_norm", limit)?;
                let norm = norm(gradients)?;
                // PyTorch's 1e-6 keeps the quotient finite.
                Ok((limit / (norm + 1e-6)).min(1.0))
            }
        }
    }

    /// The gradient as the rule sees it.
    pub(super) fn formula(self, grad: Sym, number: Sym) -> Sym {
        match self {
            Self::Value(_) => grad.clamp(-number, number),
            Self::Norm(_) => grad * number,
        }
    }

    /// The same kind of clipping, so that formulas made for one serve the other.
    pub(super) fn is_like(self, other: Self) -> bool {
        std::mem::discriminant(&self) == std::mem::discriminant(&other)
    }
}

fn positive(op: &'static str, limit: f64) -> Result<f64> {
    if limit > 0.0 {
        return Ok(limit);
    }
    Err(Error::value(op, format!("the limit must be positive: limit {limit:?}")))
}

/// √Σ g² over all gradients.
fn norm(gradients: &[(impl Fn() -> String, &Tensor)]) -> Result<f64> {
    let squares = reductions(gradients, ReduceKind::Sum, |g| g.square())?;
    let norm = squares.iter().sum::<f64>().sqrt();
    if norm.is_finite() {
        return Ok(norm);
    }
    // Either a gradient is not finite, or a square overflowed.
    let largest = reductions(gradients, ReduceKind::Max, |g| g.abs())?;
    let broken: Vec<String> = gradients
        .iter()
        .zip(&largest)
        .filter(|(_, largest)| !largest.is_finite())
        .map(|((name, _), largest)| format!("{} has {}", name(), if largest.is_nan() { "NaN" } else { "an infinity" }))
        .collect();
    if !broken.is_empty() {
        return Err(Error::value(
            "clip_by_norm",
            format!(
                "gradients must be finite: {}; lower the learning rate or look for such values in the data",
                broken.join(", ")
            ),
        ));
    }
    let scale = largest.iter().copied().fold(0.0, f64::max);
    let squares = reductions(gradients, ReduceKind::Sum, |g| (g * (1.0 / scale)).square())?;
    Ok(scale * squares.iter().sum::<f64>().sqrt())
}

/// `f` of every number of each gradient, folded, in one read. 16-bit gradients are widened first.
fn reductions(
    gradients: &[(impl Fn() -> String, &Tensor)],
    kind: ReduceKind,
    f: impl Fn(Sym) -> Sym,
) -> Result<Vec<f64>> {
    let wide = if gradients.iter().any(|(_, g)| g.dtype() == DType::F64) { DType::F64 } else { DType::F32 };
    let producer = expr::build(|[g]| f(g.cast(wide)));
    let folded = gradients.iter().filter(|(_, g)| !g.is_empty()).map(|(_, g)| {
        let reduce = Reduce { producer: producer.clone(), ..Reduce::new("clip_by_norm", kind, &[], false) };
        let all = Op::Reduce(Reduce { axes: (0..g.rank()).collect(), ..reduce });
        Ok(execute(&all, &[&g.stop_gradient()])?.swap_remove(0))
    });
    let folded = folded.collect::<Result<Vec<Tensor>>>()?;
    if folded.is_empty() {
        return Ok(vec![0.0; gradients.len()]);
    }
    let mut values = Tensor::stack(&folded, 0)?.to_host()?.to_f64().into_iter();
    Ok(gradients.iter().map(|(_, g)| if g.is_empty() { 0.0 } else { values.next().unwrap_or(0.0) }).collect())
}
