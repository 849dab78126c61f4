//! Numbers from a stream of bytes, with as little trust in its header as possible.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use flate2::bufread::MultiGzDecoder;
use half::f16;
use tensor_core::{Device, Error, HostData, Result, Shape, Tensor};

/// A file, gunzipped if it starts like one that is compressed.
pub(crate) fn open(path: &Path) -> Result<Box<dyn Read>> {
    maybe_gunzip(BufReader::new(open_file(path)?)).map_err(|error| cannot_read(error).at(path.display()))
}

/// A file as it is. A folder cannot be read, and a pipe or a device may have no end.
pub(crate) fn open_file(path: &Path) -> Result<File> {
    let is_file = fs::metadata(path).map(|there| there.is_file());
    match is_file.and_then(|is_file| if is_file { File::open(path).map(Some) } else { Ok(None) }) {
        Ok(Some(file)) => Ok(file),
        Ok(None) => Err(Error::io("read", "is not a file").at(path.display())),
        Err(error) => Err(cannot_read(error).at(path.display())),
    }
}

/// A stream, gunzipped if it starts with the two bytes of gzip.
pub(crate) fn maybe_gunzip<'a>(mut stream: impl BufRead + 'a) -> io::Result<Box<dyn Read + 'a>> {
    let compressed = stream.fill_buf()?.starts_with(&[0x1F, 0x8B]);
    Ok(if compressed { Box::new(MultiGzDecoder::new(stream)) } else { Box::new(stream) })
}

/// An error of the system, or of a decompressor, as one of ours.
pub(crate) fn cannot_read(error: io::Error) -> Error {
    let made = match error.kind() {
        io::ErrorKind::UnexpectedEof => Error::format("read", "the file ends early"),
        io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData => {
            Error::format("read", format!("the file is damaged: {error}"))
        }
        _ => Error::io("read", format!("the file cannot be read: {error}")),
    };
    made.with_source(error)
}

/// How many elements a shape has; an error where that does not fit.
pub(crate) fn count(op: &'static str, dims: &[u64], size_bytes: usize) -> Result<usize> {
    // Zero-sized axes count as one here, so that the others have to fit too.
    let bytes = dims.iter().try_fold(size_bytes as u64, |n, &d| n.checked_mul(d.max(1)));
    match bytes.and_then(|bytes| isize::try_from(bytes).ok()) {
        Some(_) => Ok(dims.iter().product::<u64>() as usize),
        None => Err(Error::format(op, format!("the number of elements overflows: shape {dims:?}"))),
    }
}

/// How numbers are stored in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stored {
    Bool,
    U8,
    I8,
    U16,
    I16,
    U32,
    I32,
    U64,
    I64,
    F16,
    F32,
    F64,
}

impl Stored {
    /// Bytes per number.
    pub(crate) fn size_bytes(self) -> usize {
        match self {
            Self::Bool | Self::U8 | Self::I8 => 1,
            Self::U16 | Self::I16 | Self::F16 => 2,
            Self::U32 | Self::I32 | Self::F32 => 4,
            Self::U64 | Self::I64 | Self::F64 => 8,
        }
    }
}

/// Whether the first byte of a number is its most significant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Endian {
    Big,
    Little,
}

/// Reads `n` numbers and then the end of the stream. Types that tensors do not have widen: i8, i16 and u16 to i32, u32
/// and u64 to i64.
///
/// # Errors
/// A stream that is shorter or longer, and a u64 that i64 does not hold.
pub(crate) fn numbers(
    op: &'static str,
    stream: &mut dyn Read,
    n: usize,
    stored: Stored,
    endian: Endian,
) -> Result<HostData> {
    macro_rules! read {
        ($kind:ident, $t:ty, $convert:expr) => {{
            let decode = |bytes: &[u8]| {
                let bytes = bytes.try_into().expect("invariant: chunks have the size of a number");
                let value = match endian {
                    Endian::Big => <$t>::from_be_bytes(bytes),
                    Endian::Little => <$t>::from_le_bytes(bytes),
                };
                ($convert)(value)
            };
            HostData::$kind(elements(op, stream, n, size_of::<$t>(), decode)?)
        }};
    }
    let data = match stored {
        Stored::Bool => HostData::Bool(elements(op, stream, n, 1, |byte| byte[0] != 0)?),
        Stored::U8 => HostData::U8(elements(op, stream, n, 1, |byte| byte[0])?),
        Stored::I8 => read!(I32, i8, i32::from),
        Stored::U16 => read!(I32, u16, i32::from),
        Stored::I16 => read!(I32, i16, i32::from),
        Stored::U32 => read!(I64, u32, i64::from),
        Stored::I32 => read!(I32, i32, |v| v),
        Stored::I64 => read!(I64, i64, |v| v),
        Stored::F16 => read!(F16, f16, |v| v),
        Stored::F32 => read!(F32, f32, |v| v),
        Stored::F64 => read!(F64, f64, |v| v),
        Stored::U64 => {
            let wide = read!(I64, u64, |v: u64| v as i64);
            if let HostData::I64(values) = &wide
                && let Some(i) = values.iter().position(|v| *v < 0)
            {
                let value = values[i] as u64;
                return Err(Error::format(op, format!("an unsigned number does not fit i64: element {i} {value}")));
            }
            wide
        }
    };
    let mut rest = [0];
    match stream.read(&mut rest) {
        Ok(0) => Ok(data),
        Ok(_) => Err(Error::format(op, format!("the file goes on after its last element: elements {n}"))),
        Err(error) => Err(cannot_read(error)),
    }
}

/// Grows with what the stream really holds, a block at a time.
fn elements<T>(
    op: &'static str,
    stream: &mut dyn Read,
    n: usize,
    size: usize,
    decode: impl Fn(&[u8]) -> T,
) -> Result<Vec<T>> {
    const BLOCK: usize = 1 << 16;
    let mut values = Vec::new();
    let mut block = vec![0; BLOCK.min(n.saturating_mul(size))];
    while values.len() < n {
        let bytes = &mut block[..BLOCK.min((n - values.len()) * size)];
        let filled = fill(stream, bytes).map_err(cannot_read)?;
        if filled < bytes.len() {
            let found = values.len() + filled / size;
            return Err(Error::format(op, format!("the file ends early: elements {n}, found {found}")));
        }
        values.try_reserve(bytes.len() / size).map_err(|error| {
            let text = format!("the values do not fit into memory: elements {n}, read {}", values.len());
            Error::out_of_memory(op, text).with_source(error)
        })?;
        values.extend(bytes.chunks_exact(size).map(&decode));
    }
    values.shrink_to_fit();
    Ok(values)
}

/// Reads until the buffer is full or the stream ends.
fn fill(stream: &mut dyn Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match stream.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(n) => filled += n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // A compressed stream that is cut off says so itself; for us it is one that is too short.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => break,
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

/// A tensor of host values.
pub(crate) fn tensor(data: &HostData, shape: Shape, device: &Device) -> Result<Tensor> {
    Tensor::from_host(data.as_slice(), shape, device)
}
