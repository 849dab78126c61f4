//! Buffers of numbers.

use super::Device;
use crate::error::{Error, Result};
use crate::types::Ty;
use half::{bf16, f16};
use std::marker::PhantomData;

mod sealed {
    pub trait Sealed {}
}

/// A number that memory can hold.
pub trait Element: Copy + sealed::Sealed {
    /// Its type.
    const TY: Ty;

    #[doc(hidden)]
    fn put(self, bytes: &mut [u8]);

    #[doc(hidden)]
    fn take(bytes: &[u8]) -> Self;
}

macro_rules! elements {
    ($($t:ty: $ty:ident,)*) => {
        $(
            impl sealed::Sealed for $t {}
            impl Element for $t {
                const TY: Ty = Ty::$ty;

                fn put(self, bytes: &mut [u8]) {
                    bytes.copy_from_slice(&self.to_le_bytes());
                }

                fn take(bytes: &[u8]) -> Self {
                    Self::from_le_bytes(bytes.try_into().expect("invariant: as many bytes as the type has"))
                }
            }
        )*
    };
}

elements! {
    f32: F32, f64: F64, f16: F16, bf16: Bf16, i8: S8, i16: S16, i32: S32, i64: S64, u8: U8, u16: U16, u32: U32, u64: U64,
}

/// Memory of a device as a row of numbers. It stays allocated until it is freed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Buffer<T> {
    address: u64,
    len: usize,
    element: PhantomData<T>,
}

impl<T: Element> Buffer<T> {
    /// Where it begins.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// How many numbers it has.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl Device {
    /// Allocates numbers that count as never written.
    ///
    /// # Errors
    ///
    /// If the memory limit is reached, or a fault is latched.
    pub fn alloc<T: Element>(&mut self, len: usize) -> Result<Buffer<T>> {
        self.alloc_named(len, "buffer")
    }

    /// The same with a name for reports.
    ///
    /// # Errors
    ///
    /// If the memory limit is reached, or a fault is latched.
    pub fn alloc_named<T: Element>(&mut self, len: usize, name: &str) -> Result<Buffer<T>> {
        let bytes = (len as u64).saturating_mul(T::TY.bytes().into());
        Ok(Buffer { address: self.alloc_bytes(bytes, name)?, len, element: PhantomData })
    }

    /// Allocates zeros.
    ///
    /// # Errors
    ///
    /// If the memory limit is reached, or a fault is latched.
    pub fn zeros<T: Element>(&mut self, len: usize) -> Result<Buffer<T>> {
        let buffer = self.alloc(len)?;
        self.fill_bytes(buffer.address, len as u64 * u64::from(T::TY.bytes()), 0)?;
        Ok(buffer)
    }

    /// Allocates a copy of numbers of the host.
    ///
    /// # Errors
    ///
    /// If the memory limit is reached, or a fault is latched.
    pub fn upload<T: Element>(&mut self, values: &[T]) -> Result<Buffer<T>> {
        let buffer = self.alloc(values.len())?;
        self.write(&buffer, values)?;
        Ok(buffer)
    }

    /// Overwrites a buffer.
    ///
    /// # Errors
    ///
    /// If the lengths differ, the buffer is freed, or a fault is latched.
    pub fn write<T: Element>(&mut self, buffer: &Buffer<T>, values: &[T]) -> Result<()> {
        if values.len() != buffer.len {
            let message = format!("write: lengths differ: buffer {}, values {}", buffer.len, values.len());
            return Err(Error::usage(message));
        }
        let size = T::TY.bytes() as usize;
        let mut bytes = vec![0; values.len() * size];
        for (value, bytes) in values.iter().zip(bytes.chunks_exact_mut(size)) {
            value.put(bytes);
        }
        self.write_bytes(buffer.address, &bytes)
    }

    /// The numbers of a buffer, once all launches are done.
    ///
    /// # Errors
    ///
    /// If the buffer is freed, or a fault is latched.
    pub fn download<T: Element>(&mut self, buffer: &Buffer<T>) -> Result<Vec<T>> {
        let size = T::TY.bytes() as usize;
        let mut bytes = vec![0; buffer.len * size];
        self.read_bytes(buffer.address, &mut bytes)?;
        Ok(bytes.chunks_exact(size).map(T::take).collect())
    }
}
