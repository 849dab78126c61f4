//! The op language: every operation a backend is asked for, as data.
//!
//! Each variant holds a record that lives in its own file under `op/` with its shape-and-dtype rule, contract
//! and, for composite ops, its decomposition. Backends match on [`Op`] without a wildcard arm.

use std::fmt;
use std::sync::Arc;

use smallvec::SmallVec;

use crate::{DType, Error, HostData, Kind, Result, Shape, Tensor};

mod arg_reduce;
mod attention;
mod concat;
mod contract;
mod conv;
mod create;
mod cross_entropy;
mod gather;
mod map;
mod matmul;
mod normalize;
mod pad;
mod pool;
mod reduce;
mod scan;
mod softmax;
mod sort;
#[cfg(test)]
mod tests;

pub use arg_reduce::ArgReduce;
pub use attention::{Attention, AttentionGrad};
pub use concat::Concat;
pub use contract::{ALL_EDGES, Contract, Edge, NUMBERS, Role, SUM_EDGES, Tolerance};
pub use conv::{Conv, ConvInputGrad, ConvWeightGrad, Window};
pub use create::{Distribution, Fill, Iota, Random};
pub use cross_entropy::CrossEntropy;
pub use gather::{Gather, ScatterAdd};
pub use map::Map;
pub use matmul::MatMul;
pub use normalize::{Normalize, NormalizeGrad};
pub use pad::Pad;
pub use pool::{AvgPoolGrad, Pool, PoolKind};
pub use reduce::{Reduce, ReduceKind};
pub use scan::{Scan, ScanKind};
pub use softmax::Softmax;
pub use sort::Sort;

/// Shape and dtype of a tensor, without its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Meta {
    /// The sizes.
    pub shape: Shape,
    /// The element type.
    pub dtype: DType,
}

impl Meta {
    /// A shape and a dtype.
    pub fn new(shape: Shape, dtype: DType) -> Self {
        Self { shape, dtype }
    }
}

/// The shapes and dtypes of an op's outputs; most ops have one.
pub type Metas = SmallVec<[Meta; 1]>;
/// An op's outputs.
pub type Tensors = SmallVec<[Tensor; 1]>;

/// What the tape keeps of an op until its gradient is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Keeps {
    /// Bit i: the value of input i is needed (shapes and dtypes always are).
    pub inputs: u32,
    /// Bit i: the value of output i is needed.
    pub outputs: u32,
}

impl Keeps {
    /// Only shapes and dtypes.
    pub const NOTHING: Self = Self { inputs: 0, outputs: 0 };

    /// Whether input `i` is kept.
    pub fn input(self, i: usize) -> bool {
        i < 32 && self.inputs >> i & 1 == 1
    }

    /// Whether output `i` is kept.
    pub fn output(self, i: usize) -> bool {
        i < 32 && self.outputs >> i & 1 == 1
    }
}

/// What every op declares about itself, once.
pub trait Record {
    /// The name in errors, docs, profiles and tests.
    fn name(&self) -> &str;

    /// The outputs' shapes and dtypes, or the error that names what does not fit.
    fn infer(&self, inputs: &[Meta]) -> Result<Metas>;

    /// What every backend is held to.
    fn contract(&self) -> Contract;

    /// What its derivative rule reads besides shapes.
    fn keeps(&self) -> Keeps {
        Keeps::NOTHING
    }

    /// The same outputs from simpler ops, for a backend that declines this one; `None` for the primitive ops.
    fn decompose(&self, inputs: &[&Tensor]) -> Option<Result<Tensors>> {
        let _ = inputs;
        None
    }
}

