//! What stands in for CUDA in a build without it.

use tensor_core::{Device, Error, Kind, Result};

pub(in crate::device) fn devices() -> Result<Vec<Device>> {
    Err(super::absent::reason(Kind::Cuda))
}

/// As [`devices`].
pub(in crate::device) fn tf32() -> Result<Vec<Device>> {
    devices()
}

pub(in crate::device) fn emulator(_: usize, _: bool) -> Result<Device> {
    Err(Error::unsupported(
        "cuda-emulated",
        "emulator not compiled in: features of this build have no emulator; use --features emulator, or cpu",
    ))
}
