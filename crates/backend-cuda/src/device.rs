//! The devices there are.

#[cfg(feature = "emulator")]
use std::path::PathBuf;
use std::sync::Arc;

use tensor_core::expr::Accuracy;
use tensor_core::{Device, DeviceInfo, Kind, Result};

use crate::backend::CudaBackend;
use crate::driver::Driver;
use crate::driver::nvidia;
#[cfg(feature = "emulator")]
use crate::driver::{Properties, emulated::Emulator};
use crate::kernels::Context;
use crate::memory::Pool;
use crate::module::Modules;
use crate::status::Status;

/// The GPUs that the driver has.
///
/// # Errors
/// Why there are none: no driver library, one that is too old or lacks a function, no device. Never a panic.
pub fn devices() -> Result<Vec<Device>> {
    let drivers = nvidia::open_all()?;
    Ok(drivers.into_iter().enumerate().map(|(i, driver)| device(Arc::new(driver), "cuda", i, true)).collect())
}

/// How an emulated device behaves.
#[cfg(feature = "emulator")]
#[derive(Clone, Debug)]
pub struct Emulated {
    /// Its number: `cuda-emulated:0`.
    pub index: usize,
    /// Compute capability: (8, 0) is sm_80.
    pub capability: (u32, u32),
    /// Memory in bytes.
    pub memory_bytes: u64,
    /// Whether freed memory is handed out again. Without it the emulator sees every access out of bounds.
    pub pooling: bool,
    /// A folder that takes the text of every kernel, for an assembler to look at.
    pub texts: Option<PathBuf>,
    /// Checks, order of blocks, approximations.
    pub options: ptx_emulator::Options,
}

#[cfg(feature = "emulator")]
impl Default for Emulated {
    fn default() -> Self {
        let options = ptx_emulator::Options::default();
        Self { index: 0, capability: (8, 0), memory_bytes: options.memory_bytes, pooling: false, texts: None, options }
    }
}

/// A device that does not exist: the same kernels, run on the processor and checked.
#[cfg(feature = "emulator")]
pub fn emulated(settings: &Emulated) -> Device {
    let properties = Properties {
        name: "PTX emulator".into(),
        capability: settings.capability,
        n_multiprocessors: 4,
        max_shared_bytes: settings.options.shared_bytes,
        total_bytes: settings.memory_bytes,
        is_hardware: false,
    };
    let label = format!("cuda-emulated:{}", settings.index);
    let options = ptx_emulator::Options { memory_bytes: settings.memory_bytes, ..settings.options };
    device(
        Arc::new(Emulator::new(&label, properties, options, settings.texts.clone())),
        "cuda-emulated",
        settings.index,
        settings.pooling,
    )
}

fn device(driver: Arc<dyn Driver>, kind: &str, index: usize, is_pooling: bool) -> Device {
    let properties = driver.properties().clone();
    let (major, minor) = properties.capability;
    let info = DeviceInfo {
        kind: Kind::Cuda,
        index,
        label: format!("{kind}:{index}"),
        name: properties.name,
        capability: format!("sm_{major}{minor}, {} multiprocessors", properties.n_multiprocessors),
        is_hardware: properties.is_hardware,
        accuracy: Accuracy::default(),
    };
    let pool = Pool::new(&info.label, driver.clone(), is_pooling);
    let modules = Modules::new(driver.clone());
    Device::new(Arc::new(CudaBackend { info, cx: Context { driver, pool, modules, status: Status::new() } }))
}
