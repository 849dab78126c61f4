//! Trains a network on real handwritten digits, and shows what it learnt.
//!
//! `cargo run --release -p digits`, with `-- --help` for what can be chosen. The network is in `model.rs`, the loop is
//! in `train` below, and everything that is shown is made in `progress.rs` and `report.rs`.
#![forbid(unsafe_code)]

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Instant;

use clap::Parser;
use consort::prelude::*;
use consort::{data, device, nn};
use serde::Serialize;

mod model;
mod progress;
mod report;

use model::{Cnn, Mlp};
use progress::Progress;

/// Train a network on 1,797 real handwritten digits, which come with this program
#[derive(Parser)]
#[command(version)]
struct Args {
    /// Where to train: auto, cpu, cuda:0 or wgpu:0 [default: CONSORT_DEVICE if set, else auto]
    #[arg(long)]
    device: Option<String>,

    /// The network
    #[arg(long, value_enum, default_value = "cnn")]
    model: model::Kind,

    /// How often to go through the training images [default: 100 for mlp, 30 for cnn]
    #[arg(long, value_parser = positive)]
    epochs: Option<usize>,

    /// How many images make one step
    #[arg(long, default_value = "64", value_parser = positive)]
    batch_size: usize,

    /// Decides the split, the first weights and the order of the images: the same seed gives the same network
    #[arg(long, default_value = "0")]
    seed: u64,

    /// The folder for the trained network and the learning curve
    #[arg(long, default_value = "runs/digits")]
    out: PathBuf,

    /// End standard output with one line of JSON
    #[arg(long)]
    json: bool,
}

fn positive(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) => Err("must be at least 1".into()),
        Ok(n) => Ok(n),
        Err(error) => Err(error.to_string()),
    }
}

/// What is known after an epoch.
#[derive(Clone, Copy, Debug, Serialize)]
struct Epoch {
    /// Mean over the epoch's steps, while the weights change and dropout is on.
    train_loss: f64,
    test_loss: f64,
    /// The share of test images that are recognised.
    test_accuracy: f64,
}

/// The line of JSON.
#[derive(Serialize)]
struct Summary<'a> {
    device: &'a str,
    model: &'a str,
    parameters: usize,
    seed: u64,
    batch_size: usize,
    /// How many epochs were begun.
    epochs: usize,
    train_loss: f64,
    test_loss: f64,
    test_accuracy: f64,
    /// From the first step to the last evaluation.
    seconds: f64,
    /// Images trained on per second of training, evaluation left out.
    samples_per_second: f64,
    interrupted: bool,
    model_file: &'a Path,
    curve_file: &'a Path,
    history: &'a [Epoch],
}

type Digits = data::Subset<data::TensorDataset<(Tensor, Tensor)>>;

