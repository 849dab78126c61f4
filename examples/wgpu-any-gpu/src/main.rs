//! Any GPU: lists the adapters that Vulkan, Metal and DirectX 12 show, checks an op of one's own with a kernel in WGSL
//! against the processor, and trains a network with it on handwritten digits.
//!
//! `cargo run --release -p wgpu-any-gpu --features wgpu`, with `-- --device wgpu:1` for another adapter. The op is in
//! `snake.rs`, its kernel in `snake.wgsl`. Where there is no adapter the program says why, and runs on the processor.
#![forbid(unsafe_code)]

use std::io::{Write, stderr};
use std::process::ExitCode;

use clap::Parser;
use consort::prelude::*;
use consort::{Kind, data, device, nn};

mod snake;

use snake::snake;

/// Train on any GPU, with an op of one's own
#[derive(Parser)]
#[command(version)]
struct Args {
    /// Where to run: wgpu:0, wgpu:1, … or cpu [default: wgpu:0 where there is an adapter, else cpu]
    #[arg(long)]
    device: Option<String>,

    /// How often to go through the training images
    #[arg(long, default_value = "10")]
    epochs: usize,
}

/// Three dense layers on the 64 pixels, with the op between them.
#[derive(Module, Clone, Debug)]
struct Mlp {
    hidden: nn::Linear,
    deep: nn::Linear,
    output: nn::Linear,
}

impl Forward for Mlp {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let x = snake(&self.hidden.forward(&x.flatten(1..)?)?)?;
        self.output.forward(&snake(&self.deep.forward(&x)?)?)
    }
}

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(stderr(), "error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Args) -> Result<()> {
    let found = list_adapters();
    let device = match &args.device {
        Some(name) => device::parse(name)?,
        None if found => device::wgpu(0)?,
        None => device::cpu(),
    };
    println!("on {device}: {}", device.info().name);
    consort::seed(0);
    check_op(&device)?;
    train(&device, args.epochs)
}

/// Says which adapters there are, or why there are none.
fn list_adapters() -> bool {
    let adapters = match device::probe(Kind::Wgpu) {
        Ok(adapters) => adapters,
        Err(reason) => {
            println!("no adapter: {reason}");
            return false;
        }
    };
    println!("adapters, the default first:");
    for info in &adapters {
        let made_of = if info.is_hardware { "hardware" } else { "software" };
        println!("  {} is {}, {made_of} ({})", info.label, info.name, info.capability);
    }
    true
}

/// Holds the kernel and the derivative against the processor's.
fn check_op(device: &Device) -> Result<()> {
    let x = Tensor::linspace(-3.0, 3.0, 1000, &device::cpu())?;
    let loss = |x: &Tensor| snake(x)?.square()?.sum(..);
    agree("kernel and processor", &snake(&x.to(device)?)?, &snake(&x)?)?;
    agree("their gradients", &nn::gradient(loss, &x.to(device)?)?, &nn::gradient(loss, &x)?)?;
    // A view is copied row by row before the kernel reads it.
    let turned = x.reshape([40, 25])?.t()?;
    let on_device = x.to(device)?.reshape([40, 25])?.t()?;
    agree("those of a view", &snake(&on_device)?, &snake(&turned)?)
}

/// Says that two tensors agree, as closely as the sine that an adapter has allows, or fails.
fn agree(what: &str, a: &Tensor, b: &Tensor) -> Result<()> {
    let a = a.to(&device::cpu())?;
    if !a.allclose(b, 1e-3, 1e-3)? {
        return Err(Error::value("agree", format!("{what} differ: {a} and {b}")));
    }
    println!("{what} agree");
    Ok(())
}

/// Trains on four fifths of the digits, and counts those of the rest that are recognised.
fn train(device: &Device, epochs: usize) -> Result<()> {
    let digits = data::Digits::load(device)?;
    let labels = digits.labels.to_vec::<i64>()?;
    let (train_set, test_set) = data::split_stratified(digits.into_dataset()?, &labels, 0.8, 0)?;
    let batches = data::DataLoader::new(train_set).batch_size(64).shuffle(0).drop_last(true).seed(0);
    let rest = data::DataLoader::new(test_set).batch_size(64);
    let mut model = Mlp {
        hidden: nn::Linear::new(64, 128, device)?,
        deep: nn::Linear::new(128, 128, device)?,
        output: nn::Linear::new(128, 10, device)?,
    };
    let mut optimizer = nn::optim::Adam::new(1e-3).setup(&model)?;
    for epoch in 1..=epochs {
        let mut last = None;
        for batch in batches.iter() {
            let (x, y) = batch?;
            let (loss, gradients) = with_gradient(&model, |m| nn::loss::cross_entropy(&m.forward(&x)?, &y))?;
            optimizer.update(&mut model, &gradients)?;
            last = Some(loss);
        }
        let (mut right, mut all) = (0, 0);
        for batch in rest.iter() {
            let (x, y) = batch?;
            right += model.forward(&x)?.argmax(1)?.eq(&y)?.cast(DType::I32)?.sum(..)?.item::<i32>()?;
            all += y.len();
        }
        let loss = last.map_or(Ok(f32::NAN), |loss: Tensor| loss.item::<f32>())?;
        println!("epoch {epoch:2}: loss {loss:.4}, recognised {right} of {all}");
    }
    Ok(())
}
