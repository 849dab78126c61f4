//! The models that are trained.

use nn::{
    AttentionMask, Conv2d, Embedding, Flatten, Forward, LayerNorm, Linear, MaxPool2d, Module, MultiHeadAttention,
};
use tensor_core::expr::Accuracy;
use tensor_core::random::{Stream, with_stream};
use tensor_core::{DType, Device, Result, Tensor};

use super::{Golden, Training, exactly, settled};
use crate::reference;

/// From one seed, on the reference, in numbers of f32.
fn seeded<M: Module + Clone>(build: impl FnOnce(&Device) -> Result<Training<M>>) -> Result<Training<M>> {
    let device = reference::device(Accuracy::default());
    let training = with_stream(Stream::new(2026), || build(&device))?;
    let data = training.data.iter().map(settled).collect::<Result<Vec<Tensor>>>()?;
    Ok(Training { model: exactly(&training.model)?, data, ..training })
}

/// Integers below `n`.
fn classes(n: i64, dims: &[usize], device: &Device) -> Result<Tensor> {
    Tensor::randint(0, n, dims, (device, DType::I64))
}

#[derive(Module, Clone, Debug)]
struct Mlp {
    inner: Linear,
    outer: Linear,
}

pub(super) fn mlp(device: &Device, dtype: DType) -> Result<Golden> {
    let training = seeded(|reference| {
        let x = Tensor::rand([12, 5], reference)?;
        let y = x.square()?.sum_keepdim(1)?;
        Ok(Training {
            name: "mlp",
            model: Mlp { inner: Linear::new(5, 8, reference)?, outer: Linear::new(8, 1, reference)? },
            data: vec![x, y],
            loss: |m, data| nn::loss::mse(&m.outer.forward(&m.inner.forward(&data[0])?.gelu()?)?, &data[1]),
        })
    })?;
    training.beside(device, dtype)
}

#[derive(Module, Clone, Debug)]
struct Cnn {
    first: Conv2d,
    second: Conv2d,
    head: Linear,
}

pub(super) fn cnn(device: &Device, dtype: DType) -> Result<Golden> {
    let training = seeded(|reference| {
        let grouped = nn::Conv2dOptions { groups: 2, ..Default::default() };
        Ok(Training {
            name: "cnn",
            model: Cnn {
                first: Conv2d::new(1, 2, 3, reference)?.padding(1),
                second: Conv2d::with(2, 4, 2, grouped, reference)?,
                head: Linear::new(16, 3, reference)?,
            },
            data: vec![Tensor::rand([3, 1, 6, 6], reference)?, classes(3, &[3], reference)?],
            loss: |m, data| {
                let x = MaxPool2d::new(2).forward(&m.first.forward(&data[0])?.relu()?)?;
                let x = Flatten.forward(&m.second.forward(&x)?.silu()?)?;
                nn::loss::cross_entropy(&m.head.forward(&x)?, &data[1])
            },
        })
    })?;
    training.beside(device, dtype)
}

#[derive(Module, Clone, Debug)]
struct Transformer {
    embedding: Embedding,
    norm: LayerNorm,
    attention: MultiHeadAttention,
    inner: Linear,
    outer: Linear,
    head: Linear,
}

impl Transformer {
    fn logits(&self, tokens: &Tensor) -> Result<Tensor> {
        let x = self.embedding.forward(tokens)?;
        let normed = self.norm.forward(&x)?;
        let mask = AttentionMask { causal: true, ..Default::default() };
        let x = x.add(&self.attention.attend(&normed, &normed, &normed, mask)?)?;
        let hidden = self.inner.forward(&self.norm.forward(&x)?)?.gelu()?;
        self.head.forward(&x.add(&self.outer.forward(&hidden)?)?)
    }
}

pub(super) fn transformer(device: &Device, dtype: DType) -> Result<Golden> {
    let training = seeded(|reference| {
        Ok(Training {
            name: "transformer",
            model: Transformer {
                embedding: Embedding::new(6, 4, reference)?,
                norm: LayerNorm::new(4, reference)?,
                attention: MultiHeadAttention::new(4, 2, reference)?,
                inner: Linear::new(4, 8, reference)?,
                outer: Linear::new(8, 4, reference)?,
                head: Linear::new(4, 6, reference)?,
            },
            data: vec![classes(6, &[2, 5], reference)?, classes(6, &[10], reference)?],
            loss: |m, data| nn::loss::cross_entropy(&m.logits(&data[0])?.reshape([10, 6])?, &data[1]),
        })
    })?;
    training.beside(device, dtype)
}
