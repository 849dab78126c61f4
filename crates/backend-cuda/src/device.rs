//! The devices there are.

#[cfg(feature = "emulator")]
use std::path::PathBuf;
use std::sync::Arc;

use tensor_core::expr::Accuracy;
use tensor_core::{Device, DeviceInfo, Error, Kind, Result};

use crate::backend::CudaBackend;
use crate::driver::Driver;
use crate::driver::nvidia;
#[cfg(feature = "emulator")]
use crate::driver::{Properties, emulated::Emulator};
use crate::kernels::Context;
use crate::kernels::counter::Counter;
use crate::kernels::matmul::{Choice, TENSOR_CORES};
use crate::memory::Pool;
use crate::module::Modules;
use crate::staging::Staging;
use crate::status::Status;

/// What the labels of devices begin with.
const HARDWARE: [&str; 2] = ["cuda", "cuda-tf32"];
const EMULATED: [&str; 2] = ["cuda-emulated", "cuda-tf32-emulated"];

/// The GPUs that the driver has.
///
/// # Errors
/// Why there are none: no driver library, one that is too old or lacks a function, no device. Never a panic.
pub fn devices() -> Result<Vec<Device>> {
    let drivers = nvidia::open_all()?.into_iter().enumerate();
    Ok(drivers.map(|(i, driver)| device(Arc::new(driver), i, Settings::default())).collect())
}

/// The same GPUs, called `cuda-tf32:0` and so on, with f32 matrix products and convolutions on tensor cores: every factor is
/// first rounded to TF32, which keeps 10 bits after the leading one. Streams and memory are their own.
///
/// # Errors
/// As [`devices`]; and if one of them has no such tensor cores (before sm_80).
pub fn tf32_devices() -> Result<Vec<Device>> {
    let drivers = nvidia::open_all()?.into_iter().enumerate();
    drivers
        .map(|(i, driver)| {
            let (major, minor) = driver.properties().capability;
            if (major, minor) >= TENSOR_CORES {
                return Ok(tf32_on_driver(Arc::new(driver), i, true));
            }
            let text = format!("has no tensor cores for TF32: device sm_{major}{minor}, least sm_80; use cuda:{i}");
            Err(Error::device(format!("{}:{i}", HARDWARE[1]), text))
        })
        .collect()
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
    /// How matrix products and convolutions are made; by shape, dtype and layout if not given.
    pub matmul: Option<Choice>,
    /// Whether factors of f32 products may be rounded to TF32: `cuda-tf32-emulated:0`. Without effect before sm_80.
    pub tf32: bool,
    /// A folder that takes the text of every kernel, for an assembler to look at.
    pub texts: Option<PathBuf>,
    /// Checks, order of blocks, approximations.
    pub options: ptx_emulator::Options,
}

#[cfg(feature = "emulator")]
impl Default for Emulated {
    fn default() -> Self {
        let options = ptx_emulator::Options::default();
        Self {
            index: 0,
            capability: (8, 0),
            memory_bytes: options.memory_bytes,
            pooling: false,
            matmul: None,
            tf32: false,
            texts: None,
            options,
        }
    }
}

#[cfg(feature = "emulator")]
impl Emulated {
    /// A device that does what hardware may do and does not promise: memory that is handed out again holds nothing, blocks
    /// and warps run in an order drawn from the seed, approximate instructions are off by what they may be, and matrix
    /// units add up as Hopper's do.
    pub fn adverse(index: usize, seed: u64) -> Self {
        use ptx_emulator::{Approximation, MmaMode, Options, Order};
        let options = Options {
            order: Order::Seeded(seed),
            approximation: Approximation::Perturbed(seed),
            mma: MmaMode::Hopper,
            ..Options::default()
        };
        Self { index, pooling: true, options, ..Self::default() }
    }

    /// The emulator behind the seam, without a backend on it.
    pub fn driver(&self) -> Arc<dyn Driver> {
        let properties = Properties {
            name: "PTX emulator".into(),
            capability: self.capability,
            n_multiprocessors: 4,
            max_shared_bytes: self.options.shared_bytes,
            total_bytes: self.memory_bytes,
            is_hardware: false,
        };
        let options = ptx_emulator::Options { memory_bytes: self.memory_bytes, ..self.options };
        let label = format!("{}:{}", EMULATED[usize::from(self.tf32)], self.index);
        Arc::new(Emulator::new(&label, properties, options, self.texts.clone()))
    }
}

/// A device that does not exist: the same kernels, run on the processor and checked.
#[cfg(feature = "emulator")]
pub fn emulated(settings: &Emulated) -> Device {
    let Emulated { index, pooling, matmul, tf32, .. } = *settings;
    device(settings.driver(), index, Settings { pooling, matmul, tf32 })
}

/// The device on a driver of the caller's: one that counts calls, or injects faults.
pub fn on_driver(driver: Arc<dyn Driver>, index: usize, pooling: bool) -> Device {
    device(driver, index, Settings { pooling, ..Settings::default() })
}

/// The same with f32 products in TF32, which have no effect before sm_80.
pub fn tf32_on_driver(driver: Arc<dyn Driver>, index: usize, pooling: bool) -> Device {
    device(driver, index, Settings { pooling, tf32: true, ..Settings::default() })
}

/// What devices on one driver may differ in.
struct Settings {
    pooling: bool,
    matmul: Option<Choice>,
    tf32: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self { pooling: true, matmul: None, tf32: false }
    }
}

fn device(driver: Arc<dyn Driver>, index: usize, settings: Settings) -> Device {
    let properties = driver.properties().clone();
    let (major, minor) = properties.capability;
    let kind = if properties.is_hardware { HARDWARE } else { EMULATED }[usize::from(settings.tf32)];
    let tf32 = settings.tf32 && properties.capability >= TENSOR_CORES;
    let info = DeviceInfo {
        kind: Kind::Cuda,
        index,
        label: format!("{kind}:{index}"),
        name: properties.name,
        capability: format!("sm_{major}{minor}, {} multiprocessors", properties.n_multiprocessors),
        is_hardware: properties.is_hardware,
        accuracy: Accuracy { tf32, ..Accuracy::default() },
    };
    let pool = Pool::new(&info.label, driver.clone(), settings.pooling);
    let (modules, staging) = (Modules::new(driver.clone()), Staging::new(driver.clone()));
    let (status, counter) = (Status::new(), Counter::default());
    let cx = Context { driver, pool, staging, modules, status, counter, matmul: settings.matmul, tf32 };
    Device::new(Arc::new(CudaBackend { info, cx }))
}
