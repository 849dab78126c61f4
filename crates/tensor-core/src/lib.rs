//! The tensor, the op language and the contract that every Consort backend keeps.
//!
//! Everything an operation means is decided here, once: shapes, dtypes, errors ([`op`]), elementwise formulas and
//! their derivatives ([`expr`]), the math they lower to ([`math`]), random bits ([`random`]). A [`Backend`] only
//! computes. Deliberately absent: any kernel, and any derivative rule (those live in `nn`).
#![forbid(unsafe_code)]

mod axes;
mod backend;
mod defer;
mod device;
mod dtype;
mod error;
mod execute;
pub mod expr;
mod layout;
pub mod math;
pub mod op;
mod param;
pub mod plan;
pub mod random;
mod shape;
mod stats;
mod tensor;

pub use axes::{IntoAxes, IntoAxis, IntoAxisRange};
pub use backend::{Backend, DeviceInfo, HostView, Kind, MemoryStatus, Storage, Storages, Support, Target, UpdateRule};
pub use defer::Deferral;
pub use device::{Device, Place};
pub use dtype::{DType, Element, HostData, HostSlice, Number};
pub use error::{Error, ErrorKind, Result};
pub use execute::{execute, execute_on};
pub use expr::{Expr, Sym};
pub use layout::{Layout, Movement, Strides};
pub use op::{CustomOp, Keeps, Meta, Metas, Op, Record, Tensors};
pub use param::Param;
pub use shape::{Dim, Dims, IntoShape, Shape};
pub use stats::{TransferStats, Transfers, stats};
pub use tensor::{
    AsOperand, AttentionOptions, ConvOptions, ConvTransposeOptions, IntoRange, Operand, Padding, PerAxis, PoolOptions,
    Tensor, custom, einsum, zip, zip_n,
};
