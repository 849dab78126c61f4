//! What a bug report needs to say about this build and this machine.

use std::fmt;

use serde::Serialize;
use tensor_core::{Device, Kind, MemoryStatus};

use super::{DEVICE_VARIABLE, devices};

/// This build and this machine; `Display` for people, `Serialize` for programs.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct VersionInfo {
    /// The version of consort.
    pub consort: &'static str,
    /// Threads that the CPU backend uses.
    pub cpu_threads: usize,
    /// The vector instructions that it uses.
    pub cpu_simd: &'static str,
    /// Each kind of device: what was found, or why nothing.
    pub kinds: Vec<KindReport>,
    /// Environment variables that matter and are set.
    pub environment: Vec<(&'static str, String)>,
}

/// One kind of device.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct KindReport {
    /// `cpu`, `cuda` or `wgpu`.
    pub kind: &'static str,
    /// The devices found.
    pub devices: Vec<DeviceReport>,
    /// Why there are none, and what to do.
    pub reason: Option<String>,
}

/// One device.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct DeviceReport {
    /// `cuda:0`.
    pub label: String,
    /// The product.
    pub name: String,
    /// Compute capability, adapter limits or instruction set.
    pub capability: String,
    /// Not an emulator or a software adapter.
    pub is_hardware: bool,
    /// Memory in all, where the system can tell.
    pub total_bytes: Option<usize>,
    /// Memory free, where the system can tell.
    pub free_bytes: Option<usize>,
}

impl DeviceReport {
    fn of(device: &Device) -> Self {
        let info = device.info();
        let memory = device.memory().unwrap_or_default();
        Self {
            label: info.label.clone(),
            name: info.name.clone(),
            capability: info.capability.clone(),
            is_hardware: info.is_hardware,
            total_bytes: memory.total_bytes,
            free_bytes: memory.free_bytes,
        }
    }
}

const VARIABLES: [&str; 6] = [
    DEVICE_VARIABLE,
    "CUDA_VISIBLE_DEVICES",
    "RAYON_NUM_THREADS",
    "WGPU_BACKEND",
    "VK_DRIVER_FILES",
    "VK_ICD_FILENAMES",
];

/// What this build and this machine offer.
pub fn version_info() -> VersionInfo {
    let kinds = [Kind::Cpu, Kind::Cuda, Kind::Wgpu].map(|kind| match devices(kind) {
        Ok(found) => {
            KindReport { kind: kind.name(), devices: found.iter().map(DeviceReport::of).collect(), reason: None }
        }
        Err(reason) => KindReport { kind: kind.name(), devices: Vec::new(), reason: Some(reason.to_string()) },
    });
    let set = |name: &'static str| std::env::var_os(name).map(|v| (name, v.to_string_lossy().into_owned()));
    VersionInfo {
        consort: env!("CARGO_PKG_VERSION"),
        cpu_threads: backend_cpu::threads::n_threads(),
        cpu_simd: backend_cpu::simd::level().name(),
        kinds: kinds.into(),
        environment: VARIABLES.into_iter().filter_map(set).collect(),
    }
}

impl fmt::Display for VersionInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "consort {}, {} threads, {}", self.consort, self.cpu_threads, self.cpu_simd)?;
        for report in &self.kinds {
            for device in &report.devices {
                let memory = MemoryStatus {
                    total_bytes: device.total_bytes,
                    free_bytes: device.free_bytes,
                    ..MemoryStatus::default()
                };
                writeln!(f, "{:<12} {}, {}; {}", device.label, device.name, device.capability, memory.available())?;
                if !device.is_hardware {
                    writeln!(f, "{:<12} not real hardware of its kind: chosen only by name", "")?;
                }
            }
            if let Some(reason) = &report.reason {
                writeln!(f, "{:<12} none: {reason}", report.kind)?;
            }
        }
        for (name, value) in &self.environment {
            writeln!(f, "{name}={value}")?;
        }
        write!(f, "chosen by default: {}", super::default().map_or_else(|e| e.to_string(), |d| d.to_string()))
    }
}
