//! IDX: the format of the MNIST family.
//!
//! Two zero bytes, a byte for the type, one for the rank, the sizes as big-endian u32, the numbers big-endian
//! (<http://yann.lecun.com/exdb/mnist/>).

use std::io::Read;
use std::path::Path;

use tensor_core::{Device, Error, HostData, Result, Shape, Tensor};

use super::bytes::{Endian, Stored, cannot_read, count, numbers, open, tensor};

/// The tensor in an IDX file, plain or compressed with gzip, on `device`.
///
/// Its type is the file's; i8 and i16, which tensors do not have, become i32.
///
/// # Errors
/// A file that cannot be read, another format, sizes that overflow, fewer or more numbers than the sizes say.
pub fn read_idx(path: impl AsRef<Path>, device: &Device) -> Result<Tensor> {
    let path = path.as_ref();
    let (data, shape) = decode(&mut open(path)?).map_err(|error| error.at(path.display()))?;
    tensor(&data, shape, device)
}

/// The numbers and their shape.
pub(crate) fn decode(stream: &mut dyn Read) -> Result<(HostData, Shape)> {
    let mut magic = [0; 4];
    stream.read_exact(&mut magic).map_err(|error| cannot_read(error).at("idx"))?;
    let [0, 0, code, rank] = magic else {
        let [a, b, ..] = magic;
        return Err(Error::format("idx", format!("the file must start with two zero bytes: bytes {a:#04x} {b:#04x}")));
    };
    let stored = match code {
        0x08 => Stored::U8,
        0x09 => Stored::I8,
        0x0B => Stored::I16,
        0x0C => Stored::I32,
        0x0D => Stored::F32,
        0x0E => Stored::F64,
        _ => return Err(Error::format("idx", format!("the type is not one of IDX: code {code:#04x}"))),
    };
    let mut dims = Vec::with_capacity(rank.into());
    for _ in 0..rank {
        let mut size = [0; 4];
        stream.read_exact(&mut size).map_err(|error| cannot_read(error).at("idx"))?;
        dims.push(u64::from(u32::from_be_bytes(size)));
    }
    let n = count("idx", &dims, stored.size_bytes())?;
    let data = numbers("idx", stream, n, stored, Endian::Big)?;
    Ok((data, dims.iter().map(|&d| d as usize).collect()))
}
