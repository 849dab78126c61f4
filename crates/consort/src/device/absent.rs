//! What the device functions answer for backends that this build does not contain.

use tensor_core::{Error, Kind};

/// Why there is no device of that kind.
pub(super) fn reason(kind: Kind) -> Error {
    Error::unsupported(
        kind.name(),
        match kind {
            Kind::Cuda => "backend not compiled in: this version of consort has no CUDA backend yet; use cpu",
            Kind::Wgpu => "backend not compiled in: this version of consort has no wgpu backend yet; use cpu",
            Kind::Cpu | Kind::Other => "backend not compiled in: a device from outside is passed as a value; use cpu",
        },
    )
}

/// Why there is no emulated CUDA device.
pub(super) fn emulator() -> Error {
    Error::unsupported(
        "cuda-emulated",
        "emulator not compiled in: this version of consort has no CUDA backend yet; use cpu",
    )
}
