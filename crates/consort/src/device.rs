//! Which devices there are, and which one to use.
//!
//! `cpu` is always there. GPU backends are Cargo features; [`probe`] says for each kind whether it can be used, and if not
//! why, and what to do about it. `auto` falls back, an explicit device fails with its reason.

use std::sync::Once;

pub use backend_cpu::test_device;
pub use tensor_core::{Device, MemoryStatus, TransferStats, Transfers, stats};
use tensor_core::{DeviceInfo, Error, Kind, Result};

mod absent;
#[cfg(not(feature = "cuda"))]
#[path = "device/cuda/disabled.rs"]
mod cuda_backend;
#[cfg(feature = "cuda")]
#[path = "device/cuda/enabled.rs"]
mod cuda_backend;
pub mod lockstep;
mod version;
#[cfg(not(feature = "wgpu"))]
#[path = "device/wgpu/disabled.rs"]
mod wgpu_backend;
#[cfg(feature = "wgpu")]
#[path = "device/wgpu/enabled.rs"]
mod wgpu_backend;

#[cfg(feature = "cuda")]
pub use cuda_backend::n_modules as cuda_modules;
#[cfg(feature = "emulator")]
pub use cuda_backend::{Emulated, emulated};
pub use lockstep::device as lockstep;
pub use version::{DeviceReport, KindReport, VersionInfo, version_info};
#[cfg(feature = "wgpu")]
pub use wgpu_backend::n_kernels as wgpu_kernels;

/// The environment variable that [`default`] reads.
pub const DEVICE_VARIABLE: &str = "CONSORT_DEVICE";

/// The processor.
pub fn cpu() -> Device {
    backend_cpu::device()
}

/// The NVIDIA GPU of that index.
///
/// # Errors
/// Why it cannot be used, and what to do; see [`probe`].
pub fn cuda(index: usize) -> Result<Device> {
    pick(Kind::Cuda, index)
}

/// The GPU of that index among those that wgpu finds, hardware first.
///
/// # Errors
/// Why it cannot be used, and what to do; see [`probe`].
pub fn wgpu(index: usize) -> Result<Device> {
    pick(Kind::Wgpu, index)
}

/// The devices of a kind, usable here and now.
///
/// # Errors
/// The reason why there are none, and what to do about it. Never a panic.
pub fn probe(kind: Kind) -> Result<Vec<DeviceInfo>> {
    Ok(devices(kind)?.iter().map(|d| d.info().clone()).collect())
}

/// Whether the machine has a usable device of that kind; an emulated or software one does not count.
pub fn functional(kind: Kind) -> bool {
    probe(kind).is_ok_and(|found| found.iter().any(|info| info.is_hardware))
}

/// Every device that can be used: the GPUs, then the CPU.
pub fn all() -> Vec<Device> {
    [Kind::Cuda, Kind::Wgpu, Kind::Cpu].into_iter().flat_map(|kind| devices(kind).unwrap_or_default()).collect()
}

/// The device that `CONSORT_DEVICE` names, else [`best`].
///
/// # Errors
/// If the variable names a device that is unknown or cannot be used.
pub fn default() -> Result<Device> {
    match std::env::var(DEVICE_VARIABLE) {
        Ok(name) if !name.trim().is_empty() => parse(&name).map_err(|e| e.at(DEVICE_VARIABLE)),
        Ok(_) | Err(std::env::VarError::NotPresent) => Ok(best()),
        Err(e) => Err(Error::value(DEVICE_VARIABLE, "is not valid Unicode; unset it or name a device").with_source(e)),
    }
}

/// The best device there is: CUDA, then a wgpu adapter that is real hardware, then the CPU. When it falls back to the
/// CPU it logs why, once.
pub fn best() -> Device {
    if let Some(gpu) = gpus().into_iter().next() {
        return gpu;
    }
    static SAID: Once = Once::new();
    SAID.call_once(|| {
        for kind in [Kind::Cuda, Kind::Wgpu] {
            if let Err(reason) = probe(kind) {
                tracing::info!("no {kind} device, falling back to cpu: {reason}");
            }
        }
    });
    cpu()
}

