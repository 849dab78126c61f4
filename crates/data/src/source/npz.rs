//! NPZ: several NPY files in a ZIP archive, as NumPy's `savez` and `savez_compressed` write them.
//!
//! The archive's directory at its end says where the members are (<https://pkware.cachefly.net/webdocs/APPNOTE/>,
//! 4.3); members are stored or deflated, sizes past 32 bits are in a ZIP64 field. Encryption and archives in several
//! parts are not read.

use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use flate2::CrcReader;
use flate2::read::DeflateDecoder;
use tensor_core::{Device, Error, Result, Tensor};

use super::bytes::{cannot_read, open_file};
use super::npy;

/// The tensors in an NPZ file with their names, in the order of the file, on `device`.
///
/// # Errors
/// As [`crate::read_npy`] for each member, and an archive that is not one, is damaged, or uses what NumPy does not.
pub fn read_npz(path: impl AsRef<Path>, device: &Device) -> Result<Vec<(String, Tensor)>> {
    let path = path.as_ref();
    let file = open_file(path)?;
    decode(&mut BufReader::new(file), device).map_err(|error| error.at(path.display()))
}

/// The tensors of an archive.
pub(crate) fn decode(archive: &mut (impl Read + Seek), device: &Device) -> Result<Vec<(String, Tensor)>> {
    let members = directory(archive)?;
    let read = |member: Member| {
        let tensor = read_member(archive, &member, device).map_err(|error| error.at(&member.name))?;
        let name = member.name.strip_suffix(".npy").unwrap_or(&member.name);
        Ok((name.to_string(), tensor))
    };
    members.into_iter().map(read).collect()
}

/// What the directory says about a member.
struct Member {
    name: String,
    method: u16,
    crc: u32,
    packed_bytes: u64,
    start: u64,
}

const END: [u8; 4] = *b"PK\x05\x06";
const END64: [u8; 4] = *b"PK\x06\x06";
const END64_LOCATOR: [u8; 4] = *b"PK\x06\x07";
const ENTRY: [u8; 4] = *b"PK\x01\x02";
const LOCAL: [u8; 4] = *b"PK\x03\x04";
/// NumPy's archives have a member per array; more than this is an attack or damage.
const LARGEST_DIRECTORY: u64 = 1 << 26;

fn damaged(what: impl std::fmt::Display) -> Error {
    Error::format("npz", format!("the archive is damaged: {what}"))
}

/// Little-endian fields of a record.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn take(&mut self, n: usize) -> Result<&'a [u8]> {
        let (field, rest) = self.0.split_at_checked(n).ok_or_else(|| damaged("a record ends early"))?;
        self.0 = rest;
        Ok(field)
    }

    fn number(&mut self, size: usize) -> Result<u64> {
        Ok(self.take(size)?.iter().rev().fold(0, |n, &byte| n << 8 | u64::from(byte)))
    }

    fn signature(&mut self, signature: [u8; 4], name: &str) -> Result<()> {
        if self.take(4)? == signature {
            Ok(())
        } else {
            Err(damaged(format_args!("the {name} is not where it should be")))
        }
    }
}

fn read_at(archive: &mut (impl Read + Seek), at: u64, n: u64) -> Result<Vec<u8>> {
    archive.seek(SeekFrom::Start(at)).map_err(cannot_read)?;
    let mut bytes = Vec::new();
    archive.take(n).read_to_end(&mut bytes).map_err(cannot_read)?;
    Ok(bytes)
}

