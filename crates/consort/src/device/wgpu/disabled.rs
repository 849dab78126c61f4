//! Builds without the feature `wgpu`.

use tensor_core::{Device, Kind, Result};

/// Why there are none.
pub(super) fn devices() -> Result<Vec<Device>> {
    Err(super::absent::reason(Kind::Wgpu))
}

/// As [`devices`].
pub(super) fn modest() -> Result<Vec<Device>> {
    devices()
}