/// One operation with its parameters.
///
/// Inputs come as tensors of any layout that [`Record::infer`] accepted; broadcasting is not expanded.
#[derive(Clone, Debug)]
pub enum Op {
    /// Elementwise: one or more expressions over broadcast inputs.
    Map(Map),
    /// Sum, product, maximum or minimum over axes of an elementwise producer.
    Reduce(Reduce),
    /// Index of the maximum or minimum along an axis.
    ArgReduce(ArgReduce),
    /// Running sum, product or maximum along an axis.
    Scan(Scan),
    /// Batched matrix product with an elementwise epilogue.
    MatMul(MatMul),
    /// N-dimensional convolution with an elementwise epilogue.
    Conv(Conv),
    /// The convolution's adjoint by its input; also the transposed convolution.
    ConvInputGrad(ConvInputGrad),
    /// The convolution's adjoint by its weight.
    ConvWeightGrad(ConvWeightGrad),
    /// Maximum (with indices) or average over windows.
    Pool(Pool),
    /// The average pool's adjoint.
    AvgPoolGrad(AvgPoolGrad),
    /// Picks elements along an axis by index.
    Gather(Gather),
    /// Adds elements at indices along an axis.
    ScatterAdd(ScatterAdd),
    /// Stable sort along an axis: values and indices.
    Sort(Sort),
    /// Joins tensors along an axis.
    Concat(Concat),
    /// Surrounds and spreads with a value.
    Pad(Pad),
    /// The same elements, row-major.
    Copy,
    /// Counter-based random numbers.
    Random(Random),
    /// An arithmetic sequence.
    Iota(Iota),
    /// One value everywhere.
    Fill(Fill),
    /// Softmax or its logarithm along an axis (composite).
    Softmax(Softmax),
    /// Zero mean and unit variance, or unit mean square, over axes (composite).
    Normalize(Normalize),
    /// The normalisation's adjoint (composite).
    NormalizeGrad(NormalizeGrad),
    /// Cross-entropy of logits against class indices, per row (composite).
    CrossEntropy(CrossEntropy),
    /// Scaled dot-product attention (composite).
    Attention(Attention),
    /// The attention's adjoint (composite).
    AttentionGrad(AttentionGrad),
    /// A user's own op.
    Custom(Arc<dyn CustomOp>),
}

impl Op {
    /// The record behind the variant.
    pub fn record(&self) -> &dyn Record {
        match self {
            Self::Map(op) => op,
            Self::Reduce(op) => op,
            Self::ArgReduce(op) => op,
            Self::Scan(op) => op,
            Self::MatMul(op) => op,
            Self::Conv(op) => op,
            Self::ConvInputGrad(op) => op,
            Self::ConvWeightGrad(op) => op,
            Self::Pool(op) => op,
            Self::AvgPoolGrad(op) => op,
            Self::Gather(op) => op,
            Self::ScatterAdd(op) => op,
            Self::Sort(op) => op,
            Self::Concat(op) => op,
            Self::Pad(op) => op,
            Self::Copy => &create::CopyRecord,
            Self::Random(op) => op,
            Self::Iota(op) => op,
            Self::Fill(op) => op,
            Self::Softmax(op) => op,
            Self::Normalize(op) => op,
            Self::NormalizeGrad(op) => op,
            Self::CrossEntropy(op) => op,
            Self::Attention(op) => op,
            Self::AttentionGrad(op) => op,
            Self::Custom(op) => op,
        }
    }

    /// The op's name.
    pub fn name(&self) -> &str {
        self.record().name()
    }
}

/// A user's own op: signature, kernels and derivative. Run it with [`crate::custom`].
pub trait CustomOp: Send + Sync + fmt::Debug {
    /// The name in errors and profiles.
    fn name(&self) -> &str;

    /// The outputs' shapes and dtypes, or an error for inputs that do not fit.
    fn infer(&self, inputs: &[Meta]) -> Result<Metas>;

    /// The kernel for a kind of device; `None` makes the op an error there that says so.
    fn kernel(&self, kind: Kind) -> Option<CustomKernel>;

    /// The gradients by every input (`None` where there is none), written with tensor ops so that it runs on
    /// every device and can itself be differentiated.
    fn derivative(&self, inputs: &[&Tensor], outputs: &[Tensor], grads: &[Tensor]) -> Result<Vec<Option<Tensor>>>;
}

/// A kernel of a [`CustomOp`] on one kind of device.
#[derive(Clone)]
#[non_exhaustive]
pub enum CustomKernel {
    /// For `Kind::Cpu`: row-major inputs with their shapes, and what each output must be; returns the outputs.
    Rust(Arc<dyn Fn(&[HostArray], &[Meta]) -> Result<Vec<HostData>> + Send + Sync>),
    /// For `Kind::Cuda`: PTX text, which the driver compiles once, and how it is launched.
    Ptx(PtxKernel),
    /// For `Kind::Wgpu`: the kernel in WGSL for inputs and outputs of these shapes and dtypes. A text is compiled once.
    Wgsl(Arc<dyn Fn(&[Meta], &[Meta]) -> Result<WgslKernel> + Send + Sync>),
}

