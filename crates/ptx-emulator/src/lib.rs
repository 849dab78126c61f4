//! Runs PTX on the CPU and finds what is wrong with it.
//!
//! PTX is the assembly language of NVIDIA's GPUs. This crate reads a module as text, runs its kernels without a GPU,
//! and checks every step like a sanitizer: addresses, alignment, memory and registers that nothing wrote, races within
//! a block and between blocks, barriers that not all threads reach, shuffles from lanes that do not take part, copies
//! that were not waited for, kernels that hang. A [`Report`] names the line of the text, the block, the thread, the
//! address and what lies there, the values of the operands, and the other access of a race.
//!
//! - [`Module::parse`] reads and checks a module; [`ParseOptions`] make it stricter.
//! - [`Device`] has memory, runs kernels, and latches what they do wrong, as a driver does.
//! - [`Options`] choose the order of warps, which seeds replay, how approximate instructions err, how matrix units
//!   add up, and which checks are made.
//! - [`Stats`] count instructions, bank conflicts and uncoalesced accesses.
//!
//! Two stores of a block in no order:
//!
//! ```
//! use ptx_emulator::{Arg, Device, Finding, Launch, Module};
//!
//! let module = Module::parse(
//!     ".version 7.8 .target sm_80 .address_size 64
//!      .visible .entry last(.param .u64 out) {
//!          .reg .b64 %rd<2>; .reg .b32 %r<2>;
//!          ld.param.u64 %rd1, [out];
//!          mov.u32 %r1, %tid.x;
//!          st.global.u32 [%rd1], %r1;
//!          ret;
//!      }",
//! )?;
//! let mut device = Device::default();
//! let loaded = device.load(&module)?;
//! let out = device.zeros::<u32>(1)?;
//! device.launch(&loaded, "last", Launch::linear(1, 64), &[Arg::buffer(&out)])?;
//! let error = device.synchronise().expect_err("the threads race");
//! let report = error.report().expect("it is a finding");
//! assert_eq!(report.finding, Finding::GlobalRace);
//! assert_eq!(report.text, "st.global.u32 [%rd1], %r1;");
//! assert_eq!((report.thread, report.other.as_ref().and_then(|other| other.thread)), ([1, 0, 0], Some([0, 0, 0])));
//! # Ok::<(), ptx_emulator::Error>(())
//! ```
//!
//! What is absent: `wgmma`, bulk and tensor copies, clusters of several blocks, textures, recursion, 32-bit addresses,
//! 128-bit and vector registers. A module that uses them does not parse, and the error says where.
#![deny(unsafe_code)]
// Formulas are written as the manual writes them.
#![allow(clippy::precedence, clippy::neg_cmp_op_on_partial_ord)]

mod decode;
mod device;
mod error;
mod exec;
mod fma;
mod fragment;
mod lower;
mod memory;
mod module;
mod options;
mod program;
mod report;
mod shadow;
mod stats;
mod text;
mod types;
mod value;
mod warp;

pub use device::{Arg, Buffer, Device, Element, Launch, Loaded};
pub use error::{Error, ErrorKind};
pub use module::{Kernel, Module, ParseOptions};
pub use options::{Approximation, Checks, MmaMode, Options, Order};
pub use program::Param;
pub use report::{Finding, Neighbour, Other, Report};
pub use stats::Stats;
pub use types::{Space, Ty};
