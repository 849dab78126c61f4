//! Multi-head attention.

use tensor_core::op::Attention;
use tensor_core::{DType, Error, Op, Place, Result, Tensor, execute};

use super::{Dropout, Linear, LinearOptions};
use crate::init::Init;
use crate::{Forward, Module};

/// y = output(concat over heads of softmax(q·kᵀ/√D_h)·v), with q, k, v the projections of query, key and value.
///
/// [`Forward::forward`] is self-attention; [`MultiHeadAttention::attend`] takes query, key, value and masks.
///
/// # Shapes
/// D = heads · D_h.
///
/// | | shape |
/// |---|---|
/// | query | [N, T, D] |
/// | key, value | [N, S, D] |
/// | output | [N, T, D] |
///
/// # Parameters
/// | | shape | starts as |
/// |---|---|---|
/// | `query.weight`, `key.weight`, `value.weight` | [D, D] | Glorot, uniform |
/// | `output.weight` | [D, D] | U(−1/√D, 1/√D) |
/// | `query.bias`, `key.bias`, `value.bias`, `output.bias` | \[D\] | 0 |
///
/// PyTorch joins the first three weights, in this order, in `in_proj_weight`, and the biases in `in_proj_bias`.
///
/// # Errors
/// If the sizes do not fit.
///
/// # Source
/// Vaswani et al., 2017.
#[derive(Module, Clone, Debug)]
#[module(describe = Self::settings)]
pub struct MultiHeadAttention {
    /// Makes queries.
    pub query: Linear,
    /// Makes keys.
    pub key: Linear,
    /// Makes values.
    pub value: Linear,
    /// Mixes the heads.
    pub output: Linear,
    /// Drops attention weights while training.
    pub dropout: Dropout,
    #[module(skip)]
    n_heads: usize,
    #[module(skip)]
    causal: bool,
}

/// Options of [`MultiHeadAttention::with`].
#[derive(Clone, Copy, Debug)]
pub struct MultiHeadAttentionOptions {
    /// Whether self-attention sees only the position itself and those before it; false.
    pub causal: bool,
    /// The probability with which an attention weight is dropped while training; 0.
    pub dropout: f64,
    /// Whether the projections have biases; true.
    pub bias: bool,
}

impl Default for MultiHeadAttentionOptions {
    fn default() -> Self {
        Self { causal: false, dropout: 0.0, bias: true }
    }
}

/// What may be attended to. A position that may attend to nothing gives NaN.
#[derive(Clone, Copy, Debug, Default)]
pub struct AttentionMask<'a> {
    /// Position t sees s ≤ t + S − T only.
    pub causal: bool,
    /// [N, S], bool: true where a key is real, false where it is padding.
    pub keys: Option<&'a Tensor>,
    /// Bool, broadcasts to [N, heads, T, S]: true where the query may see the key.
    pub pairs: Option<&'a Tensor>,
}

impl MultiHeadAttention {
    /// A layer of this width with so many heads.
    ///
    /// # Errors
    /// If the heads do not divide the width, the dtype is not a float, or the device has no memory.
    pub fn new(width: usize, n_heads: usize, place: impl Place) -> Result<Self> {
        Self::with(width, n_heads, MultiHeadAttentionOptions::default(), place)
    }

    /// A layer with options.
    ///
    /// # Errors
    /// As [`MultiHeadAttention::new`].
    pub fn with(width: usize, n_heads: usize, options: MultiHeadAttentionOptions, place: impl Place) -> Result<Self> {
        if n_heads == 0 || !width.is_multiple_of(n_heads) {
            return Err(Error::value(
                "multi_head_attention",
                format!("heads must divide the width: width {width}, heads {n_heads}"),
            ));
        }
        let (device, dtype) = super::float_place("multi_head_attention", place)?;
        let projection = |init: Init| {
            let mut linear = Linear::with(width, width, LinearOptions { bias: options.bias, init }, (&device, dtype))?;
            if let Some(bias) = &mut linear.bias {
                *bias.value_mut() = Init::ZEROS.tensor(width, (&device, dtype))?;
            }
            Ok::<_, Error>(linear)
        };
        Ok(Self {
            query: projection(Init::glorot_uniform())?,
            key: projection(Init::glorot_uniform())?,
            value: projection(Init::glorot_uniform())?,
            output: projection(Init::torch_weight())?,
            dropout: Dropout::new(options.dropout),
            n_heads,
            causal: options.causal,
        })
    }