fn directory(archive: &mut (impl Read + Seek)) -> Result<Vec<Member>> {
    let len = archive.seek(SeekFrom::End(0)).map_err(cannot_read)?;
    // The end record has 22 bytes and a comment of at most 65,535.
    let tail_start = len.saturating_sub(22 + 65_535);
    let tail = read_at(archive, tail_start, len)?;
    let end = tail.windows(4).rposition(|bytes| bytes == END);
    let end = end.ok_or_else(|| Error::format("npz", "the file is not a ZIP archive, or it is cut off"))?;
    let mut fields = Fields(&tail[end..]);
    fields.signature(END, "end record")?;
    fields.take(6)?;
    let (mut entries, mut size, mut start) = (fields.number(2)?, fields.number(4)?, fields.number(4)?);
    if fields.number(2)? != fields.0.len() as u64 {
        return Err(damaged("its end record does not end where the file does"));
    }
    if entries == 0xFFFF || size == 0xFFFF_FFFF || start == 0xFFFF_FFFF {
        let locator = end.checked_sub(20).ok_or_else(|| damaged("the ZIP64 locator is missing"))?;
        let mut fields = Fields(&tail[locator..]);
        fields.signature(END64_LOCATOR, "ZIP64 locator")?;
        fields.take(4)?;
        let record = read_at(archive, fields.number(8)?, 56)?;
        let mut fields = Fields(&record);
        fields.signature(END64, "ZIP64 end record")?;
        fields.take(28)?;
        (entries, size, start) = (fields.number(8)?, fields.number(8)?, fields.number(8)?);
    }
    if size > LARGEST_DIRECTORY || start.checked_add(size).is_none_or(|end| end > len) {
        return Err(damaged(format_args!("its directory lies outside: start {start}, bytes {size}, file {len}")));
    }
    let bytes = read_at(archive, start, size)?;
    let mut fields = Fields(&bytes);
    let members = (0..entries).map(|_| entry(&mut fields)).collect::<Result<Vec<_>>>()?;
    if !fields.0.is_empty() {
        return Err(damaged(format_args!("its directory holds more than it says: entries {entries}")));
    }
    Ok(members)
}

fn entry(fields: &mut Fields<'_>) -> Result<Member> {
    fields.signature(ENTRY, "entry of a member")?;
    fields.take(4)?;
    let flags = fields.number(2)?;
    let method = fields.number(2)? as u16;
    fields.take(4)?;
    let crc = fields.number(4)? as u32;
    let (mut packed_bytes, size) = (fields.number(4)?, fields.number(4)?);
    let [name, extra, comment] = [fields.number(2)?, fields.number(2)?, fields.number(2)?];
    fields.take(8)?;
    let mut start = fields.number(4)?;
    let name = String::from_utf8_lossy(fields.take(name as usize)?).into_owned();
    let mut extra = Fields(fields.take(extra as usize)?);
    fields.take(comment as usize)?;
    while let Ok(kind) = extra.number(2) {
        let len = extra.number(2)?;
        let mut field = Fields(extra.take(len as usize)?);
        if kind == 1 {
            // ZIP64: those of the three that did not fit, in this order.
            if size == 0xFFFF_FFFF {
                field.take(8)?;
            }
            for value in [&mut packed_bytes, &mut start] {
                if *value == 0xFFFF_FFFF {
                    *value = field.number(8)?;
                }
            }
        }
    }
    if flags & 1 != 0 {
        return Err(Error::format("npz", format!("encrypted members are not read: member {name}")));
    }
    Ok(Member { name, method, crc, packed_bytes, start })
}

fn read_member(archive: &mut (impl Read + Seek), member: &Member, device: &Device) -> Result<Tensor> {
    let local = read_at(archive, member.start, 30)?;
    let mut fields = Fields(&local);
    fields.signature(LOCAL, "member's header")?;
    fields.take(22)?;
    let skip = 30 + fields.number(2)? + fields.number(2)?;
    let start = member.start.checked_add(skip).ok_or_else(|| damaged("a member lies outside"))?;
    archive.seek(SeekFrom::Start(start)).map_err(cannot_read)?;
    let packed = archive.take(member.packed_bytes);
    let unpacked: Box<dyn Read + '_> = match member.method {
        0 => Box::new(packed),
        8 => Box::new(DeflateDecoder::new(packed)),
        method => {
            return Err(Error::format("npz", format!("the compression is not one that NumPy uses: method {method}")));
        }
    };
    let mut checked = CrcReader::new(unpacked);
    let tensor = npy::decode(&mut checked, device)?;
    if checked.crc().sum() != member.crc {
        return Err(damaged("the checksum of a member is wrong"));
    }
    Ok(tensor)
}
