//! The six training workloads in burn with autodiff, on its Flex backend.

#![forbid(unsafe_code)]

use burn::module::Module;
use burn::nn::conv::{Conv2d, Conv2dConfig};
use burn::nn::loss::{CrossEntropyLossConfig, MseLoss, Reduction};
use burn::nn::pool::{MaxPool2d, MaxPool2dConfig};
use burn::nn::{
    BatchNorm, BatchNormConfig, Embedding, EmbeddingConfig, LayerNorm, LayerNormConfig, Linear, LinearConfig,
    PaddingConfig2d,
};
use burn::optim::{AdamConfig, GradientsParams};
use burn::tensor::activation::{gelu, relu};
use burn::tensor::module::attention;
use burn::tensor::ops::AttentionModuleOptions;
use burn::tensor::{Device, Int, Tensor, TensorData};
use peers_common::{Rng, measure, wanted};

fn device() -> Device {
    Device::flex().autodiff()
}

fn floats<const N: usize>(rng: &mut Rng, shape: [usize; N]) -> Tensor<N> {
    let v = rng.floats(shape.iter().product());
    Tensor::from_data(TensorData::new(v, shape), &device())
}

fn ints<const N: usize>(v: &[u32], shape: [usize; N]) -> Tensor<N, Int> {
    let v: Vec<i32> = v.iter().map(|&i| i as i32).collect();
    Tensor::from_data(TensorData::new(v, shape), &device())
}

/// Trains `model`; `loss` gets it and the row numbers of the batch.
fn run<M: Module>(workload: &str, rows: usize, batch: usize, model: M, loss: impl Fn(&M, Tensor<1, Int>) -> Tensor<1>) {
    let mut opt = AdamConfig::new().with_epsilon(1e-8).init();
    let mut model = Some(model);
    measure("burn-flex", workload, rows, batch, |idx| {
        let m = model.take().expect("the model is put back every step");
        let l = loss(&m, ints(idx, [idx.len()]));
        let grads = GradientsParams::from_grads(l.backward(), &m);
        model = Some(opt.step(1e-3, m, grads));
        l.into_scalar::<f32>()
    });
}

fn cross_entropy(logits: Tensor<2>, y: Tensor<1, Int>) -> Tensor<1> {
    CrossEntropyLossConfig::new().init(&logits.device()).forward(logits, y)
}

#[derive(Module, Debug)]
struct Mlp {
    layers: Vec<Linear>,
}

impl Mlp {
    fn new(sizes: &[usize]) -> Self {
        let layers = sizes.windows(2).map(|s| LinearConfig::new(s[0], s[1]).init(&device())).collect();
        Self { layers }
    }

    fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        let mut h = self.layers[0].forward(x);
        for l in &self.layers[1..] {
            h = l.forward(relu(h));
        }
        h
    }
}

#[derive(Module, Debug)]
struct ConvNet {
    conv: Vec<Conv2d>,
    norm: Vec<BatchNorm>,
    pool: MaxPool2d,
    head: Mlp,
}

impl ConvNet {
    fn new(channels: [usize; 3], kernel: usize, pad: [usize; 2], norm: bool, head: &[usize]) -> Self {
        let dev = device();
        let conv = (0..2)
            .map(|i| {
                Conv2dConfig::new([channels[i], channels[i + 1]], [kernel; 2])
                    .with_padding(PaddingConfig2d::Explicit(pad[i], pad[i], pad[i], pad[i]))
                    .init(&dev)
            })
            .collect();
        let norm = channels[1..].iter().filter(|_| norm).map(|&c| BatchNormConfig::new(c).init(&dev)).collect();
        Self { conv, norm, pool: MaxPool2dConfig::new([2, 2]).init(), head: Mlp::new(head) }
    }

    fn forward(&self, x: Tensor<4>) -> Tensor<2> {
        let mut h = x;
        for i in 0..2 {
            h = self.conv[i].forward(h);
            if let Some(norm) = self.norm.get(i) {
                h = norm.forward(h);
            }
            h = self.pool.forward(relu(h));
        }
        self.head.forward(h.flatten(1, 3))
    }
}

const VOCAB: usize = 65;
const T: usize = 64;
const DIM: usize = 128;
const HEADS: usize = 4;

#[derive(Module, Debug)]
struct Block {
    ln1: LayerNorm,
    ln2: LayerNorm,
    qkv: Linear,
    out: Linear,
    up: Linear,
    down: Linear,
}

