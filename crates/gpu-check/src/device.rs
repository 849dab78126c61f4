//! What is checked: a GPU, or the emulator in its place.

use std::sync::Arc;

use backend_cuda::driver::{self, Driver};
use backend_cuda::{Emulated, on_driver};
use ptx_emulator::{MmaMode, Options};
use tensor_core::{Device, Error, Result};

/// A device, and the driver below it.
pub(crate) struct Subject {
    pub(crate) driver: Arc<dyn Driver>,
    pub(crate) device: Device,
    pub(crate) is_emulated: bool,
}

impl Subject {
    /// The GPU of an index.
    ///
    /// # Errors
    /// Why there is none: no driver, no device, fewer devices.
    pub(crate) fn open(index: usize) -> Result<Self> {
        let gpus = driver::gpus()?;
        let n = gpus.len();
        let driver = gpus.into_iter().nth(index).ok_or_else(|| {
            Error::device("cuda", format!("there is no device of that index: index {index}, found {n}; use --device 0"))
        })?;
        Ok(Self { device: on_driver(driver.clone(), index, true), driver, is_emulated: false })
    }

    /// A device that does what hardware may do and does not promise: it differs from the emulator that it is compared with.
    pub(crate) fn emulated() -> Result<Self> {
        let settings = Emulated { capability: (9, 0), memory_bytes: 8 << 20, ..Emulated::adverse(0, 7) };
        let driver = settings.driver();
        Ok(Self { device: on_driver(driver.clone(), 0, true), driver, is_emulated: true })
    }

    /// A size for a GPU, or the one that the emulator can do.
    pub(crate) fn size<T>(&self, real: T, emulated: T) -> T {
        if self.is_emulated { emulated } else { real }
    }

    /// The emulator that results are compared with: exact, and with matrix units as the device has them.
    pub(crate) fn reference(&self) -> Arc<dyn Driver> {
        let capability = self.driver.properties().capability;
        let mma = if capability >= (9, 0) { MmaMode::Hopper } else { MmaMode::Ieee };
        Emulated { capability, options: Options { mma, ..Options::default() }, ..Emulated::default() }.driver()
    }
}
