//! The six training workloads in candle (CPU backend, its default features).

#![forbid(unsafe_code)]

use candle_core::{D, DType, Device, Module, ModuleT, Result, Tensor};
use candle_nn::ops::{layer_norm_slow, softmax};
use candle_nn::{
    AdamW, BatchNorm, Conv2d, Conv2dConfig, Embedding, Init, Linear, Optimizer, ParamsAdamW, VarBuilder, VarMap,
    batch_norm, conv2d, embedding, linear, loss,
};
use peers_common::{Rng, measure, wanted};

const DEV: Device = Device::Cpu;

/// Trains `forward` (built by `build`) on rows of `x`, `y`.
fn run<M>(
    workload: &str,
    batch: usize,
    x: Tensor,
    y: Tensor,
    build: impl Fn(VarBuilder) -> Result<M>,
    loss: impl Fn(&M, &Tensor, &Tensor) -> Result<Tensor>,
) -> Result<()> {
    let vars = VarMap::new();
    let model = build(VarBuilder::from_varmap(&vars, DType::F32, &DEV))?;
    // weight_decay 0 makes AdamW the same update as Adam
    let params = ParamsAdamW { lr: 1e-3, weight_decay: 0.0, ..Default::default() };
    let mut opt = AdamW::new(vars.all_vars(), params)?;
    let mut step = |idx: &[u32]| -> Result<f32> {
        let idx = Tensor::new(idx, &DEV)?;
        let (xb, yb) = (x.index_select(&idx, 0)?, y.index_select(&idx, 0)?);
        let l = loss(&model, &xb, &yb)?;
        opt.backward_step(&l)?;
        l.to_scalar::<f32>()
    };
    measure("candle", workload, x.dim(0)?, batch, |idx| step(idx).expect("training step"));
    Ok(())
}

fn mlp(sizes: &[usize], vb: VarBuilder) -> Result<Vec<Linear>> {
    (1..sizes.len()).map(|i| linear(sizes[i - 1], sizes[i], vb.pp(i))).collect()
}

fn mlp_forward(layers: &[Linear], x: &Tensor) -> Result<Tensor> {
    let mut h = layers[0].forward(x)?;
    for l in &layers[1..] {
        h = l.forward(&h.relu()?)?;
    }
    Ok(h)
}

struct ConvNet {
    conv: [Conv2d; 2],
    norm: Option<[BatchNorm; 2]>,
    head: Vec<Linear>,
}

impl ConvNet {
    fn lenet(vb: VarBuilder) -> Result<Self> {
        Ok(Self {
            conv: [conv2d(1, 6, 5, padding(2), vb.pp("c1"))?, conv2d(6, 16, 5, padding(0), vb.pp("c2"))?],
            norm: None,
            head: mlp(&[400, 120, 84, 10], vb.pp("head"))?,
        })
    }

    fn cnn(vb: VarBuilder) -> Result<Self> {
        Ok(Self {
            conv: [conv2d(1, 32, 3, padding(1), vb.pp("c1"))?, conv2d(32, 64, 3, padding(1), vb.pp("c2"))?],
            norm: Some([batch_norm(32, 1e-5, vb.pp("n1"))?, batch_norm(64, 1e-5, vb.pp("n2"))?]),
            head: mlp(&[64 * 49, 128, 10], vb.pp("head"))?,
        })
    }

    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let mut h = x.clone();
        for i in 0..2 {
            h = self.conv[i].forward(&h)?;
            if let Some(norm) = &self.norm {
                h = norm[i].forward_t(&h, true)?;
            }
            h = h.relu()?.max_pool2d(2)?;
        }
        mlp_forward(&self.head, &h.flatten_from(1)?)
    }
}

fn padding(padding: usize) -> Conv2dConfig {
    Conv2dConfig { padding, ..Default::default() }
}

const VOCAB: usize = 65;
const T: usize = 64;
const DIM: usize = 128;
const HEADS: usize = 4;

/// `candle_nn::LayerNorm` takes a fused path on contiguous input that records no gradient, so this
/// calls the composed version that candle_nn also exports.
struct LayerNorm(Tensor, Tensor);

impl LayerNorm {
    fn new(vb: VarBuilder) -> Result<Self> {
        Ok(Self(vb.get_with_hints(DIM, "weight", Init::Const(1.0))?, vb.get_with_hints(DIM, "bias", Init::Const(0.0))?))
    }

    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        layer_norm_slow(x, &self.0, &self.1, 1e-5)
    }
}

struct Block {
    ln1: LayerNorm,
    ln2: LayerNorm,
    qkv: Linear,
    out: Linear,
    up: Linear,
    down: Linear,
}

