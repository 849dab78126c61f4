//! The driver's library: whether it is there, and its words for errors.
#![allow(unsafe_code)]

use cudarc::driver::{result, sys};
use tensor_core::{Error, Result};

/// The functions of the driver that are called: cudarc panics on one that is missing, so they are looked up first.
const FUNCTIONS: &[&str] = &[
    "cuGetErrorString",
    "cuInit",
    "cuDeviceGetCount",
    "cuDeviceGet",
    "cuDeviceGetName",
    "cuDeviceGetAttribute",
    "cuDeviceTotalMem_v2",
    "cuDevicePrimaryCtxRetain",
    "cuCtxSetCurrent",
    "cuStreamCreate",
    "cuStreamSynchronize",
    "cuStreamWaitEvent",
    "cuEventCreate",
    "cuEventRecord",
    "cuEventQuery",
    "cuEventDestroy_v2",
    "cuMemHostAlloc",
    "cuMemFreeHost",
    "cuModuleLoadDataEx",
    "cuModuleGetFunction",
    "cuFuncGetAttribute",
    "cuFuncSetAttribute",
    "cuMemAllocAsync",
    "cuMemFreeAsync",
    "cuMemcpyHtoDAsync_v2",
    "cuMemcpyDtoHAsync_v2",
    "cuMemcpyDtoDAsync_v2",
    "cuLaunchKernel",
    "cuMemGetInfo_v2",
];

/// Whether the library is there and has every function that is called.
pub(super) fn check() -> Result<()> {
    // SAFETY: asks the loader for the library, which is kept.
    if !unsafe { sys::is_culib_present() } {
        return Err(Error::device(
            "cuda",
            "driver library not found: this build loads libcuda at run time; install the NVIDIA driver or use another device",
        ));
    }
    for name in FUNCTIONS {
        let found = ["libcuda.so", "libcuda.so.1", "nvcuda.dll"].iter().any(|library| {
            // SAFETY: the library has been loaded by `is_culib_present`; looking a symbol up runs nothing.
            unsafe {
                libloading::Library::new(library)
                    .is_ok_and(|library| library.get::<unsafe extern "C" fn()>(name.as_bytes()).is_ok())
            }
        });
        if !found {
            return Err(Error::device(
                "cuda",
                format!("the driver library lacks a function: {name}; install a driver for CUDA 12.0 or later"),
            ));
        }
    }
    Ok(())
}

/// The name of an error and what it means: `CUDA_ERROR_NO_DEVICE (no CUDA-capable device is detected)`.
pub(super) fn described(error: &result::DriverError) -> String {
    let name = error.0;
    error.error_string().map_or_else(|_| format!("{name:?}"), |text| format!("{name:?} ({})", text.to_string_lossy()))
}
