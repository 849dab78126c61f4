//! What layers, initialisers, losses, optimizers and files promise besides their numbers: shapes, errors, randomness, identity.

mod descriptions;
mod errors;
mod init;
mod losses;
mod modes;
mod optim;
mod optimizer_state;
mod save;

use tensor_core::{DType, Device, Result, Tensor};

fn device() -> Device {
    backend_cpu::device()
}

/// The elements as f64.
fn values(x: &Tensor) -> Result<Vec<f64>> {
    Ok(x.to_host()?.to_f64())
}

/// An f32 tensor of one axis.
fn vector(values: &[f32]) -> Result<Tensor> {
    Tensor::from_slice(values, values.len(), &device())
}

/// The same numbers each time, whatever other tests draw meanwhile.
fn seeded<R>(seed: u64, f: impl FnOnce() -> R) -> R {
    tensor_core::random::with_stream(tensor_core::random::Stream::new(seed), f)
}

/// Panics unless the error reads so.
#[track_caller]
fn fails<T>(result: Result<T>, text: &str) {
    match result {
        Ok(_) => panic!("no error, wanted: {text}"),
        Err(error) => assert_eq!(error.to_string(), text),
    }
}

const FLOATS: [DType; 4] = DType::FLOATS;
