//! The six workloads: a network, made-up data, a batch size and a loss.

use crate::gpt::Gpt;
use crate::measure::{Protocol, time_steps};
use consort::nn;
use consort::prelude::*;

/// Trains one workload and says how many microseconds each timed step took.
pub type Run = fn(&Device, &Protocol) -> Result<Vec<f64>>;

/// Every workload by name.
pub const WORKLOADS: &[(&str, Run)] =
    &[("seed", seed), ("mlp256", mlp256), ("mlp1024", mlp1024), ("lenet", lenet), ("cnn", cnn), ("gpt", gpt)];

/// Their names.
pub fn names() -> impl Iterator<Item = &'static str> {
    WORKLOADS.iter().map(|(name, _)| *name)
}

fn seed(device: &Device, protocol: &Protocol) -> Result<Vec<f64>> {
    let model = chain![nn::Linear::new(10, 64, device)?, nn::Relu, nn::Linear::new(64, 1, device)?];
    let (x, y) = (Tensor::rand([1000, 10], device)?, Tensor::rand([1000, 1], device)?);
    train(protocol, model, x, y, 64, nn::loss::mse)
}

fn mlp256(device: &Device, protocol: &Protocol) -> Result<Vec<f64>> {
    let model = dense([784, 256, 128, 10], device)?;
    let (x, y) = (Tensor::rand([10_000, 784], device)?, labels(10_000, device)?);
    train(protocol, model, x, y, 128, nn::loss::cross_entropy)
}

fn mlp1024(device: &Device, protocol: &Protocol) -> Result<Vec<f64>> {
    let model = dense([784, 1024, 1024, 10], device)?;
    let (x, y) = (Tensor::rand([10_000, 784], device)?, labels(10_000, device)?);
    train(protocol, model, x, y, 256, nn::loss::cross_entropy)
}

fn lenet(device: &Device, protocol: &Protocol) -> Result<Vec<f64>> {
    let model = chain![
        nn::Conv2d::new(1, 6, 5, device)?.padding(2),
        nn::Relu,
        nn::MaxPool2d::new(2),
        nn::Conv2d::new(6, 16, 5, device)?,
        nn::Relu,
        nn::MaxPool2d::new(2),
        nn::Flatten,
        dense([400, 120, 84, 10], device)?,
    ];
    let (x, y) = (Tensor::rand([4000, 1, 28, 28], device)?, labels(4000, device)?);
    train(protocol, model, x, y, 128, nn::loss::cross_entropy)
}

fn cnn(device: &Device, protocol: &Protocol) -> Result<Vec<f64>> {
    let block = |n_in, n_out| -> Result<_> {
        Ok(chain![
            nn::Conv2d::new(n_in, n_out, 3, device)?.padding(1),
            nn::BatchNorm2d::new(n_out, device)?,
            nn::Relu,
            nn::MaxPool2d::new(2),
        ])
    };
    let head = chain![nn::Linear::new(3136, 128, device)?, nn::Relu, nn::Linear::new(128, 10, device)?];
    let model = chain![block(1, 32)?, block(32, 64)?, nn::Flatten, head];
    let (x, y) = (Tensor::rand([1024, 1, 28, 28], device)?, labels(1024, device)?);
    train(protocol, model, x, y, 64, nn::loss::cross_entropy)
}

fn gpt(device: &Device, protocol: &Protocol) -> Result<Vec<f64>> {
    let model = Gpt::new(65, 64, 128, 4, 4, device)?;
    let tokens = || Tensor::randint(0, 65, [240, 64], device);
    train(protocol, model, tokens()?, tokens()?, 12, |logits, targets| {
        nn::loss::cross_entropy(&logits.reshape([-1, 65])?, &targets.reshape([-1])?)
    })
}

/// Three linear layers with a ReLU between each two.
fn dense(widths: [usize; 4], device: &Device) -> Result<impl Forward + Module + Clone + use<>> {
    let [a, b, c, d] = widths;
    Ok(chain![
        nn::Linear::new(a, b, device)?,
        nn::Relu,
        nn::Linear::new(b, c, device)?,
        nn::Relu,
        nn::Linear::new(c, d, device)?,
    ])
}

fn labels(n: usize, device: &Device) -> Result<Tensor> {
    Tensor::randint(0, 10, [n], device)
}

/// A step gathers its rows, then runs forward, loss, backward and Adam, and reads the loss.
fn train<M: Module + Forward + Clone>(
    protocol: &Protocol,
    mut model: M,
    x: Tensor,
    y: Tensor,
    batch_size: usize,
    loss: impl Fn(&Tensor, &Tensor) -> Result<Tensor>,
) -> Result<Vec<f64>> {
    let mut optimizer = nn::optim::Adam::new(1e-3).setup(&model)?;
    time_steps(protocol, x.dims()[0], batch_size, |rows| {
        let rows = Tensor::from_slice(rows, [batch_size], &x.device())?;
        let (x, y) = (x.index_select(0, &rows)?, y.index_select(0, &rows)?);
        let (loss, grads) = with_gradient(&model, |m| loss(&m.forward(&x)?, &y))?;
        optimizer.update(&mut model, &grads)?;
        loss.item::<f32>()
    })
}
