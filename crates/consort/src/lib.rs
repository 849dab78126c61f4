//! Consort trains neural networks in Rust on whatever hardware is there.
//!
//! One training program, unchanged, runs on the CPU, on NVIDIA GPUs and on any other GPU. Which backends exist is a Cargo
//! feature; which device runs is a value. Start with the [`prelude`], choose a device in [`device`], build models with
//! [`nn`], feed them with [`data`].
//!
//! ```
//! use consort::prelude::*;
//! use consort::{device, nn};
//!
//! # fn main() -> Result<()> {
//! let device = device::best();
//! let mut model = chain![nn::Linear::new(3, 8, &device)?, nn::Relu, nn::Linear::new(8, 1, &device)?];
//! let mut optimizer = nn::optim::Adam::new(1e-2).setup(&model)?;
//! let x = Tensor::rand([16, 3], &device)?;
//! let y = x.sum_keepdim(1)?;
//! for _ in 0..3 {
//!     let (_, gradients) = with_gradient(&model, |m| nn::loss::mse(&m.forward(&x)?, &y))?;
//!     optimizer.update(&mut model, &gradients)?;
//! }
//! # Ok(())
//! # }
//! ```
#![forbid(unsafe_code)]

pub mod device;
mod ndarray;

pub use self::ndarray::NdarrayTensor;
pub use data;
pub use nn;
pub use tensor_core::expr;
pub use tensor_core::op;
pub use tensor_core::random;
pub use tensor_core::random::seed;
pub use tensor_core::{
    AttentionOptions, Backend, ConvOptions, ConvTransposeOptions, CustomOp, DType, Deferral, Device, DeviceInfo,
    Element, Error, ErrorKind, Expr, HostData, HostSlice, Kind, MemoryStatus, Number, Op, Padding, Param, PerAxis,
    PoolOptions, Result, Shape, Sym, Tensor, TransferStats, custom, einsum, zip, zip_n,
};

/// What almost every program uses.
pub mod prelude {
    pub use crate::NdarrayTensor;
    pub use nn::{Forward, Module, chain, with_gradient};
    pub use tensor_core::{ConvOptions, DType, Device, Error, PoolOptions, Result, Shape, Tensor};
}

#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
