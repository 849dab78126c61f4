//! Trains a network on real handwritten digits, and shows what it learnt.
//!
//! `cargo run --release -p digits`, with `-- --help` for what can be chosen. The networks are in `model.rs`, the training
//! loop is in `train.rs`, and what is shown is made in `progress.rs` and `report.rs`.
#![forbid(unsafe_code)]

use std::fs::File;
use std::io::{ErrorKind, Write, stderr, stdout};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use clap::Parser;
use consort::prelude::*;
use consort::{data, device, nn};
use serde::Serialize;

mod model;
mod progress;
mod report;
mod train;

use model::{Cnn, Mlp};
use train::{Epoch, Network, evaluate, train};

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

fn main() -> ExitCode {
    let args = Args::parse();
    match run(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(stderr(), "error: {error}");
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

fn train_and_report(mut model: impl Network, device: &Device, args: &Args, stop: &AtomicBool) -> Result<()> {
    let digits = data::Digits::load(device)?;
    let labels = digits.labels.to_vec::<i64>()?;
    // A fifth of each digit's images is never trained on: it tells how well the network does on what it has not seen.
    let (train_set, test_set) = data::split_stratified(digits.into_dataset()?, &labels, 0.8, args.seed)?;
    let trained = train(&mut model, (&train_set, &test_set), device, args, stop)?;

    let (model_file, curve_file) = (args.out.join("model.safetensors"), args.out.join("curve.svg"));
    nn::save(&model, &model_file)?;
    report::write(&curve_file, &report::curve(&trained.history)?)?;

    let result = evaluate(&model, &test_set)?;
    let last = trained.history.last().expect("invariant: there is an epoch");
    show(&report::confusion(&result))?;
    show(&report::pictures(&test_set, &result)?)?;
    show(&format!(
        "\n{} on {device}: {:.2} % of {} test images recognised, after {} epochs in {:.1} s{}\n",
        args.model.name(),
        100.0 * last.test_accuracy,
        test_set.indices().len(),
        trained.history.len(),
        trained.seconds,
        if trained.interrupted { " (interrupted)" } else { "" },
    ))?;
    show(&format!("The network is in {}, its learning curve in {}.\n", model_file.display(), curve_file.display()))?;

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
        show(&format!("{line}\n"))?;
    }
    Ok(())
}

/// Writes to standard output. That nobody reads on (`digits | head`) is no error: the files are what counts.
fn show(text: &str) -> Result<()> {
    let mut out = stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Error::io("stdout", format!("cannot be written to: {error}")).with_source(error))
        }
        _ => Ok(()),
    }
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
        let _ = writeln!(stderr(), "\nstopping after this step; once more to stop at once and keep nothing");
    })
    .map_err(|error| Error::other("ctrl-c", error.to_string()))?;
    Ok(&STOP)
}
