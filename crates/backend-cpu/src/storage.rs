//! Typed memory: aligned bytes from the pool, viewed as elements.

use std::fmt;
use std::sync::Arc;

use bytemuck::{Pod, Zeroable, cast_slice, cast_slice_mut};
use half::{bf16, f16};
use tensor_core::{HostSlice, HostView, Result, Storage, Storages, Tensor};

use crate::Pool;

/// One cache line: the unit of allocation, so that vector loads never straddle lines.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C, align(64))]
pub(crate) struct Line([u8; LINE_BYTES]);

/// Bytes in a `Line`.
pub(crate) const LINE_BYTES: usize = 64;

/// The Rust type of a tensor's elements in memory. Bool tensors hold `u8`, each 0 or 1.
pub trait Elem: Pod + PartialEq + PartialOrd + Default + fmt::Debug + Send + Sync {}

impl Elem for f64 {}
impl Elem for f32 {}
impl Elem for f16 {}
impl Elem for bf16 {}
impl Elem for i64 {}
impl Elem for i32 {}
impl Elem for u8 {}

/// Runs an expression with `$t` as the element type of a dtype; bool is `u8`.
#[macro_export]
#[doc(hidden)]
macro_rules! for_dtype {
    ($dtype:expr, $t:ident => $body:expr) => {
        match $dtype {
            ::tensor_core::DType::F64 => {
                type $t = f64;
                $body
            }
            ::tensor_core::DType::F32 => {
                type $t = f32;
                $body
            }
            ::tensor_core::DType::F16 => {
                type $t = ::half::f16;
                $body
            }
            ::tensor_core::DType::BF16 => {
                type $t = ::half::bf16;
                $body
            }
            ::tensor_core::DType::I64 => {
                type $t = i64;
                $body
            }
            ::tensor_core::DType::I32 => {
                type $t = i32;
                $body
            }
            ::tensor_core::DType::U8 | ::tensor_core::DType::Bool => {
                type $t = u8;
                $body
            }
        }
    };
}

/// Memory of one tensor: 64-byte aligned, given back to its pool when dropped.
///
/// Fresh from the pool the contents are whatever was there before.
pub struct Buffer {
    lines: Box<[Line]>,
    len_bytes: usize,
    pool: Arc<Pool>,
}

impl Buffer {
    pub(crate) fn new(lines: Box<[Line]>, len_bytes: usize, pool: Arc<Pool>) -> Self {
        debug_assert!(lines.len() * LINE_BYTES >= len_bytes);
        Self { lines, len_bytes, pool }
    }

    /// The elements.
    #[inline]
    pub fn slice<T: Elem>(&self) -> &[T] {
        cast_slice(self.bytes())
    }

    /// The elements, to be written.
    #[inline]
    pub fn slice_mut<T: Elem>(&mut self) -> &mut [T] {
        cast_slice_mut(self.bytes_mut())
    }

    /// The bytes.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        &cast_slice::<Line, u8>(&self.lines)[..self.len_bytes]
    }

    /// The bytes, to be written.
    #[inline]
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut cast_slice_mut::<Line, u8>(&mut self.lines)[..self.len_bytes]
    }

    /// As the storage of a tensor.
    pub fn into_storage(self) -> Storage {
        Arc::new(self)
    }

    /// As the storages of an op with one output.
    pub fn into_storages(self) -> Storages {
        Storages::from_iter([self.into_storage()])
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        self.pool.give_back(std::mem::take(&mut self.lines));
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Buffer({} bytes)", self.len_bytes)
    }
}

/// The buffer behind a tensor of this backend.
pub(crate) fn buffer(x: &Tensor) -> &Buffer {
    x.storage().downcast_ref().expect("invariant: core hands a backend its own tensors")
}

/// All elements of a tensor's storage, to be read through its layout: element `i` of a row-major tensor is at
/// `x.layout().offset() + i`.
#[inline]
pub fn input<T: Elem>(x: &Tensor) -> &[T] {
    buffer(x).slice()
}

/// Copies host values to new memory.
pub(crate) fn upload(pool: &Arc<Pool>, view: HostView<'_>) -> Result<Storage> {
    fn copy<T: Elem>(pool: &Arc<Pool>, values: &[T]) -> Result<Storage> {
        let mut buffer = pool.take::<T>(values.len())?;
        buffer.slice_mut::<T>().copy_from_slice(values);
        Ok(buffer.into_storage())
    }
    match view.data {
        HostSlice::F64(v) => copy(pool, v),
        HostSlice::F32(v) => copy(pool, v),
        HostSlice::F16(v) => copy(pool, v),
        HostSlice::BF16(v) => copy(pool, v),
        HostSlice::I64(v) => copy(pool, v),
        HostSlice::I32(v) => copy(pool, v),
        HostSlice::U8(v) => copy(pool, v),
        HostSlice::Bool(v) => copy(pool, bytemuck::cast_slice::<bool, u8>(v)),
    }
}
