//! Any GPU, in builds with the feature `wgpu`.

use tensor_core::{Device, Result};

/// The adapters, hardware first.
pub(super) fn devices() -> Result<Vec<Device>> {
    backend_wgpu::devices()
}

/// The same adapters with no more than every adapter has.
pub(super) fn modest() -> Result<Vec<Device>> {
    backend_wgpu::modest()
}

/// Kernels compiled since the process started, on all adapters.
pub fn n_kernels() -> usize {
    backend_wgpu::counts().kernels as usize
}
