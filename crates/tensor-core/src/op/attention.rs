//! Scaled dot-product attention and its adjoint, which a backend may run without ever holding a weight per pair.

use smallvec::smallvec;

use super::{Contract, Edge, Keeps, Meta, Metas, Record, Role, Tensors, float, same_dtype};
use crate::expr::build;
use crate::{DType, Dims, Error, Result, Shape, Tensor, zip, zip_n};

/// Inputs: query [.., T, D], key [.., S, D], value [.., S, E] and, optionally, a bool mask that broadcasts to
/// [.., T, S] (true: may attend).
///
/// Outputs: softmax(scale·q·kᵀ)·v, [.., T, E], and per row ln Σ exp(scale·q·kᵀ), [.., T], in the type the dtype is
/// computed in. `causal`: position t attends to s ≤ t + S − T. A row that may attend to nothing gives NaN, and −∞; over
/// no keys at all it gives 0. What a row may not attend to has no part in it, but where it is NaN or infinite the row may
/// be NaN. 16-bit floats: scores are in f32, weights may be rounded before they meet the values.
#[derive(Clone, Debug)]
pub struct Attention {
    /// Usually 1/√D.
    pub scale: f64,
    /// Whether a position sees only itself and those before it.
    pub causal: bool,
}

impl Record for Attention {
    fn name(&self) -> &str {
        "attention"
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Metas> {
        let (q, k, v, mask) = match inputs {
            [q, k, v] => (q, k, v, None),
            [q, k, v, mask] => (q, k, v, Some(mask)),
            _ => return Err(Error::shape("attention", format!("takes 3 or 4 inputs: got {}", inputs.len()))),
        };
        fit("attention", [q, k, v], mask)?;
        let rows = q.shape[..q.shape.rank() - 1].iter().copied();
        Ok(smallvec![
            Meta::new(rows.clone().chain(v.shape.last().copied()).collect(), q.dtype),
            Meta::new(rows.collect(), q.dtype.compute()),
        ])
    }

    fn contract(&self) -> Contract {
        Contract { inputs: &[Role::Data, Role::Data, Role::Data, Role::Mask], ..contract() }
    }

    fn keeps(&self) -> Keeps {
        Keeps { inputs: 0b1111, outputs: 0b11 }
    }

    fn decompose(&self, inputs: &[&Tensor]) -> Option<Result<Tensors>> {
        Some((|| {
            let [q, k, v, mask @ ..] = inputs else { unreachable!("invariant: core has checked the inputs") };
            let dtype = q.dtype();
            let mut scores = scores(self.scale, q, k)?;
            if let Some(hidden) = hidden(self.causal, scores.shape(), q, mask.first().copied())? {
                scores = scores.masked_fill(&hidden, f64::NEG_INFINITY)?;
            }
            if scores.dims().ends_with(&[0]) {
                return Ok(smallvec![scores.cast(dtype)?.matmul(v)?, scores.logsumexp(-1)?]);
            }
            // As if by 0 where there is nothing to attend to, or something is not a number.
            let shift = scores.max_keepdim(-1)?.map(|max| max.is_finite().select(max, 0))?;
            let weights = zip(&scores, &shift, |s, shift| (s - shift).exp())?;
            let sum = weights.sum_keepdim(-1)?;
            let mixed = rounded(&weights, dtype)?.matmul(&v.cast(dtype.compute())?)?.div(&sum)?;
            let lse = zip(&sum, &shift, |sum, shift| sum.ln() + shift)?.squeeze(-1)?;
            Ok(smallvec![mixed.cast(dtype)?, lse])
        })())
    }
}

/// The adjoint of [`Attention`] by query, key and value.
///
/// Inputs: query, key, value, the rows' `lse`, grad of the attended values [.., T, E], delta [.., T] and, optionally, the
/// mask. With P = exp(scale·q·kᵀ − lse) and dS = P·(grad·vᵀ − delta), both 0 where a row may not attend:
/// dq = scale·dS·k, dk = scale·dSᵀ·q, dv = Pᵀ·grad. Delta is Σ grad·attended − grad of lse, per row; it and lse are in the
/// type the dtype is computed in. 16-bit floats: P and dS may be rounded before they meet the other factor.
#[derive(Clone, Debug)]
pub struct AttentionGrad {
    /// As in [`Attention`].
    pub scale: f64,
    /// As in [`Attention`].
    pub causal: bool,
}

impl Record for AttentionGrad {
    fn name(&self) -> &str {
        "attention_grad"
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Metas> {
        let name = "attention_grad";
        let (q, k, v, lse, grad, delta, mask) = match inputs {
            [q, k, v, lse, grad, delta] => (q, k, v, lse, grad, delta, None),
            [q, k, v, lse, grad, delta, mask] => (q, k, v, lse, grad, delta, Some(mask)),
            _ => return Err(Error::shape(name, format!("takes 6 or 7 inputs: got {}", inputs.len()))),
        };
        fit(name, [q, k, v], mask)?;
        same_dtype(name, ("query", q.dtype), ("grad", grad.dtype))?;
        let wide = q.dtype.compute();
        if (lse.dtype, delta.dtype) != (wide, wide) {
            let text = format!("lse and delta must be {wide}: lse {}, delta {}", lse.dtype, delta.dtype);
            return Err(Error::dtype(name, text));
        }
        let rows = &q.shape[..q.shape.rank() - 1];
        let attended: Shape = rows.iter().copied().chain(v.shape.last().copied()).collect();
        if grad.shape != attended || lse.shape[..] != *rows || delta.shape[..] != *rows {
            return Err(Error::shape(
                name,
                format!(
                    "grad must be {attended}, lse and delta {}: grad {}, lse {}, delta {}",
                    Shape::new(rows),
                    grad.shape,
                    lse.shape,
                    delta.shape
                ),
            ));
        }
        Ok(smallvec![q.clone(), k.clone(), v.clone()])
    }

    fn contract(&self) -> Contract {
        const INPUTS: &[Role] = &[Role::Data, Role::Data, Role::Data, Role::Wide, Role::Data, Role::Wide, Role::Mask];
        Contract { inputs: INPUTS, ..contract() }
    }

    fn decompose(&self, inputs: &[&Tensor]) -> Option<Result<Tensors>> {
        Some((|| {
            let [q, k, v, lse, grad, delta, mask @ ..] = inputs else {
                unreachable!("invariant: core has checked the inputs")
            };
            let dtype = q.dtype();
            let wide = |x: &Tensor| x.cast(dtype.compute());
            let (lse, delta) = (&lse.unsqueeze(-1)?, &delta.unsqueeze(-1)?);
            let scores = &scores(self.scale, q, k)?;
            let by_weight = &wide(grad)?.matmul(&wide(v)?.transpose(-2, -1)?)?;
            // What is hidden is left out in the formulas themselves: its slope is 0 whatever they give there.
            let (weights, by_score) = match &hidden(self.causal, scores.shape(), q, mask.first().copied())? {
                None => {
                    let weights = zip(scores, lse, |s, lse| (s - lse).exp())?;
                    let by_score = zip_n([&weights, by_weight, delta], |[p, dp, delta]| p * (dp - delta))?;
                    (weights, by_score)
                }
                Some(hidden) => {
                    let weights = zip_n([scores, lse, hidden], |[s, lse, hidden]| hidden.select(0, (s - lse).exp()))?;
                    let by_score = zip_n([&weights, by_weight, delta, hidden], |[p, dp, delta, hidden]| {
                        hidden.select(0, p * (dp - delta))
                    })?;
                    (weights, by_score)
                }
            };
            let (weights, by_score) = (rounded(&weights, dtype)?, rounded(&by_score, dtype)?);
            let transposed = by_score.transpose(-2, -1)?;
            Ok(smallvec![
                by_score.matmul(&wide(k)?)?.mul(self.scale)?.cast(dtype)?,
                transposed.matmul(&wide(q)?)?.mul(self.scale)?.cast(dtype)?,
                weights.transpose(-2, -1)?.matmul(&wide(grad)?)?.cast(dtype)?,
            ])
        })())
    }
}

impl AttentionGrad {
    /// Delta of attended values, the gradient by them and, if there is one, by lse.
    ///
    /// # Errors
    /// As of the operations.
    pub fn delta(attended: &Tensor, grad: &Tensor, lse_grad: Option<&Tensor>) -> Result<Tensor> {
        let wide = grad.dtype().compute();
        let product = match wide == grad.dtype() {
            true => build(|[y, g]| y * g),
            false => build(|[y, g]| y.cast(wide) * g.cast(wide)),
        };
        let delta =
            attended.summed("attention_delta", &Dims::from_elem(grad.rank() - 1, 1), false, &product, &[grad])?;
        lse_grad.map_or(Ok(delta.clone()), |g| delta.sub(g))
    }
}

/// Infinity and NaN where a row may not attend are either NaN or nothing: none are drawn.
fn contract() -> Contract {
    Contract { domain: (-2.0, 2.0), edges: &[Edge::Zero, Edge::Subnormal], ..Contract::composite() }
}

/// What query, key, value and mask must be.
fn fit(name: &'static str, [q, k, v]: [&Meta; 3], mask: Option<&Meta>) -> Result<()> {
    same_dtype(name, ("query", q.dtype), ("key", k.dtype))?;
    same_dtype(name, ("query", q.dtype), ("value", v.dtype))?;
    float(name, "query", q.dtype)?;
    let rank = q.shape.rank();
    let fits = rank >= 2
        && k.shape.rank() == rank
        && v.shape.rank() == rank
        && q.shape[..rank - 2] == k.shape[..rank - 2]
        && q.shape[..rank - 2] == v.shape[..rank - 2]
        && q.shape[rank - 1] == k.shape[rank - 1]
        && k.shape[rank - 2] == v.shape[rank - 2];
    if !fits {
        return Err(Error::shape(
            name,
            format!(
                "query must be [.., T, D], key [.., S, D], value [.., S, E] with equal leading axes: query {}, key {}, value {}",
                q.shape, k.shape, v.shape
            ),
        ));
    }
    let scores = q.shape[..rank - 1].iter().copied().chain([k.shape[rank - 2]]).collect::<Shape>();
    if let Some(mask) = mask
        && (mask.dtype != DType::Bool || scores.broadcast(&mask.shape).as_ref() != Some(&scores))
    {
        return Err(Error::shape(
            name,
            format!("mask must be bool and broadcast to {scores}: mask {} {}", mask.dtype, mask.shape),
        ));
    }
    Ok(())
}

/// scale·q·kᵀ in the type the dtype is computed in.
fn scores(scale: f64, q: &Tensor, k: &Tensor) -> Result<Tensor> {
    let wide = q.dtype().compute();
    q.cast(wide)?.mul(scale)?.matmul(&k.cast(wide)?.transpose(-2, -1)?)
}

/// Where a row may not attend; `None` where it may everywhere.
fn hidden(causal: bool, scores: &Shape, q: &Tensor, mask: Option<&Tensor>) -> Result<Option<Tensor>> {
    let masked = mask.map(Tensor::logical_not).transpose()?;
    if !causal {
        return Ok(masked);
    }
    let (t, s) = (scores[scores.rank() - 2] as i64, scores[scores.rank() - 1] as i64);
    // In i32 where that fits: some GPUs do not compute in i64.
    let place = (q.place(), if t.max(s) < i64::from(i32::MAX) { DType::I32 } else { DType::I64 });
    let last = Tensor::arange(s - t, s, 1, place)?.unsqueeze(-1)?;
    let future = Tensor::arange(0, s, 1, place)?.gt(&last)?;
    Ok(Some(match masked {
        Some(masked) => future.logical_or(&masked)?,
        None => future,
    }))
}

/// Numbers as they may pass from one product to the next: rounded to the dtype.
fn rounded(x: &Tensor, dtype: DType) -> Result<Tensor> {
    x.cast(dtype)?.cast(x.dtype())
}
