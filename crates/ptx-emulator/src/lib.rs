//! Runs PTX on the CPU and checks it like a sanitizer.
#![deny(unsafe_code)]

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