/// A kernel as PTX text.
#[derive(Clone)]
pub struct PtxKernel {
    /// The module.
    pub text: &'static str,
    /// The launch for inputs and outputs of these shapes and dtypes.
    pub launch: Arc<dyn Fn(&[Meta], &[Meta]) -> Result<PtxLaunch> + Send + Sync>,
}

/// How a [`PtxKernel`] is launched. Its parameters are all of 64 bits: the addresses of the outputs, then those of the
/// inputs, which are row-major, then the numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PtxLaunch {
    /// The `.entry`.
    pub entry: &'static str,
    /// Blocks, per axis; a 0 launches nothing.
    pub grid: [u32; 3],
    /// Threads of a block, per axis.
    pub block: [u32; 3],
    /// Dynamic shared memory.
    pub shared_bytes: u32,
    /// Further parameters.
    pub numbers: Vec<u64>,
}

/// A kernel as WGSL text, and how it is dispatched.
///
/// Its bindings lie in group 0, counted from 0: the outputs (`var<storage, read_write>`), then the inputs, which are row-major
/// (`var<storage, read>`), then, if there are any, the numbers (`var<storage, read>`): an `array<u32>`, or a structure of
/// `u32`, `i32` and `f32`. Of f16 and bf16 two elements lie in a `u32`, of u8 and bool four, the first one lowest; other
/// dtypes are arrays of their WGSL type. `arrayLength` may be more than a tensor has: where elements end is a number to pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WgslKernel {
    /// The module.
    pub text: &'static str,
    /// The `@compute` function.
    pub entry: &'static str,
    /// Workgroups, per axis, of which adapters start 65,535; a 0 starts nothing.
    pub groups: [u32; 3],
    /// Further parameters; those of an f32 are its bits ([`f32::to_bits`]).
    pub numbers: Vec<u32>,
}

/// Row-major host values with their shape, as a custom kernel receives them.
#[derive(Clone, Debug, PartialEq)]
pub struct HostArray {
    /// The sizes.
    pub shape: Shape,
    /// The values.
    pub data: HostData,
}

impl Record for Arc<dyn CustomOp> {
    fn name(&self) -> &str {
        (**self).name()
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Metas> {
        (**self).infer(inputs)
    }

    fn contract(&self) -> Contract {
        Contract { tolerance: Tolerance::Unstated, ..Contract::exact() }
    }

    fn keeps(&self) -> Keeps {
        Keeps { inputs: u32::MAX, outputs: u32::MAX }
    }
}

/// One output.
fn one(shape: Shape, dtype: DType) -> Result<Metas> {
    Ok(SmallVec::from_iter([Meta { shape, dtype }]))
}

/// The inputs of an op of fixed arity; core calls ops with as many as they take.
fn exactly<'a, const N: usize>(inputs: &'a [Meta], op: &str) -> Result<&'a [Meta; N]> {
    inputs.try_into().map_err(|_| Error::shape(op.to_string(), format!("takes {N} inputs: got {}", inputs.len())))
}

fn same_dtype(op: &'static str, a: (&str, DType), b: (&str, DType)) -> Result<()> {
    if a.1 == b.1 {
        return Ok(());
    }
    Err(Error::dtype(
        op,
        format!("operands have different dtypes: {} {}, {} {}; cast one with .cast(..)", a.0, a.1, b.0, b.1),
    ))
}

fn float(op: &'static str, name: &str, dtype: DType) -> Result<()> {
    if dtype.is_float() {
        return Ok(());
    }
    Err(Error::dtype(op, format!("needs a float dtype: {name} {dtype}; cast it with .cast(..)")))
}

fn not_bool(op: &'static str, name: &str, dtype: DType) -> Result<()> {
    if dtype != DType::Bool {
        return Ok(());
    }
    Err(Error::dtype(op, format!("is not defined for bool: {name} bool; cast it with .cast(..)")))
}

fn index_dtype(op: &'static str, dtype: DType) -> Result<()> {
    if matches!(dtype, DType::I64 | DType::I32) {
        return Ok(());
    }
    Err(Error::dtype(op, format!("indices must be i64 or i32: index {dtype}; cast them with .cast(DType::I64)")))
}

fn axis_in(op: &'static str, axis: usize, rank: usize) -> Result<()> {
    if axis < rank {
        return Ok(());
    }
    Err(Error::axis(op, format!("axis is out of range: axis {axis}, rank {rank}")))
}
