//! Trains a network on a device that is wrong in one way, with the CPU judging each op, and names the culprit.
//!
//! `cargo run --release -p lockstep`, with `-- --help` for the faults to choose from. With a device of your own in place of
//! the saboteur this is how to find the kernel behind a training run that goes wrong.
#![forbid(unsafe_code)]

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use clap::Parser;
use clap::builder::PossibleValue;
use conformance::saboteur::{self, Fault};
use consort::device::lockstep::{self, Log};
use consort::prelude::*;
use consort::{data, device, nn};

/// Train on a device with a fault, each op judged by the CPU, and name the op that is wrong
///
/// The exit status is 0 if every op kept its contract, and 1 if one did not.
#[derive(Parser)]
#[command(version)]
struct Args {
    /// What is wrong with the device
    #[arg(long, value_name = "NAME", default_value = "off-by-ten-tolerances", value_parser = faults())]
    fault: String,

    /// Note what is wrong and go on, instead of stopping at the first wrong result
    #[arg(long)]
    record: bool,

    /// How many batches of 64 images to train on
    #[arg(long, default_value = "20")]
    steps: usize,

    /// The folder for the inputs of wrong results [default: target/lockstep if it exists, else one for temporary files]
    #[arg(long)]
    folder: Option<PathBuf>,
}

const NO_FAULT: &str = "none";

/// The faults by name, as the command line knows them.
fn faults() -> Vec<PossibleValue> {
    let none = PossibleValue::new(NO_FAULT).help("The device is right");
    let fault = |fault: &Fault| PossibleValue::new(fault.name()).help(fault.sentence());
    std::iter::once(none).chain(Fault::ALL.iter().map(fault)).collect()
}

/// Two dense layers on the 64 pixels, with dropout between.
#[derive(Module, Clone, Debug)]
struct Mlp {
    hidden: nn::Linear,
    dropout: nn::Dropout,
    output: nn::Linear,
}

impl Forward for Mlp {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let x = self.hidden.forward(&x.flatten(1..)?)?.relu()?;
        self.output.forward(&self.dropout.forward(&x)?)
    }
}

/// How far a training came.
#[derive(Default)]
struct Progress {
    step: usize,
    loss: f32,
}

fn main() -> ExitCode {
    let args = Args::parse();
    let candidate = match args.fault.parse::<Fault>() {
        Ok(fault) => saboteur::device(&device::cpu(), fault),
        Err(_) => device::cpu(),
    };
    let options = lockstep::Options { record: args.record, folder: args.folder };
    let (device, log) = lockstep::with(&device::cpu(), &candidate, options);
    println!("training on {device}");

    let (mut progress, start) = (Progress::default(), Instant::now());
    if let Err(error) = train(&device, &log, args.steps, &mut progress) {
        println!("stopped in step {}: {error}", progress.step + 1);
        return ExitCode::FAILURE;
    }
    let seconds = start.elapsed().as_secs_f64();
    println!("{} steps in {seconds:.2} s, last loss {:.4}\n\n{log}", progress.step, progress.loss);
    let mut culprits = log.ops();
    culprits.retain(|_, seen| seen.n_breaches > 0);
    if culprits.is_empty() {
        println!("every result was right");
        return ExitCode::SUCCESS;
    }
    println!("wrong: {}", culprits.into_keys().collect::<Vec<_>>().join(", "));
    ExitCode::FAILURE
}

fn train(device: &Device, log: &Log, steps: usize, progress: &mut Progress) -> Result<()> {
    consort::seed(0);
    let mut model = Mlp {
        hidden: nn::Linear::new(64, 64, device)?,
        dropout: nn::Dropout::new(0.2),
        output: nn::Linear::new(64, 10, device)?,
    };
    // So that a culprit is told with the parameter that it read.
    lockstep::name_parameters(log, &model);
    let mut optimizer = nn::optim::AdamW::new(3e-3).setup(&model)?;
    let loader = data::DataLoader::new(data::Digits::load(device)?.into_dataset()?).batch_size(64).shuffle(0);
    while progress.step < steps {
        for batch in loader.iter().take(steps - progress.step) {
            let (images, labels) = batch?;
            let (loss, gradients) = with_gradient(&model, |m| nn::loss::cross_entropy(&m.forward(&images)?, &labels))?;
            optimizer.update(&mut model, &gradients)?;
            progress.loss = loss.item::<f32>()?;
            progress.step += 1;
        }
    }
    Ok(())
}
