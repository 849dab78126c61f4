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

/// The adapters that Vulkan, Metal and DX12 have, hardware first: discrete, integrated, virtual, then software. Opened once.
///
/// # Errors
/// Why there are none, and what to do. Never a panic.
pub fn devices() -> Result<Vec<Device>> {
    static FOUND: LazyLock<Result<Vec<Device>, String>> = LazyLock::new(open);
    FOUND.clone().map_err(|reason| Error::device("wgpu", reason))
}

fn open() -> Result<Vec<Device>, String> {
    let backends = wgpu::Backends::VULKAN | wgpu::Backends::METAL | wgpu::Backends::DX12;
    let descriptor = wgpu::InstanceDescriptor {
        backends,
        flags: wgpu::InstanceFlags::empty(),
        ..wgpu::InstanceDescriptor::new_without_display_handle()
    };
    let instance = wgpu::Instance::new(descriptor);
    let mut adapters = now(instance.enumerate_adapters(backends));
    adapters.sort_by_key(|adapter| match adapter.get_info().device_type {
        wgpu::DeviceType::DiscreteGpu => 0,
        wgpu::DeviceType::IntegratedGpu => 1,
        wgpu::DeviceType::VirtualGpu => 2,
        wgpu::DeviceType::Other => 3,
        wgpu::DeviceType::Cpu => 4,
    });
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
        match device(adapter, devices.len()) {
            Ok(device) => devices.push(device),
            Err(error) => refused = error.to_string(),
        }
    }
    if devices.is_empty() { Err(refused) } else { Ok(devices) }
}

fn device(adapter: &wgpu::Adapter, index: usize) -> Result<Device> {
    let label = format!("wgpu:{index}");
    let gpu = Arc::new(Gpu::open(adapter, &label)?);
    let found = adapter.get_info();
    let has = |feature, name: &str| if gpu.features.contains(feature) { format!(", {name}") } else { String::new() };
    let info = DeviceInfo {
        kind: Kind::Wgpu,
        index,
        label,
        name: found.name.clone(),
        capability: format!(
            "{:?}, {} {}{}{}",
            found.backend,
            found.driver,
            found.driver_info,
            has(wgpu::Features::SHADER_INT64, "i64"),
            has(wgpu::Features::SHADER_F64, "f64")
        ),
        is_hardware: found.device_type != wgpu::DeviceType::Cpu,
        accuracy: Accuracy { loose: true, flushes_subnormals: true },
    };
    let (pool, batch, pipelines) = (Pool::new(gpu.clone()), Batch::new(gpu.clone()), Pipelines::new(gpu.clone()));
    Ok(Device::new(Arc::new(WgpuBackend { info, cx: Context { gpu, pool, batch, pipelines } })))
}
