//! A small GPT: learned positions, blocks that normalise first, causal attention, exact GELU.

use consort::prelude::*;
use consort::{AttentionOptions, nn};

#[derive(Module, Clone, Debug)]
pub(crate) struct Gpt {
    token: nn::Embedding,
    position: nn::Embedding,
    blocks: Vec<Block>,
    norm: nn::LayerNorm,
    head: nn::Linear,
}

#[derive(Module, Clone, Debug)]
struct Block {
    attention_norm: nn::LayerNorm,
    query_key_value: nn::Linear,
    attention_out: nn::Linear,
    feed_forward_norm: nn::LayerNorm,
    up: nn::Linear,
    down: nn::Linear,
    #[module(skip)]
    n_heads: usize,
}

impl Gpt {
    /// Tokens of a vocabulary in sequences of `length`.
    pub(crate) fn new(
        vocabulary: usize,
        length: usize,
        width: usize,
        n_layers: usize,
        n_heads: usize,
        device: &Device,
    ) -> Result<Self> {
        Ok(Self {
            token: nn::Embedding::new(vocabulary, width, device)?,
            position: nn::Embedding::new(length, width, device)?,
            blocks: (0..n_layers).map(|_| Block::new(width, n_heads, device)).collect::<Result<_>>()?,
            norm: nn::LayerNorm::new(width, device)?,
            head: nn::Linear::new(width, vocabulary, device)?,
        })
    }
}

impl Forward for Gpt {
    fn forward(&self, tokens: &Tensor) -> Result<Tensor> {
        let positions = Tensor::arange(0, tokens.dims()[1], 1, (&tokens.device(), DType::I64))?;
        let mut x = self.token.forward(tokens)?.add(&self.position.forward(&positions)?)?;
        for block in &self.blocks {
            x = block.forward(&x)?;
        }
        self.head.forward(&self.norm.forward(&x)?)
    }
}

impl Block {
    fn new(width: usize, n_heads: usize, device: &Device) -> Result<Self> {
        Ok(Self {
            attention_norm: nn::LayerNorm::new(width, device)?,
            query_key_value: nn::Linear::new(width, 3 * width, device)?,
            attention_out: nn::Linear::new(width, width, device)?,
            feed_forward_norm: nn::LayerNorm::new(width, device)?,
            up: nn::Linear::new(width, 4 * width, device)?,
            down: nn::Linear::new(4 * width, width, device)?,
            n_heads,
        })
    }

    fn attend(&self, x: &Tensor) -> Result<Tensor> {
        let (n, t, width) = (x.dims()[0], x.dims()[1], x.dims()[2]);
        let heads = self.query_key_value.forward(x)?.reshape([n, t, 3, self.n_heads, width / self.n_heads])?;
        let heads = heads.permute([2, 0, 3, 1, 4])?;
        let part = |i| heads.narrow(0, i, 1)?.squeeze(0);
        let options = AttentionOptions { causal: true, ..Default::default() };
        let attended = part(0)?.attention(&part(1)?, &part(2)?, &options)?;
        self.attention_out.forward(&attended.transpose(1, 2)?.reshape([n, t, width])?)
    }
}

impl Forward for Block {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let x = x.add(&self.attend(&self.attention_norm.forward(x)?)?)?;
        let hidden = self.up.forward(&self.feed_forward_norm.forward(&x)?)?.gelu()?;
        x.add(&self.down.forward(&hidden)?)
    }
}
