//! NVIDIA GPUs without a toolkit: hand-written PTX, compiled by the driver that the machine has.
//!
//! Every call to the device goes through one seam ([`driver::Driver`]), which the CUDA driver and the PTX emulator
//! implement, so that the same kernels run where there is no GPU. Elementwise work is one skeleton into which an
//! expression's lowering is pasted; structural ops are kernels of their own under `kernels/`. Deliberately absent:
//! derivatives, shape rules, and any vendor library.

pub mod driver;

mod args;
mod backend;
mod device;
mod emit;
mod host;
mod index;
mod kernels;
mod memory;
mod module;
mod source;
mod staging;
mod status;

#[cfg(feature = "emulator")]
pub use device::{Emulated, emulated};
pub use device::{devices, on_driver, tf32_devices, tf32_on_driver};
pub use kernels::matmul::{Choice, Rung};
pub use module::n_modules;
