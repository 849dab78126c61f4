//! Any GPU through wgpu (Vulkan, Metal, DX12): hand-written WGSL.
//!
//! Every kernel's text is an entry point from `shaders/` around functions that the ops write; elementwise work is one
//! skeleton into which an expression's lowering is pasted. Work is recorded and submitted in batches; only reads wait.
//! Deliberately absent: derivatives, shape rules, and built-in transcendentals, whose accuracy WGSL leaves open.

#![forbid(unsafe_code)]

mod args;
mod backend;
mod batch;
mod device;
mod emit;
mod gpu;
mod host;
mod index;
mod kernels;
mod memory;
mod pipeline;
mod shader;
mod status;

pub use batch::{Counts, counts};
pub use device::{devices, modest};

#[cfg(test)]
mod tests;
