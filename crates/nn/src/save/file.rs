//! The safetensors format: named arrays to and from a file.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::HashMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use safetensors::tensor::{Dtype, TensorView};
use safetensors::{SafeTensorError, SafeTensors, View};
use tensor_core::{DType, Element, Error, HostData, Result, Tensor};

/// What is written under a name.
pub(crate) struct Entry {
    pub(crate) name: String,
    pub(crate) values: Values,
}

/// Values on a device, read when their turn comes, or a scalar on the host.
pub(crate) enum Values {
    Device(Tensor),
    Scalar(HostData),
}

/// An entry while it is written; keeps the error of its download, which [`View`] cannot return.
struct Writing<'a> {
    values: &'a Values,
    failure: &'a OnceCell<Error>,
}

impl View for Writing<'_> {
    fn dtype(&self) -> Dtype {
        file_dtype(match self.values {
            Values::Device(tensor) => tensor.dtype(),
            Values::Scalar(value) => value.dtype(),
        })
    }

    fn shape(&self) -> &[usize] {
        match self.values {
            Values::Device(tensor) => tensor.dims(),
            Values::Scalar(_) => &[],
        }
    }

    fn data(&self) -> Cow<'_, [u8]> {
        Cow::Owned(match self.values {
            Values::Device(tensor) => tensor.to_host().map(|data| bytes(&data)).unwrap_or_else(|error| {
                let _ = self.failure.set(error);
                vec![0; self.data_len()]
            }),
            Values::Scalar(value) => bytes(value),
        })
    }

    fn data_len(&self) -> usize {
        match self.values {
            Values::Device(tensor) => tensor.len() * tensor.dtype().size_bytes(),
            Values::Scalar(value) => value.dtype().size_bytes(),
        }
    }
}

/// Writes all entries, or leaves what was at `path`.
pub(crate) fn write(op: &'static str, path: &Path, entries: Vec<Entry>) -> Result<()> {
    // A folder cannot be replaced, and a pipe or a device must not be.
    if fs::metadata(path).is_ok_and(|there| !there.is_file()) {
        return Err(not_a_file(op, path));
    }
    let failure = OnceCell::new();
    // One entry: more would stand in an order of their own each time.
    let metadata = HashMap::from([("format".to_string(), "pt".to_string())]);
    let views = entries.iter().map(|entry| (&entry.name, Writing { values: &entry.values, failure: &failure }));
    let bytes = safetensors::serialize(views, Some(metadata))
        .map_err(|e| Error::format(op, format!("cannot be written as safetensors ({e}): path {}", path.display())))?;
    if let Some(error) = failure.into_inner() {
        return Err(error.at(op));
    }
    replace(path, &bytes)
        .map_err(|e| Error::io(op, format!("cannot write the file ({e}): path {}", path.display())).with_source(e))
}

/// Writes beside `path`, then renames.
fn replace(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    // A link stays one: what it points to is replaced.
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    let no_name = || std::io::Error::new(std::io::ErrorKind::InvalidInput, "the path has no file name");
    let mut name = std::ffi::OsString::from(".");
    name.push(path.file_name().ok_or_else(no_name)?);
    name.push(format!(".{}-{}.tmp", std::process::id(), COUNTER.fetch_add(1, Relaxed)));
    let folder =
        path.parent().filter(|folder| !folder.as_os_str().is_empty()).map_or_else(|| PathBuf::from("."), Into::into);
    let beside = folder.join(name);

    let written = fs::File::create_new(&beside).and_then(|mut file| {
        file.write_all(bytes)?;
        file.sync_all()
    });
    if let Err(error) = written.and_then(|()| fs::rename(&beside, &path)) {
        let _ = fs::remove_file(&beside);
        return Err(error);
    }
    // The rename itself, where a folder can be synchronised.
    if let Ok(folder) = fs::File::open(folder) {
        let _ = folder.sync_all();
    }
    Ok(())
}

/// A file's bytes, found to be whole.
pub(crate) struct Contents {
    bytes: Vec<u8>,
}

impl Contents {
    /// Reads and checks a file.
    pub(crate) fn read(op: &'static str, path: &Path) -> Result<Self> {
        let unreadable = |e: std::io::Error| {
            Error::io(op, format!("cannot read the file ({e}): path {}", path.display())).with_source(e)
        };
        // A folder, a pipe or a device has no end to read to.
        if !fs::metadata(path).map_err(unreadable)?.is_file() {
            return Err(not_a_file(op, path));
        }
        let bytes = fs::read(path).map_err(unreadable)?;
        match SafeTensors::deserialize(&bytes) {
            Ok(_) => Ok(Self { bytes }),
            Err(e) => Err(Error::format(
                op,
                format!(
                    "the file is cut short, damaged or no safetensors file ({}): path {}",
                    reason(&e),
                    path.display()
                ),
            )
            .with_source(e)),
        }
    }