    /// Attention of `query` to `key`, which gives the `value`s' mixture.
    ///
    /// # Errors
    /// If the sizes do not fit, or a mask is not bool.
    pub fn attend(&self, query: &Tensor, key: &Tensor, value: &Tensor, mask: AttentionMask<'_>) -> Result<Tensor> {
        self.checked(query, key, value)?;
        let q = self.heads(&self.query.forward(query)?)?;
        let k = self.heads(&self.key.forward(key)?)?;
        let v = self.heads(&self.value.forward(value)?)?;
        let scale = 1.0 / (q.dims()[3] as f64).sqrt();
        let visible = match (mask.keys, mask.pairs) {
            // [N, 1, 1, S].
            (Some(keys), None) => Some(keys.unsqueeze(1)?.unsqueeze(1)?),
            (Some(keys), Some(pairs)) => Some(keys.unsqueeze(1)?.unsqueeze(1)?.logical_and(pairs)?),
            (None, pairs) => pairs.cloned(),
        };
        let mixed = if self.dropout.is_active() {
            self.dropped(&q.mul(scale)?, &k, &v, mask.causal, visible.as_ref())?
        } else {
            let mut inputs = vec![&q, &k, &v];
            inputs.extend(visible.as_ref());
            super::only(execute(&Op::Attention(Attention { scale, causal: mask.causal }), &inputs))?
        };
        self.output.forward(&mixed.permute([0, 2, 1, 3])?.reshape(query.shape())?)
    }

    /// The same as [`Op::Attention`] with dropout between softmax and product.
    fn dropped(&self, q: &Tensor, k: &Tensor, v: &Tensor, causal: bool, visible: Option<&Tensor>) -> Result<Tensor> {
        let mut scores = q.matmul(&k.transpose(-2, -1)?)?;
        if causal {
            let (t, s) = (q.dims()[2] as i64, k.dims()[2] as i64);
            let place = (&q.device(), DType::I64);
            let last_seen = Tensor::arange(s - t, s, 1, place)?.unsqueeze(-1)?;
            let future = Tensor::arange(0, s, 1, place)?.gt(&last_seen)?;
            scores = scores.masked_fill(&future, f64::NEG_INFINITY)?;
        }
        if let Some(visible) = visible {
            scores = scores.masked_fill(&visible.logical_not()?, f64::NEG_INFINITY)?;
        }
        self.dropout.forward(&scores.softmax(-1)?)?.matmul(v)
    }

    /// [N, T, D] as [N, heads, T, D_h].
    fn heads(&self, x: &Tensor) -> Result<Tensor> {
        let &[n, t, width] = x.dims() else { unreachable!("invariant: checked") };
        x.reshape([n, t, self.n_heads, width / self.n_heads])?.permute([0, 2, 1, 3])
    }

    fn checked(&self, query: &Tensor, key: &Tensor, value: &Tensor) -> Result<()> {
        let width = self.query.weight.dims()[0];
        let fits = [query, key, value].iter().all(|x| x.rank() == 3 && x.dims()[2] == width)
            && key.dims() == value.dims()
            && key.dims()[0] == query.dims()[0];
        if fits {
            return Ok(());
        }
        Err(Error::shape(
            format!("multi_head_attention({width}, {} heads)", self.n_heads),
            format!(
                "query must be [N, T, {width}], key and value [N, S, {width}]: query {}, key {}, value {}",
                query.shape(),
                key.shape(),
                value.shape()
            ),
        ))
    }

    fn settings(&self) -> String {
        let causal = if self.causal { ", causal" } else { "" };
        format!("MultiHeadAttention({}, {} heads{causal})", self.query.weight.dims()[0], self.n_heads)
    }
}

impl Forward for MultiHeadAttention {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        self.attend(x, x, x, AttentionMask { causal: self.causal, ..Default::default() })
    }
}
