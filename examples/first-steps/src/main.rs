//! First steps: devices, tensors, and a training loop written by hand.
//!
//! Run it with `cargo run --release -p first-steps`, and read it from top to bottom.
#![forbid(unsafe_code)]

use consort::prelude::*;
use consort::{data, device, nn};

fn main() -> Result<()> {
    devices();
    tensors()?;
    a_layer()?;
    regression()
}

/// Which devices are there?
fn devices() {
    println!("== Devices ==");
    for device in device::all() {
        println!("{device}: {}", device.info().name);
    }
    // The first GPU, or the CPU where there is none: the same program runs on both.
    println!("try_gpu(0): {}", device::try_gpu(0));
    // A tenth GPU is rare, so this is most likely the CPU.
    println!("try_gpu(9): {}", device::try_gpu(9));
    // All GPUs, or a list of the CPU alone.
    println!("try_all_gpus(): {:?}", device::try_all_gpus());
}

/// Tensors live on a device, and ops on them run there.
fn tensors() -> Result<()> {
    println!("\n== Tensors ==");
    let device = device::try_gpu(0);

    // Two rows of three ones, in f32. Printing downloads what is shown.
    let x = Tensor::ones([2, 3], &device)?;
    println!("{x}");

    // `to` moves a tensor to a device. It is there already: this is the same storage, and costs nothing.
    let same = x.to(&device)?;
    println!("x.to(&device) shares x's storage: {}", same.is_same(&x));
    // `copy_to` always makes a copy.
    let copy = x.copy_to(&device)?;
    println!("x.copy_to(&device) shares it: {}", copy.is_same(&x));

    // Ops return a `Result`; the operators + - * / are shorter, and panic where the method would return an error.
    let y = Tensor::from_vec(vec![1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0], [2, 3], &device)?;
    println!("x + y:\n{}", x.add(&y)?);
    println!("(x + y) / 2:\n{}", (&x + &y) / 2.0);

    // Nothing moves from one device to another unasked: that would be slow, and hard to see. Ops on tensors of two
    // devices are an error that says so. (Where there is only one device, a second CPU under another name stands in.)
    let other = device::all().into_iter().find(|other| *other != device);
    let other = other.unwrap_or_else(|| device::test_device("stand-in", 0).0);
    let far = y.to(&other)?;
    println!("x on {device} + y on {other} fails:");
    println!("  {}", x.add(&far).expect_err("operands on two devices"));
    println!("moved to one device:\n{}", x.add(&far.to(&device)?)?);

    // Errors name the op, the rule and the operands.
    println!("shapes that do not fit fail too:");
    println!("  {}", x.add(&Tensor::ones([4], &device)?).expect_err("shapes that differ"));
    Ok(())
}

/// A layer is a function with parameters.
fn a_layer() -> Result<()> {
    println!("\n== A layer ==");
    // Weights start at random; with a seed they are the same in every run, on every device.
    consort::seed(1);
    // y = x·Wᵀ + b, from 3 features to 1.
    let layer = nn::Linear::new(3, 1, &device::cpu())?;

    // Moving a model moves its parameters.
    let device = device::try_gpu(0);
    let layer = layer.to(&device)?;
    println!("{layer}\nIts weights are on {}.", layer.weight.device());

    let x = Tensor::ones([2, 3], &device)?;
    println!("layer(x):\n{}", layer.forward(&x)?);
    Ok(())
}

/// A regression: 10 features, 64 hidden units, 1 target.
fn regression() -> Result<()> {
    println!("\n== Training ==");
    let device = device::best();
    consort::seed(42);

    // A thousand samples. The target is the mean of the squared features and a little noise.
    let cpu = device::cpu();
    let x = Tensor::randn([1000, 10], &cpu)?;
    let noise = Tensor::randn([1000, 1], &cpu)?;
    let y = x.square()?.mean_keepdim(1)?.add(&noise.mul(0.05)?)?;

    // The data stay where they are; each batch of 64 moves to the device when its turn comes.
    let set = data::TensorDataset::new((x, y))?;
    let loader = data::DataLoader::new(set).batch_size(64).shuffle(42).device(&device);

    // The model moves once, before training.
    let mut model = chain![nn::Linear::new(10, 64, &cpu)?, nn::Relu, nn::Linear::new(64, 1, &cpu)?].to(&device)?;
    let mut optimizer = nn::optim::Adam::new(1e-2).setup(&model)?;
    println!("{model}");

    for epoch in 1..=10 {
        // Adding up on the device does not wait for it: the work goes on while this loop prepares the next batch.
        let mut total = Tensor::zeros((), &device)?;
        for batch in loader.iter() {
            let (x, y) = batch?;
            // `m` is the model, recording; what the closure returns is differentiated by its parameters.
            let (loss, gradients) = with_gradient(&model, |m| nn::loss::mse(&m.forward(&x)?, &y))?;
            optimizer.update(&mut model, &gradients)?;
            total = total.add(&loss)?;
        }
        // Reading a value waits for the device: once per epoch.
        println!("epoch {epoch:2}: loss {:.4}", total.item::<f32>()? / loader.len() as f32);
    }
    Ok(())
}