    /// The values for what is wanted, in these shapes and dtypes; else all that differs. Nothing else but `others` may be there.
    pub(crate) fn take(
        &self,
        wanted: &[(String, Tensor)],
        others: &[String],
    ) -> Result<Vec<(String, HostData)>, String> {
        let file = self.file();
        let (mut missing, mut differing, mut values) = (Vec::new(), Vec::new(), Vec::new());
        for (name, old) in wanted {
            match file.tensor(name) {
                Err(_) => missing.push(name.clone()),
                Ok(view) if view.shape() != old.dims() || view.dtype() != file_dtype(old.dtype()) => {
                    differing.push(format!(
                        "{name} (wanted {} {}, file {:?} {})",
                        old.shape(),
                        old.dtype(),
                        view.shape(),
                        view.dtype().to_string().to_lowercase()
                    ));
                }
                Ok(view) => values.push((name.clone(), host(old.dtype(), &view))),
            }
        }
        let names: std::collections::HashSet<&str> =
            wanted.iter().map(|(name, _)| &**name).chain(others.iter().map(|name| &**name)).collect();
        let mut unexpected: Vec<String> =
            file.names().into_iter().filter(|name| !names.contains(name)).map(String::from).collect();
        unexpected.sort_unstable();
        let problems = [("missing", missing), ("unexpected", unexpected), ("different", differing)];
        let problems: Vec<String> = problems
            .iter()
            .filter(|(_, names)| !names.is_empty())
            .map(|(what, names)| format!("{what} {}", some(names)))
            .collect();
        if problems.is_empty() { Ok(values) } else { Err(problems.join("; ")) }
    }

    /// The only element of a host-side entry.
    pub(crate) fn scalar<T: Element>(&self, name: &str) -> Option<T> {
        let view = self.file().tensor(name).ok()?;
        if !view.shape().is_empty() || view.dtype() != file_dtype(T::DTYPE) {
            return None;
        }
        T::from_host(host(T::DTYPE, &view))?.first().copied()
    }

    fn file(&self) -> SafeTensors<'_> {
        SafeTensors::deserialize(&self.bytes).expect("invariant: checked when it was read")
    }
}

fn not_a_file(op: &'static str, path: &Path) -> Error {
    Error::io(op, format!("is not a file: path {}", path.display()))
}

/// The first few of a list. A file may hold any names: long ones are cut, and what would not print is escaped.
fn some(names: &[String]) -> String {
    const SHOWN: usize = 8;
    const LONGEST: usize = 200;
    let shown = |name: &String| {
        let cut: String = name.chars().take(LONGEST).flat_map(char::escape_debug).collect();
        if name.chars().nth(LONGEST).is_some() { cut + ".." } else { cut }
    };
    let mut text = names.iter().take(SHOWN).map(shown).collect::<Vec<_>>().join(", ");
    if names.len() > SHOWN {
        text += &format!(" and {} more", names.len() - SHOWN);
    }
    text
}

fn reason(error: &SafeTensorError) -> String {
    match error {
        SafeTensorError::HeaderTooSmall | SafeTensorError::InvalidHeaderLength => "its header is incomplete".into(),
        SafeTensorError::MetadataIncompleteBuffer => "its values are incomplete".into(),
        SafeTensorError::HeaderTooLarge => "its header claims to be too large".into(),
        other => other.to_string(),
    }
}

fn file_dtype(dtype: DType) -> Dtype {
    match dtype {
        DType::F64 => Dtype::F64,
        DType::F32 => Dtype::F32,
        DType::F16 => Dtype::F16,
        DType::BF16 => Dtype::BF16,
        DType::I64 => Dtype::I64,
        DType::I32 => Dtype::I32,
        DType::U8 => Dtype::U8,
        DType::Bool => Dtype::BOOL,
    }
}

/// Little-endian bytes.
fn bytes(data: &HostData) -> Vec<u8> {
    match data {
        HostData::F64(v) => v.iter().flat_map(|v| v.to_le_bytes()).collect(),
        HostData::F32(v) => v.iter().flat_map(|v| v.to_le_bytes()).collect(),
        HostData::F16(v) => v.iter().flat_map(|v| v.to_le_bytes()).collect(),
        HostData::BF16(v) => v.iter().flat_map(|v| v.to_le_bytes()).collect(),
        HostData::I64(v) => v.iter().flat_map(|v| v.to_le_bytes()).collect(),
        HostData::I32(v) => v.iter().flat_map(|v| v.to_le_bytes()).collect(),
        HostData::U8(v) => v.clone(),
        HostData::Bool(v) => v.iter().map(|&v| v.into()).collect(),
    }
}

/// A view's values; it has this dtype.
fn host(dtype: DType, view: &TensorView<'_>) -> HostData {
    fn each<const N: usize, T>(data: &[u8], from: fn([u8; N]) -> T) -> Vec<T> {
        data.as_chunks::<N>().0.iter().map(|&chunk| from(chunk)).collect()
    }
    let data = view.data();
    match dtype {
        DType::F64 => HostData::F64(each(data, f64::from_le_bytes)),
        DType::F32 => HostData::F32(each(data, f32::from_le_bytes)),
        DType::F16 => HostData::F16(each(data, half::f16::from_le_bytes)),
        DType::BF16 => HostData::BF16(each(data, half::bf16::from_le_bytes)),
        DType::I64 => HostData::I64(each(data, i64::from_le_bytes)),
        DType::I32 => HostData::I32(each(data, i32::from_le_bytes)),
        DType::U8 => HostData::U8(data.to_vec()),
        DType::Bool => HostData::Bool(data.iter().map(|&b| b != 0).collect()),
    }
}
