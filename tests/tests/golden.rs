//! Whole training runs: the losses that a fixed seed gives, the same bits run after run and on any number of threads.

use consort::prelude::*;
use consort::{device, nn, random};

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
            nn::Flatten::default(),
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

#[test]
fn a_seed_gives_the_same_bits() -> Result<()> {
    let device = device::cpu();
    assert_eq!(train_mlp(&device, 20)?, train_mlp(&device, 20)?);
    assert_eq!(train_cnn(&device, 20)?, train_cnn(&device, 20)?);
    Ok(())
}
