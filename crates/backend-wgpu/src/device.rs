//! The devices there are.

use std::sync::{Arc, LazyLock};

use tensor_core::expr::Accuracy;
use tensor_core::{Device, DeviceInfo, Error, Kind, Result};

use crate::backend::WgpuBackend;
use crate::batch::Batch;
use crate::gpu::{Gpu, now};
use crate::kernels::Context;
use crate::memory::Pool;
use crate::pipeline::Pipelines;
use crate::status::Status;

/// The adapters that Vulkan, Metal and DX12 have, hardware first: discrete, integrated, virtual, then software. A GPU that
/// several interfaces show counts once; the environment variable `WGPU_BACKEND` leaves some interfaces out (`vulkan`, `dx12`).
/// Opened once.
///
/// # Errors
/// Why there are none, and what to do. Never a panic.
pub fn devices() -> Result<Vec<Device>> {
    static FOUND: LazyLock<Result<Vec<Device>, String>> = LazyLock::new(|| open(false));
    FOUND.clone().map_err(|reason| Error::device("wgpu", reason))
}

/// The same adapters, called `wgpu-modest:0` and so on, with no more than every adapter has: neither 64-bit types nor limits
/// beyond WebGPU's own. What runs there runs anywhere.
///
/// # Errors
/// As [`devices`].
pub fn modest() -> Result<Vec<Device>> {
    static FOUND: LazyLock<Result<Vec<Device>, String>> = LazyLock::new(|| open(true));
    FOUND.clone().map_err(|reason| Error::device("wgpu-modest", reason))
}

fn open(is_modest: bool) -> Result<Vec<Device>, String> {
    let all = wgpu::Backends::VULKAN | wgpu::Backends::METAL | wgpu::Backends::DX12;
    let asked = wgpu::Backends::from_env();
    let mut adapters = adapters(asked.unwrap_or(all) & all);
    adapters.sort_by_key(|adapter| match adapter.get_info().device_type {
        wgpu::DeviceType::DiscreteGpu => 0,
        wgpu::DeviceType::IntegratedGpu => 1,
        wgpu::DeviceType::VirtualGpu => 2,
        wgpu::DeviceType::Other => 3,
        wgpu::DeviceType::Cpu => 4,
    });
    let mut seen: Vec<(wgpu::Backend, u32, u32)> = Vec::new();
    adapters.retain(|adapter| {
        let wgpu::AdapterInfo { backend, vendor, device, .. } = adapter.get_info();
        let is_new = !seen.iter().any(|&(b, v, d)| b != backend && (v, d) == (vendor, device));
        seen.push((backend, vendor, device));
        is_new
    });
    if adapters.is_empty() && asked.is_some() {
        return Err(
            "no adapter was found through what WGPU_BACKEND names; unset it, or name vulkan, metal or dx12".into()
        );
    }
    if adapters.is_empty() {
        return Err(
            "no adapter was found; install a Vulkan driver and its loader (libvulkan1; mesa-vulkan-drivers has one \
                    for any processor), and check that this user may open /dev/dri/render*"
                .into(),
        );
    }
    let mut refused = String::new();
    let mut devices = Vec::new();
    for adapter in &adapters {
        match device(adapter, devices.len(), is_modest) {
            Ok(device) => devices.push(device),
            Err(error) => refused = error.to_string(),
        }
    }
    if devices.is_empty() { Err(refused) } else { Ok(devices) }
}

/// The adapters of these interfaces; the one that does nothing only where it is asked for.
pub(crate) fn adapters(backends: wgpu::Backends) -> Vec<wgpu::Adapter> {
    let mut descriptor = wgpu::InstanceDescriptor {
        backends,
        flags: wgpu::InstanceFlags::empty(),
        ..wgpu::InstanceDescriptor::new_without_display_handle()
    };
    descriptor.backend_options.noop.enable = backends.contains(wgpu::Backends::NOOP);
    now(wgpu::Instance::new(descriptor).enumerate_adapters(backends))
}

pub(crate) fn device(adapter: &wgpu::Adapter, index: usize, is_modest: bool) -> Result<Device> {
    Ok(Device::new(Arc::new(backend(adapter, index, is_modest)?)))
}

pub(crate) fn backend(adapter: &wgpu::Adapter, index: usize, is_modest: bool) -> Result<WgpuBackend> {
    let label = format!("{}:{index}", if is_modest { "wgpu-modest" } else { "wgpu" });
    let gpu = Arc::new(Gpu::open(adapter, &label, is_modest)?);
    let found = adapter.get_info();
    let has = |feature, name: &str| if gpu.features.contains(feature) { format!(", {name}") } else { String::new() };
    let info = DeviceInfo {
        kind: Kind::Wgpu,
        index,
        label,
        name: found.name.clone(),
        capability: format!(
            "{:?}, {} {}{}{}{}{}",
            found.backend,
            found.driver,
            found.driver_info,
            has(wgpu::Features::SHADER_INT64, "i64"),
            has(wgpu::Features::SHADER_F64, "f64"),
            has(wgpu::Features::SUBGROUP, "subgroups"),
            if gpu.limits.max_storage_buffers_per_shader_stage >= 16 { ", 16 bindings" } else { "" }
        ),
        is_hardware: found.device_type != wgpu::DeviceType::Cpu,
        accuracy: Accuracy { loose: true, flushes_subnormals: true, tf32: false },
    };
    let status = Status::new(&gpu);
    let (pool, batch, pipelines) = (Pool::new(gpu.clone()), Batch::new(gpu.clone()), Pipelines::new(gpu.clone()));
    Ok(WgpuBackend { info, cx: Context { gpu, pool, batch, pipelines, status } })
}
