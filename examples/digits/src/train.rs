//! The training loop, written by hand.

use std::f64::consts::PI;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Instant;

use consort::prelude::*;
use consort::{data, nn};
use serde::Serialize;

use crate::Args;
use crate::progress::Progress;

/// Some of the images and their labels.
pub(crate) type Digits = data::Subset<data::TensorDataset<(Tensor, Tensor)>>;

/// At the start; it falls to 0 at the end.
const LEARNING_RATE: f64 = 3e-3;

/// What a network has to be here: its parameters can be found, it can be applied, and it can be cloned.
pub(crate) trait Network: Module + Forward + Clone {}

impl<M: Module + Forward + Clone> Network for M {}

/// What is known after an epoch.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Epoch {
    /// Mean over the epoch's steps, while the weights change and dropout is on.
    pub(crate) train_loss: f64,
    pub(crate) test_loss: f64,
    /// The share of test images that are recognised.
    pub(crate) test_accuracy: f64,
}

/// How a training went.
pub(crate) struct Trained {
    /// One entry per epoch that was begun.
    pub(crate) history: Vec<Epoch>,
    /// From the first step to the last evaluation.
    pub(crate) seconds: f64,
    /// Images per second of training, evaluation left out.
    pub(crate) samples_per_second: f64,
    pub(crate) interrupted: bool,
}

/// Trains a network on the first set; the second one only tells how well it does.
pub(crate) fn train(
    model: &mut impl Network,
    (train_set, test_set): (&Digits, &Digits),
    device: &Device,
    args: &Args,
    stop: &AtomicBool,
) -> Result<Trained> {
    let epochs = args.epochs.unwrap_or(args.model.epochs());
    let loader = data::DataLoader::new(train_set.clone())
        .batch_size(args.batch_size)
        .shuffle(args.seed)
        .map(|(images, labels)| Ok((shifted(&images)?, labels)));
    let mut optimizer = nn::optim::AdamW::new(LEARNING_RATE).setup(model)?;
    let (steps, mut step) = (epochs.saturating_mul(loader.len()), 0);

    let mut progress = Progress::new(epochs, train_set.indices().len());
    let (mut history, mut trained, mut train_seconds) = (Vec::new(), 0, 0.0);
    let start = Instant::now();
    // An interrupt before the first step waits for it: then there is something to keep.
    while history.len() < epochs && (history.is_empty() || !stop.load(Relaxed)) {
        let begin = Instant::now();
        let mut sum = Tensor::zeros((), device)?;
        let mut seen = 0;
        for batch in loader.iter() {
            let (images, labels) = batch?;
            // Large steps first, ever smaller ones towards the end: half a period of a cosine.
            let done = step as f64 / steps as f64;
            optimizer.set_learning_rate(LEARNING_RATE * 0.5 * (1.0 + (PI * done).cos()));

            let (loss, gradients) = with_gradient(&*model, |m| nn::loss::cross_entropy(&m.forward(&images)?, &labels))?;
            optimizer.update(model, &gradients)?;

            // The sum stays on the device; reading it would wait for it.
            sum = sum.add(&loss.mul(labels.len() as f64)?)?;
            seen += labels.len();
            step += 1;
            progress.advance(labels.len());
            if stop.load(Relaxed) {
                break;
            }
        }
        let train_loss = f64::from(sum.item::<f32>()?) / seen as f64;
        train_seconds += begin.elapsed().as_secs_f64();
        trained += seen;
        if !train_loss.is_finite() {
            return Err(Error::value(
                "train",
                format!("the loss is not finite: epoch {}, loss {train_loss}", history.len() + 1),
            ));
        }
        let result = evaluate(model, test_set)?;
        let epoch = Epoch { train_loss, test_loss: result.loss, test_accuracy: result.accuracy() };
        history.push(epoch);
        progress.epoch(history.len(), &epoch);
    }
    progress.finish();
    Ok(Trained {
        interrupted: history.len() < epochs || step < steps,
        history,
        seconds: start.elapsed().as_secs_f64(),
        samples_per_second: trained as f64 / train_seconds,
    })
}

/// Each image moved by up to one pixel along each axis, at random: a digit stays the same digit, and the network sees
/// more of them.
fn shifted(images: &Tensor) -> Result<Tensor> {
    const SIDE: i64 = data::Digits::SIDE as i64;
    const WIDE: i64 = SIDE + 2;
    let (n, device) = (images.dims()[0], images.device());
    // Pixel (row, column) of a moved image is pixel (row + down, column + right) of the image with a margin of one.
    let pixels = (0..SIDE).flat_map(|row| (0..SIDE).map(move |column| row * WIDE + column));
    let pixels = Tensor::from_vec(pixels.collect::<Vec<i64>>(), [1, SIDE * SIDE], &device)?;
    let down = Tensor::randint(0, 3, [n, 1], &device)?;
    let right = Tensor::randint(0, 3, [n, 1], &device)?;
    let index = pixels.add(&down.mul(WIDE)?.add(&right)?)?;
    let margin = images.pad(&[(0, 0), (0, 0), (1, 1), (1, 1)], 0.0)?;
    margin.flatten(1..)?.gather(1, &index)?.reshape(images.shape())
}

/// What a network makes of the test images.
pub(crate) struct Evaluation {
    pub(crate) loss: f64,
    pub(crate) labels: Vec<i64>,
    pub(crate) guesses: Vec<i64>,
}

impl Evaluation {
    /// The share of images that are recognised.
    pub(crate) fn accuracy(&self) -> f64 {
        let right = self.labels.iter().zip(&self.guesses).filter(|(label, guess)| label == guess).count();
        right as f64 / self.labels.len() as f64
    }
}

/// Outside `with_gradient` nothing is recorded and dropout does nothing.
pub(crate) fn evaluate(model: &impl Network, set: &Digits) -> Result<Evaluation> {
    let (mut loss, mut labels, mut guesses) = (0.0, Vec::new(), Vec::new());
    for batch in data::DataLoader::new(set.clone()).batch_size(256).iter() {
        let (x, y) = batch?;
        let scores = model.forward(&x)?;
        loss += f64::from(nn::loss::cross_entropy(&scores, &y)?.item::<f32>()?) * y.len() as f64;
        labels.extend(y.to_vec::<i64>()?);
        guesses.extend(scores.argmax(1)?.to_vec::<i64>()?);
    }
    Ok(Evaluation { loss: loss / labels.len() as f64, labels, guesses })
}