fn main() -> ExitCode {
    let args = Args::parse();
    match run(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Args) -> Result<()> {
    // What can fail fails before the work begins.
    let device = match &args.device {
        Some(name) => device::parse(name)?,
        None => device::default()?,
    };
    check_writable(&args.out)?;
    let stop = stop_on_interrupt()?;
    consort::seed(args.seed);
    match args.model {
        model::Kind::Mlp => train_and_report(Mlp::new(&device)?, &device, args, stop),
        model::Kind::Cnn => train_and_report(Cnn::new(&device)?, &device, args, stop),
    }
}

/// What a network has to be here: its parameters can be found, it can be applied, and it can be cloned.
trait Network: Module + Forward + Clone {}

impl<M: Module + Forward + Clone> Network for M {}

fn train_and_report(mut model: impl Network, device: &Device, args: &Args, stop: &AtomicBool) -> Result<()> {
    let digits = data::Digits::load(device)?;
    let labels = digits.labels.to_vec::<i64>()?;
    // A fifth of each digit's images is never trained on: it tells how well the network does on what it has not seen.
    let (train_set, test_set) = data::split_stratified(digits.into_dataset()?, &labels, 0.8, args.seed)?;
    let trained = train(&mut model, (&train_set, &test_set), device, args, stop)?;

    let result = evaluate(&model, &test_set)?;
    let last = trained.history.last().expect("invariant: there is an epoch");
    print!("{}", report::confusion(&result));
    print!("{}", report::pictures(&test_set, &result)?);
    let (model_file, curve_file) = (args.out.join("model.safetensors"), args.out.join("curve.svg"));
    nn::save(&model, &model_file)?;
    report::write(&curve_file, &report::curve(&trained.history)?)?;
    println!(
        "\n{} on {device}: {:.2} % of {} test images recognised, after {} epochs in {:.1} s{}",
        args.model.name(),
        100.0 * last.test_accuracy,
        test_set.indices().len(),
        trained.history.len(),
        trained.seconds,
        if trained.interrupted { " (interrupted)" } else { "" },
    );
    println!("The network is in {}, its learning curve in {}.", model_file.display(), curve_file.display());

    if args.json {
        let summary = Summary {
            device: device.label(),
            model: args.model.name(),
            parameters: model.n_parameters(),
            seed: args.seed,
            batch_size: args.batch_size,
            epochs: trained.history.len(),
            train_loss: last.train_loss,
            test_loss: last.test_loss,
            test_accuracy: last.test_accuracy,
            seconds: trained.seconds,
            samples_per_second: trained.samples_per_second,
            interrupted: trained.interrupted,
            model_file: &model_file,
            curve_file: &curve_file,
            history: &trained.history,
        };
        let line = serde_json::to_string(&summary).map_err(|error| Error::other("json", error.to_string()))?;
        println!("{line}");
    }
    Ok(())
}

/// How a training went.
struct Trained {
    history: Vec<Epoch>,
    seconds: f64,
    samples_per_second: f64,
    interrupted: bool,
}

/// The training loop, by hand.
fn train(
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
    let (steps, mut step) = (epochs * loader.len(), 0);

    let mut progress = Progress::new(epochs, train_set.indices().len());
    let (mut history, mut trained, mut train_seconds) = (Vec::new(), 0, 0.0);
    let start = Instant::now();
    while history.len() < epochs && !stop.load(Relaxed) {
        let begin = Instant::now();
        let mut sum = Tensor::zeros((), device)?;
        let mut seen = 0;
        for batch in loader.iter() {
            let (images, labels) = batch?;
            // Large steps first, ever smaller ones towards the end: half a period of a cosine.
            let progress_made = step as f64 / steps as f64;
            optimizer.set_learning_rate(LEARNING_RATE * 0.5 * (1.0 + (std::f64::consts::PI * progress_made).cos()));

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

const LEARNING_RATE: f64 = 3e-3;

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
struct Evaluation {
    loss: f64,
    labels: Vec<i64>,
    guesses: Vec<i64>,
}

impl Evaluation {
    /// The share of images that are recognised.
    fn accuracy(&self) -> f64 {
        let right = self.labels.iter().zip(&self.guesses).filter(|(label, guess)| label == guess).count();
        right as f64 / self.labels.len() as f64
    }
}

/// Outside `with_gradient` nothing is recorded and dropout does nothing.
fn evaluate(model: &impl Network, set: &Digits) -> Result<Evaluation> {
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

/// Makes the folder and tries whether files can be written there: better to know before than after the training.
fn check_writable(out: &Path) -> Result<()> {
    let refused = |error: std::io::Error| {
        let text = format!("the folder cannot be written to: {}: {error}; choose another with --out", out.display());
        Error::io("--out", text).with_source(error)
    };
    std::fs::create_dir_all(out).map_err(refused)?;
    let probe = out.join(format!(".probe-{}", std::process::id()));
    File::create(&probe).and_then(|_| std::fs::remove_file(&probe)).map_err(refused)
}

/// Becomes true with the first Ctrl-C: the step at hand is finished and what was trained is kept. A second one ends the
/// program at once.
fn stop_on_interrupt() -> Result<&'static AtomicBool> {
    static STOP: AtomicBool = AtomicBool::new(false);
    ctrlc::set_handler(|| {
        if STOP.swap(true, Relaxed) {
            std::process::exit(130);
        }
        eprintln!("\nstopping after this step; once more to stop at once and keep nothing");
    })
    .map_err(|error| Error::other("ctrl-c", error.to_string()))?;
    Ok(&STOP)
}
