//! CUDA devices, opened once.

use std::sync::OnceLock;

pub use backend_cuda::n_modules;
#[cfg(feature = "emulator")]
pub use backend_cuda::{Emulated, emulated};
use tensor_core::{Device, Result};

/// The GPUs, or the reason why there are none.
pub(in crate::device) fn devices() -> Result<Vec<Device>> {
    static FOUND: OnceLock<Vec<Device>> = OnceLock::new();
    match FOUND.get() {
        Some(found) => Ok(found.clone()),
        None => backend_cuda::devices().map(|found| FOUND.get_or_init(|| found).clone()),
    }
}

/// The same with f32 products in TF32.
pub(in crate::device) fn tf32() -> Result<Vec<Device>> {
    static FOUND: OnceLock<Vec<Device>> = OnceLock::new();
    match FOUND.get() {
        Some(found) => Ok(found.clone()),
        None => backend_cuda::tf32_devices().map(|found| FOUND.get_or_init(|| found).clone()),
    }
}

/// The emulated GPU of an index, with default settings but for TF32.
#[cfg(feature = "emulator")]
pub(in crate::device) fn emulator(index: usize, tf32: bool) -> Result<Device> {
    use std::collections::BTreeMap;
    use std::sync::{Mutex, PoisonError};

    static OPENED: Mutex<BTreeMap<(usize, bool), Device>> = Mutex::new(BTreeMap::new());
    let mut opened = OPENED.lock().unwrap_or_else(PoisonError::into_inner);
    let open = || emulated(&Emulated { index, tf32, ..Emulated::default() });
    Ok(opened.entry((index, tf32)).or_insert_with(open).clone())
}

/// Why there is no emulated GPU.
#[cfg(not(feature = "emulator"))]
pub(in crate::device) fn emulator(_: usize, _: bool) -> Result<Device> {
    Err(tensor_core::Error::unsupported(
        "cuda-emulated",
        "emulator not compiled in: features of this build have no emulator; use --features emulator, or cpu",
    ))
}