/// The GPU of that index, or the CPU if there are not more than `index` GPUs.
pub fn try_gpu(index: usize) -> Device {
    gpus().into_iter().nth(index).unwrap_or_else(cpu)
}

/// All GPUs, or a list holding the CPU if there are none.
pub fn try_all_gpus() -> Vec<Device> {
    let gpus = gpus();
    if gpus.is_empty() { vec![cpu()] } else { gpus }
}

/// The device of a name; no index means 0:
/// - `auto`, `cpu`, `cuda:0`, `wgpu:1`;
/// - `cuda-tf32:0`, the GPU `cuda:0` with f32 matrix products and convolutions on tensor cores, their factors rounded to 10 bits
///   after the leading one; from sm_80 on;
/// - `cuda-emulated:0` and `cuda-tf32-emulated:0`, the same kernels on the processor;
/// - `wgpu-modest:0`, the adapter `wgpu:0` with no more than every adapter has.
///
/// Each is a device of its own: tensors move between them by [`Tensor::to`](crate::Tensor::to).
///
/// # Errors
/// If the name is unknown, or the device cannot be used: the reason, and what to do. Only `auto` falls back.
pub fn parse(name: &str) -> Result<Device> {
    let name = name.trim();
    let (kind, index) = name.split_once(':').unwrap_or((name, "0"));
    let unknown = || {
        Error::device(
            "device",
            format!("name is unknown: {name:?}; use auto, cpu, cuda:N, cuda-emulated:N or wgpu:N with N from 0"),
        )
    };
    let index: usize = index.parse().map_err(|_| unknown())?;
    match kind {
        "auto" if !name.contains(':') => Ok(best()),
        "cpu" => pick(Kind::Cpu, index),
        "cuda" => cuda(index),
        "cuda-tf32" => of_index("cuda-tf32", cuda_backend::tf32()?, index),
        "cuda-emulated" | "cuda-tf32-emulated" => cuda_backend::emulator(index, kind == "cuda-tf32-emulated"),
        "wgpu" => wgpu(index),
        "wgpu-modest" => of_index("wgpu-modest", wgpu_backend::modest()?, index),
        _ => Err(unknown()),
    }
}

/// The usable devices of a kind, or the reason why there are none.
fn devices(kind: Kind) -> Result<Vec<Device>> {
    match kind {
        Kind::Cpu => Ok(vec![cpu()]),
        Kind::Cuda => cuda_backend::devices(),
        Kind::Wgpu => wgpu_backend::devices(),
        Kind::Other => Err(absent::reason(kind)),
    }
}

/// Real GPUs, CUDA first, each physical one once.
fn gpus() -> Vec<Device> {
    let mut found: Vec<Device> = Vec::new();
    for kind in [Kind::Cuda, Kind::Wgpu] {
        for device in devices(kind).unwrap_or_default() {
            let seen = found.iter().any(|d| d.info().name == device.info().name && d.info().kind != kind);
            if device.info().is_hardware && !seen {
                found.push(device);
            }
        }
    }
    found
}

fn pick(kind: Kind, index: usize) -> Result<Device> {
    of_index(kind.name(), devices(kind)?, index)
}

fn of_index(kind: &'static str, found: Vec<Device>, index: usize) -> Result<Device> {
    found.get(index).cloned().ok_or_else(|| {
        let last = if found.len() > 1 { format!(" to {kind}:{}", found.len() - 1) } else { String::new() };
        Error::device(
            kind,
            format!("there is no device of that index: index {index}, found {}; use {kind}:0{last}", found.len()),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_past_the_last_device_says_which_there_are() {
        let said =
            |found: usize| of_index("cuda", vec![cpu(); found], 7).map_or_else(|e| e.to_string(), |d| d.to_string());
        assert_eq!(said(1), "cuda: there is no device of that index: index 7, found 1; use cuda:0");
        assert_eq!(said(4), "cuda: there is no device of that index: index 7, found 4; use cuda:0 to cuda:3");
        assert_eq!(said(8), "cpu");
    }
}