impl Block {
    fn new(vb: VarBuilder) -> Result<Self> {
        Ok(Self {
            ln1: LayerNorm::new(vb.pp("ln1"))?,
            ln2: LayerNorm::new(vb.pp("ln2"))?,
            qkv: linear(DIM, 3 * DIM, vb.pp("qkv"))?,
            out: linear(DIM, DIM, vb.pp("out"))?,
            up: linear(DIM, 4 * DIM, vb.pp("up"))?,
            down: linear(4 * DIM, DIM, vb.pp("down"))?,
        })
    }

    fn forward(&self, x: &Tensor, mask: &Tensor) -> Result<Tensor> {
        let (b, t, c) = x.dims3()?;
        let qkv = self
            .qkv
            .forward(&self.ln1.forward(x)?)?
            .reshape((b, t, 3, HEADS, c / HEADS))?
            .permute((2, 0, 3, 1, 4))?
            .contiguous()?;
        let (q, k, v) = (qkv.get(0)?, qkv.get(1)?, qkv.get(2)?);
        let scale = 1.0 / ((c / HEADS) as f64).sqrt();
        let att = (q.matmul(&k.t()?)? * scale)?.broadcast_add(mask)?;
        let att = softmax(&att, D::Minus1)?.matmul(&v)?;
        let att = att.transpose(1, 2)?.reshape((b, t, c))?;
        let x = (x + self.out.forward(&att)?)?;
        let h = self.up.forward(&self.ln2.forward(&x)?)?.gelu_erf()?;
        &x + self.down.forward(&h)?
    }
}

struct Gpt {
    tok: Embedding,
    pos: Embedding,
    blocks: Vec<Block>,
    ln: LayerNorm,
    head: Linear,
    places: Tensor,
    mask: Tensor,
}

impl Gpt {
    fn new(vb: VarBuilder) -> Result<Self> {
        let mask: Vec<f32> = (0..T * T).map(|i| if i % T > i / T { f32::NEG_INFINITY } else { 0.0 }).collect();
        Ok(Self {
            tok: embedding(VOCAB, DIM, vb.pp("tok"))?,
            pos: embedding(T, DIM, vb.pp("pos"))?,
            blocks: (0..4).map(|i| Block::new(vb.pp(format!("b{i}")))).collect::<Result<_>>()?,
            ln: LayerNorm::new(vb.pp("ln"))?,
            head: linear(DIM, VOCAB, vb.pp("head"))?,
            places: Tensor::arange(0u32, T as u32, &DEV)?,
            mask: Tensor::from_vec(mask, (T, T), &DEV)?,
        })
    }

    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let mut h = self.tok.forward(x)?.broadcast_add(&self.pos.forward(&self.places)?)?;
        for b in &self.blocks {
            h = b.forward(&h, &self.mask)?;
        }
        self.head.forward(&self.ln.forward(&h)?)
    }
}

fn main() -> Result<()> {
    let mut rng = Rng::new(1);
    let mut x = |shape: &[usize]| Tensor::from_vec(rng.floats(shape.iter().product()), shape, &DEV);
    let mut rng = Rng::new(2);
    let mut y = |n: usize| Tensor::from_vec(rng.labels(n, 10), n, &DEV);

    if wanted("seed") {
        let (x, y) = (x(&[1000, 10])?, x(&[1000, 1])?);
        run("seed", 64, x, y, |vb| mlp(&[10, 64, 1], vb), |m, x, y| loss::mse(&mlp_forward(m, x)?, y))?;
    }
    for (name, sizes, batch) in [("mlp256", [784, 256, 128, 10], 128), ("mlp1024", [784, 1024, 1024, 10], 256)] {
        if wanted(name) {
            run(
                name,
                batch,
                x(&[10000, 784])?,
                y(10000)?,
                |vb| mlp(&sizes, vb),
                |m, x, y| loss::cross_entropy(&mlp_forward(m, x)?, y),
            )?;
        }
    }
    let convs: [(_, _, _, fn(VarBuilder) -> Result<ConvNet>); 2] =
        [("lenet", 4000, 128, ConvNet::lenet), ("cnn", 1024, 64, ConvNet::cnn)];
    for (name, rows, batch, build) in convs {
        if wanted(name) {
            let x = x(&[rows, 1, 28, 28])?;
            run(name, batch, x, y(rows)?, build, |m, x, y| loss::cross_entropy(&m.forward(x)?, y))?;
        }
    }
    if wanted("gpt") {
        let mut rng = Rng::new(3);
        let x = Tensor::from_vec(rng.labels(240 * T, VOCAB), (240, T), &DEV)?;
        let y = Tensor::from_vec(rng.labels(240 * T, VOCAB), (240, T), &DEV)?;
        run("gpt", 12, x, y, Gpt::new, |m, x, y| {
            loss::cross_entropy(&m.forward(x)?.reshape(((), VOCAB))?, &y.flatten_all()?)
        })?;
    }
    Ok(())
}
