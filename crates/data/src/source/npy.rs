//! NPY: the format of NumPy's `save`.
//!
//! Six magic bytes, a version, the length of the header, the header (a Python dictionary), the numbers
//! (<https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html>). Pickled objects, strings, records and
//! complex numbers are not read.

use std::io::Read;
use std::path::Path;

use tensor_core::{Device, Error, Result, Tensor};

use super::bytes::{Endian, Stored, cannot_read, count, numbers, open, tensor};

/// The tensor in an NPY file on `device`.
///
/// Its type is the file's; i8, i16 and u16 become i32, u32 and u64 become i64.
///
/// # Errors
/// A file that cannot be read, another format, a type without a tensor, sizes that overflow, fewer or more numbers
/// than the sizes say.
pub fn read_npy(path: impl AsRef<Path>, device: &Device) -> Result<Tensor> {
    let path = path.as_ref();
    decode(&mut open(path)?, device).map_err(|error| error.at(path.display()))
}

/// NumPy pads a header to some hundred bytes; more than this is an attack or damage.
const LONGEST_HEADER: usize = 1 << 20;

/// The tensor in a stream.
pub(crate) fn decode(stream: &mut dyn Read, device: &Device) -> Result<Tensor> {
    let header = Header::parse(&read_header(stream)?)?;
    let n = count("npy", &header.shape, header.stored.size_bytes())?;
    let data = numbers("npy", stream, n, header.stored, header.endian)?;
    let dims = header.shape.iter().map(|&d| d as usize);
    if !header.fortran_order {
        return tensor(&data, dims.collect(), device);
    }
    // First index fastest: the transposed array in row-major order.
    let reversed: Vec<usize> = (0..header.shape.len()).rev().collect();
    tensor(&data, dims.rev().collect(), device)?.permute(reversed)?.contiguous()
}

fn read_header(stream: &mut dyn Read) -> Result<String> {
    let read = |stream: &mut dyn Read, bytes: &mut [u8]| {
        stream.read_exact(bytes).map_err(|error| cannot_read(error).at("npy"))
    };
    let mut start = [0; 8];
    read(stream, &mut start)?;
    let [magic @ .., major, minor] = start;
    if magic != *b"\x93NUMPY" {
        return Err(Error::format(
            "npy",
            format!("the file must start with \\x93NUMPY: bytes {}", magic.escape_ascii()),
        ));
    }
    let len = match major {
        1 => {
            let mut len = [0; 2];
            read(stream, &mut len)?;
            usize::from(u16::from_le_bytes(len))
        }
        2 | 3 => {
            let mut len = [0; 4];
            read(stream, &mut len)?;
            u32::from_le_bytes(len) as usize
        }
        _ => {
            return Err(Error::format(
                "npy",
                format!("the version is not known: version {major}.{minor}, known 1 to 3"),
            ));
        }
    };
    if len > LONGEST_HEADER {
        return Err(Error::format("npy", format!("the header is too long: bytes {len}, limit {LONGEST_HEADER}")));
    }
    let mut header = vec![0; len];
    read(stream, &mut header)?;
    String::from_utf8(header).map_err(|error| Error::format("npy", "the header is not text").with_source(error))
}

/// What the dictionary says.
#[derive(Debug, PartialEq)]
struct Header {
    stored: Stored,
    endian: Endian,
    fortran_order: bool,
    shape: Vec<u64>,
}

impl Header {
    fn parse(text: &str) -> Result<Self> {
        let (mut descr, mut fortran_order, mut shape) = (None, None, None);
        let mut scan = Scan { rest: text };
        scan.expect('{')?;
        while !scan.accept('}') {
            let key = scan.string()?;
            scan.expect(':')?;
            match key {
                "descr" => descr = Some(scan.descr()?),
                "fortran_order" => fortran_order = Some(scan.boolean()?),
                "shape" => shape = Some(scan.shape()?),
                _ => return Err(scan.error(&format!("the key `{key}` is not known"))),
            }
            if !scan.accept(',') {
                scan.expect('}')?;
                break;
            }
        }
        if !scan.rest.trim().is_empty() {
            return Err(scan.error("something follows the dictionary"));
        }
        match (descr, fortran_order, shape) {
            (Some((stored, endian)), Some(fortran_order), Some(shape)) => {
                Ok(Self { stored, endian, fortran_order, shape })
            }
            _ => Err(scan.error("`descr`, `fortran_order` and `shape` must be there")),
        }
    }
}

/// Just as much of Python as a header needs.
struct Scan<'a> {
    rest: &'a str,
}

impl<'a> Scan<'a> {
    fn error(&self, what: &str) -> Error {
        let at: String = self.rest.chars().take(20).collect();
        Error::format("npy", format!("the header is not what NumPy writes: {what}, at `{}`", at.trim_end()))
    }

    fn accept(&mut self, token: char) -> bool {
        self.rest = self.rest.trim_start();
        let rest = self.rest.strip_prefix(token);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn expect(&mut self, token: char) -> Result<()> {
        if self.accept(token) { Ok(()) } else { Err(self.error(&format!("expected `{token}`"))) }
    }

    fn string(&mut self) -> Result<&'a str> {
        let quote = if self.accept('"') { '"' } else { '\'' };
        if quote == '\'' {
            self.expect('\'')?;
        }
        let (text, rest) = self.rest.split_once(quote).ok_or_else(|| self.error("a string does not end"))?;
        self.rest = rest;
        Ok(text)
    }

    fn boolean(&mut self) -> Result<bool> {
        let rest = self.rest.trim_start();
        for (word, value) in [("True", true), ("False", false)] {
            if let Some(rest) = rest.strip_prefix(word) {
                self.rest = rest;
                return Ok(value);
            }
        }
        Err(self.error("expected True or False"))
    }

    fn shape(&mut self) -> Result<Vec<u64>> {
        let mut shape = Vec::new();
        self.expect('(')?;
        while !self.accept(')') {
            self.rest = self.rest.trim_start();
            let digits = self.rest.len() - self.rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
            let (size, rest) = self.rest.split_at(digits);
            shape.push(size.parse().map_err(|_| self.error("a size is not a number of 64 bits"))?);
            // Python 2 wrote long integers with an L.
            self.rest = rest.strip_prefix('L').unwrap_or(rest);
            if !self.accept(',') {
                self.expect(')')?;
                break;
            }
        }
        Ok(shape)
    }

    fn descr(&mut self) -> Result<(Stored, Endian)> {
        if self.rest.trim_start().starts_with('[') {
            return Err(Error::format("npy", "records are not read; save each field as an array of its own"));
        }
        let descr = self.string()?;
        let endian = if descr.starts_with('>') { Endian::Big } else { Endian::Little };
        let stored = match descr.trim_start_matches(['<', '>', '|', '=']) {
            "b1" | "?" => Stored::Bool,
            "u1" | "B" => Stored::U8,
            "i1" | "b" => Stored::I8,
            "u2" => Stored::U16,
            "i2" => Stored::I16,
            "u4" => Stored::U32,
            "i4" => Stored::I32,
            "u8" => Stored::U64,
            "i8" => Stored::I64,
            "f2" => Stored::F16,
            "f4" => Stored::F32,
            "f8" => Stored::F64,
            _ => {
                return Err(Error::format(
                    "npy",
                    format!("the type has no tensor: descr `{descr}`; convert it with .astype before saving"),
                ));
            }
        };
        Ok((stored, endian))
    }
}
