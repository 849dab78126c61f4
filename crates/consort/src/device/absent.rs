//! What the device functions answer for backends that this build does not contain.

use tensor_core::{Error, Kind};

/// Why there is no device of that kind.
pub(super) fn reason(kind: Kind) -> Error {
    Error::unsupported(
        kind.name(),
        match kind {
            Kind::Cuda => "backend not compiled in: features of this build have no cuda; use --features cuda, or cpu",
            Kind::Wgpu => "backend not compiled in: features of this build have no wgpu; use --features wgpu, or cpu",
            Kind::Cpu | Kind::Other => "backend not compiled in: a device from outside is passed as a value; use cpu",
        },
    )
}
