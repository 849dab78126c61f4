//! Whole training runs: the losses that PyTorch gets from the same start, and those that a fixed seed gives.

use consort::prelude::*;
use consort::{device, nn, random};
use integration::oracle::{Input, Layout, drawn, training_losses};

/// A run of one of PyTorch's: parameters and data are drawn from their names.
struct Run {
    name: &'static str,
    dtype: DType,
    device: Device,
}

impl Run {
    fn place(&self) -> (&Device, DType) {
        (&self.device, self.dtype)
    }

    fn data(&self, i: usize, spec: &str) -> Result<Tensor> {
        Input::parse(&format!("training/{}#{i}", self.name), spec).tensor(self.dtype, Layout::RowMajor, &self.device)
    }

    fn losses<M: Module + Clone>(
        &self,
        mut model: M,
        loss: impl Fn(&M) -> Result<Tensor>,
        rule: impl FnOnce(&M) -> Result<nn::optim::Optimizer>,
    ) -> Result<Vec<f64>> {
        let parameters: Vec<String> = model.named_parameters().into_iter().map(|(path, _)| path).collect();
        let mut state = model.state_dict();
        for (path, value) in state.iter_mut().filter(|(path, _)| parameters.contains(path)) {
            let start: Vec<f64> =
                drawn(&format!("training/{}#{path}", self.name), value.dims()).iter().map(|v| v / 4.0).collect();
            *value = Tensor::from_vec(start, value.dims(), self.place())?;
        }
        model.load_state_dict(&state)?;
        let mut optimizer = rule(&model)?;
        let mut losses = Vec::new();
        for _ in 0..training_losses(self.name).len() {
            let (loss, gradients) = with_gradient(&model, &loss)?;
            optimizer.update(&mut model, &gradients)?;
            losses.push(loss.cast(DType::F64)?.item()?);
        }
        Ok(losses)
    }

    fn mlp(&self) -> Result<Vec<f64>> {
        let model = chain![nn::Linear::new(10, 16, self.place())?, nn::Gelu, nn::Linear::new(16, 1, self.place())?];
        let (x, y) = (self.data(0, "f[24,10] -124..124")?, self.data(1, "f[24,1] -124..124")?);
        self.losses(model, |m| nn::loss::mse(&m.forward(&x)?, &y), |m| nn::optim::Adam::new(1e-2).setup(m))
    }

    fn cnn(&self) -> Result<Vec<f64>> {
        let grouped = nn::Conv2dOptions { groups: 2, ..Default::default() };
        let model = chain![
            nn::Conv2d::new(2, 4, 3, self.place())?.padding(1),
            nn::BatchNorm2d::new(4, self.place())?,
            nn::Relu,
            nn::MaxPool2d::new(2),
            nn::Conv2d::with(4, 6, 3, grouped, self.place())?.stride(2).padding([1, 0]),
            nn::Silu,
            nn::Flatten,
            nn::Linear::new(12, 3, self.place())?,
        ];
        let (x, y) = (self.data(0, "f[6,2,9,8] -124..124")?, self.data(1, "i[6] 0..2")?);
        let loss = nn::loss::CrossEntropy { label_smoothing: 0.1, ..Default::default() };
        let rule = nn::optim::Sgd::new(0.05).nesterov(0.9).weight_decay(1e-3);
        self.losses(model, |m| loss.loss(&m.forward(&x)?, &y), |m| rule.setup(m))
    }

    fn transformer(&self) -> Result<Vec<f64>> {
        let tokens = self.data(0, "i[3,7] 0..10")?;
        let (seen, next) = (tokens.narrow(1, 0, 6)?, tokens.narrow(1, 1, 6)?.reshape(18)?);
        let loss = |m: &Block| nn::loss::cross_entropy(&m.forward(&seen)?.reshape([18, 11])?, &next);
        self.losses(Block::new(self.place())?, loss, |m| nn::optim::AdamW::new(1e-2).weight_decay(0.1).setup(m))
    }
}

#[derive(Module, Clone, Debug)]
struct Block {
    embedding: nn::Embedding,
    norm: nn::LayerNorm,
    attention: nn::MultiHeadAttention,
    inner: nn::Linear,
    outer: nn::Linear,
    head: nn::Linear,
}

impl Block {
    fn new(place: (&Device, DType)) -> Result<Self> {
        Ok(Self {
            embedding: nn::Embedding::new(11, 8, place)?,
            norm: nn::LayerNorm::new(8, place)?,
            attention: nn::MultiHeadAttention::new(8, 2, place)?,
            inner: nn::Linear::new(8, 16, place)?,
            outer: nn::Linear::new(16, 8, place)?,
            head: nn::Linear::new(8, 11, place)?,
        })
    }
}

