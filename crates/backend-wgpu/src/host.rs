//! Host values as the bytes that a device holds.

use std::borrow::Cow;

use bytemuck::{cast_slice, cast_slice_mut};
use tensor_core::{HostData, HostSlice};

/// The bytes of host values; bool is a byte of 0 or 1.
pub(crate) fn bytes<'a>(data: HostSlice<'a>) -> Cow<'a, [u8]> {
    match data {
        HostSlice::F64(v) => Cow::Borrowed(cast_slice(v)),
        HostSlice::F32(v) => Cow::Borrowed(cast_slice(v)),
        HostSlice::F16(v) => Cow::Borrowed(cast_slice(v)),
        HostSlice::BF16(v) => Cow::Borrowed(cast_slice(v)),
        HostSlice::I64(v) => Cow::Borrowed(cast_slice(v)),
        HostSlice::I32(v) => Cow::Borrowed(cast_slice(v)),
        HostSlice::U8(v) => Cow::Borrowed(v),
        HostSlice::Bool(v) => Cow::Owned(v.iter().map(|&v| v.into()).collect()),
    }
}

/// Lets `read` write the bytes of host values.
pub(crate) fn read<E>(data: &mut HostData, read: impl FnOnce(&mut [u8]) -> Result<(), E>) -> Result<(), E> {
    match data {
        HostData::F64(v) => read(cast_slice_mut(v)),
        HostData::F32(v) => read(cast_slice_mut(v)),
        HostData::F16(v) => read(cast_slice_mut(v)),
        HostData::BF16(v) => read(cast_slice_mut(v)),
        HostData::I64(v) => read(cast_slice_mut(v)),
        HostData::I32(v) => read(cast_slice_mut(v)),
        HostData::U8(v) => read(v),
        HostData::Bool(v) => {
            let mut bytes = vec![0u8; v.len()];
            read(&mut bytes)?;
            v.iter_mut().zip(bytes).for_each(|(v, byte)| *v = byte != 0);
            Ok(())
        }
    }
}
