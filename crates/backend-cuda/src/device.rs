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
use crate::kernels::matmul::Choice;
use crate::memory::Pool;
use crate::module::Modules;
use crate::staging::Staging;
use crate::status::Status;

/// What the labels of devices begin with.
const HARDWARE: &str = "cuda";
const EMULATED: &str = "cuda-emulated";

/// The GPUs that the driver has.
///
/// # Errors
/// Why there are none: no driver library, one that is too old or lacks a function, no device. Never a panic.
pub fn devices() -> Result<Vec<Device>> {
    let drivers = nvidia::open_all()?;
    Ok(drivers.into_iter().enumerate().map(|(i, driver)| device(Arc::new(driver), HARDWARE, i, true, None)).collect())
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
        Arc::new(Emulator::new(&format!("{EMULATED}:{}", self.index), properties, options, self.texts.clone()))
    }
}

/// A device that does not exist: the same kernels, run on the processor and checked.
#[cfg(feature = "emulator")]
pub fn emulated(settings: &Emulated) -> Device {
    device(settings.driver(), EMULATED, settings.index, settings.pooling, settings.matmul)
}

/// The device on a driver of the caller's: one that counts calls, or injects faults.
pub fn on_driver(driver: Arc<dyn Driver>, index: usize, pooling: bool) -> Device {
    let kind = if driver.properties().is_hardware { HARDWARE } else { EMULATED };
    device(driver, kind, index, pooling, None)
}

fn device(driver: Arc<dyn Driver>, kind: &str, index: usize, is_pooling: bool, matmul: Option<Choice>) -> Device {
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
    let (modules, staging) = (Modules::new(driver.clone()), Staging::new(driver.clone()));
    let cx = Context { driver, pool, staging, modules, status: Status::new(), matmul };
    Device::new(Arc::new(CudaBackend { info, cx }))
}