impl Block {
    fn new() -> Self {
        let dev = device();
        Self {
            ln1: LayerNormConfig::new(DIM).init(&dev),
            ln2: LayerNormConfig::new(DIM).init(&dev),
            qkv: LinearConfig::new(DIM, 3 * DIM).init(&dev),
            out: LinearConfig::new(DIM, DIM).init(&dev),
            up: LinearConfig::new(DIM, 4 * DIM).init(&dev),
            down: LinearConfig::new(4 * DIM, DIM).init(&dev),
        }
    }

    fn forward(&self, x: Tensor<3>) -> Tensor<3> {
        let [b, t, c] = x.dims();
        let qkv =
            self.qkv.forward(self.ln1.forward(x.clone())).reshape([b, t, 3, HEADS, c / HEADS]).permute([2, 0, 3, 1, 4]);
        let part = |i: usize| qkv.clone().slice([i..i + 1]).squeeze_dim::<4>(0);
        let causal = AttentionModuleOptions { is_causal: true, ..Default::default() };
        let att = attention(part(0), part(1), part(2), None, None, causal);
        let x = x + self.out.forward(att.swap_dims(1, 2).reshape([b, t, c]));
        let h = gelu(self.up.forward(self.ln2.forward(x.clone())));
        x + self.down.forward(h)
    }
}

#[derive(Module, Debug)]
struct Gpt {
    tok: Embedding,
    pos: Embedding,
    blocks: Vec<Block>,
    ln: LayerNorm,
    head: Linear,
}

impl Gpt {
    fn new() -> Self {
        let dev = device();
        Self {
            tok: EmbeddingConfig::new(VOCAB, DIM).init(&dev),
            pos: EmbeddingConfig::new(T, DIM).init(&dev),
            blocks: (0..4).map(|_| Block::new()).collect(),
            ln: LayerNormConfig::new(DIM).init(&dev),
            head: LinearConfig::new(DIM, VOCAB).init(&dev),
        }
    }

    fn forward(&self, x: Tensor<2, Int>) -> Tensor<3> {
        let places = Tensor::<1, Int>::arange(0..T as i64, &x.device()).unsqueeze::<2>();
        let mut h = self.tok.forward(x) + self.pos.forward(places);
        for b in &self.blocks {
            h = b.forward(h);
        }
        self.head.forward(self.ln.forward(h))
    }
}

fn main() {
    let mut rng = Rng::new(1);

    if wanted("seed") {
        let (x, y) = (floats(&mut rng, [1000, 10]), floats(&mut rng, [1000, 1]));
        run("seed", 1000, 64, Mlp::new(&[10, 64, 1]), |m, i| {
            let (xb, yb) = (x.clone().select(0, i.clone()), y.clone().select(0, i));
            MseLoss::new().forward(m.forward(xb), yb, Reduction::Mean)
        });
    }
    for (name, sizes, batch) in [("mlp256", [784, 256, 128, 10], 128), ("mlp1024", [784, 1024, 1024, 10], 256)] {
        if wanted(name) {
            let x = floats(&mut rng, [10000, 784]);
            let y = ints(&rng.labels(10000, 10), [10000]);
            run(name, 10000, batch, Mlp::new(&sizes), |m, i| {
                let (xb, yb) = (x.clone().select(0, i.clone()), y.clone().select(0, i));
                cross_entropy(m.forward(xb), yb)
            });
        }
    }
    for (name, rows, batch) in [("lenet", 4000, 128), ("cnn", 1024, 64)] {
        if wanted(name) {
            let x = floats(&mut rng, [rows, 1, 28, 28]);
            let y = ints(&rng.labels(rows, 10), [rows]);
            let net = if name == "lenet" {
                ConvNet::new([1, 6, 16], 5, [2, 0], false, &[400, 120, 84, 10])
            } else {
                ConvNet::new([1, 32, 64], 3, [1, 1], true, &[64 * 49, 128, 10])
            };
            run(name, rows, batch, net, |m, i| {
                let (xb, yb) = (x.clone().select(0, i.clone()), y.clone().select(0, i));
                cross_entropy(m.forward(xb), yb)
            });
        }
    }
    if wanted("gpt") {
        let x = ints(&rng.labels(240 * T, VOCAB), [240, T]);
        let y = ints(&rng.labels(240 * T, VOCAB), [240, T]);
        run("gpt", 240, 12, Gpt::new(), |m, i| {
            let (xb, yb) = (x.clone().select(0, i.clone()), y.clone().select(0, i));
            cross_entropy(m.forward(xb).flatten(0, 1), yb.flatten(0, 1))
        });
    }
}