impl Forward for Block {
    fn forward(&self, tokens: &Tensor) -> Result<Tensor> {
        let x = self.embedding.forward(tokens)?;
        let normed = self.norm.forward(&x)?;
        let mask = nn::AttentionMask { causal: true, ..Default::default() };
        let x = x.add(&self.attention.attend(&normed, &normed, &normed, mask)?)?;
        let hidden = self.inner.forward(&self.norm.forward(&x)?)?.gelu()?;
        self.head.forward(&x.add(&self.outer.forward(&hidden)?)?)
    }
}

/// Panics unless each loss is right to the rounding of a few thousand operations per step.
fn assert_losses(name: &str, dtype: DType, got: &[f64], want: &[f64]) {
    assert_eq!(got.len(), want.len(), "{name}");
    for (step, (g, w)) in got.iter().zip(want).enumerate() {
        let tolerance = dtype.epsilon() * 1024.0 * (step + 1) as f64 * w.abs();
        assert!(
            (g - w).abs() <= tolerance,
            "{name} {dtype}: step {step}: got {g}, want {w}\n got {got:?}\nwant {want:?}"
        );
    }
}

#[test]
fn losses_are_those_of_pytorch() -> Result<()> {
    type Losses = fn(&Run) -> Result<Vec<f64>>;
    let runs: [(&str, Losses); 3] = [("mlp", Run::mlp), ("cnn", Run::cnn), ("transformer", Run::transformer)];
    for (name, losses) in runs {
        for dtype in [DType::F64, DType::F32] {
            let run = Run { name, dtype, device: device::cpu() };
            assert_losses(name, dtype, &losses(&run)?, &training_losses(name));
        }
    }
    Ok(())
}

/// Trains 10-64-1 on a fixed regression and returns every loss.
fn train_mlp(device: &Device, steps: usize) -> Result<Vec<f32>> {
    random::with_stream(random::Stream::new(7), || {
        let x = Tensor::rand([256, 10], device)?;
        let y = x.square()?.sum_keepdim(1)?;
        let mut model = chain![nn::Linear::new(10, 64, device)?, nn::Relu, nn::Linear::new(64, 1, device)?];
        let mut optimizer = nn::optim::Adam::new(1e-2).setup(&model)?;
        (0..steps)
            .map(|_| {
                let (loss, gradients) = with_gradient(&model, |m| nn::loss::mse(&m.forward(&x)?, &y))?;
                optimizer.update(&mut model, &gradients)?;
                loss.item::<f32>()
            })
            .collect()
    })
}

/// Trains a small convolutional net with batch norm and dropout and returns every loss.
fn train_cnn(device: &Device, steps: usize) -> Result<Vec<f32>> {
    random::with_stream(random::Stream::new(11), || {
        let x = Tensor::rand([32, 1, 8, 8], device)?;
        let y = Tensor::randint(0, 4, [32], device)?;
        let mut model = chain![
            nn::Conv2d::new(1, 8, 3, device)?,
            nn::BatchNorm2d::new(8, device)?,
            nn::Relu,
            nn::MaxPool2d::new(2),
            nn::Flatten,
            nn::Dropout::new(0.2),
            nn::Linear::new(8 * 3 * 3, 4, device)?,
        ];
        let mut optimizer = nn::optim::Sgd::new(0.1).setup(&model)?;
        (0..steps)
            .map(|_| {
                let (loss, gradients) = with_gradient(&model, |m| nn::loss::cross_entropy(&m.forward(&x)?, &y))?;
                optimizer.update(&mut model, &gradients)?;
                loss.item::<f32>()
            })
            .collect()
    })
}

#[test]
fn training_learns() -> Result<()> {
    let device = device::cpu();
    for losses in [train_mlp(&device, 60)?, train_cnn(&device, 60)?] {
        let (first, last) = (losses[0], losses[losses.len() - 1]);
        assert!(last < 0.5 * first, "the loss fell from {first} to {last} only");
    }
    Ok(())
}

/// What these seeds give on every device and in every version: initial weights, data and dropout masks are part of it.
#[test]
fn a_seed_gives_these_losses() -> Result<()> {
    let device = device::cpu();
    let golden: [(&str, Vec<f32>, [f64; 5]); 2] = [
        ("mlp", train_mlp(&device, 5)?, [11.260370, 9.743803, 8.286034, 6.864891, 5.467444]),
        ("cnn", train_cnn(&device, 5)?, [1.5846260, 1.5670935, 1.3825717, 1.2423007, 1.2185144]),
    ];
    for (name, losses, want) in golden {
        let losses: Vec<f64> = losses.into_iter().map(f64::from).collect();
        assert_losses(name, DType::F32, &losses, &want);
    }
    Ok(())
}
