//! The evidence of a breach as a safetensors file.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use safetensors::tensor::{Dtype, TensorView};
use tensor_core::expr::Value;
use tensor_core::{DType, Error, HostData, HostSlice, Result, Shape};

use super::judge::{Evidence, Run};
use crate::reference::Cell;

/// Writes inputs, results, and what these should have been with their bounds; gives the file's path.
pub(super) fn save(
    folder: Option<&Path>,
    ran: &Run<'_>,
    evidence: &Evidence,
    about: &[(&str, &str)],
) -> Result<PathBuf> {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    let folder = folder.map_or_else(default_folder, Path::to_path_buf);
    let plain: String = ran.name().chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    let path = folder.join(format!("{plain}-{}-{}.safetensors", std::process::id(), COUNTER.fetch_add(1, Relaxed)));
    write(&path, ran, evidence, about)
        .map(|()| path.clone())
        .map_err(|e| Error::io("lockstep", format!("cannot write the file ({e}): path {}", path.display())))
}

fn write(
    path: &Path,
    ran: &Run<'_>,
    evidence: &Evidence,
    about: &[(&str, &str)],
) -> Result<(), Box<dyn std::error::Error>> {
    let mut arrays: Vec<(String, &Shape, HostData)> = Vec::new();
    for (i, x) in ran.inputs.iter().enumerate() {
        arrays.push((format!("input.{i}"), x.layout.shape(), x.data.clone()));
    }
    for (k, (data, meta)) in ran.got.iter().zip(ran.outputs).enumerate() {
        arrays.push((format!("got.{k}"), &meta.shape, data.clone()));
        if let Some(cells) = evidence.want.get(k) {
            let (want, bound) = split(cells);
            arrays.push((format!("want.{k}"), &meta.shape, want));
            arrays.extend(bound.map(|bound| (format!("bound.{k}"), &meta.shape, bound)));
        }
    }
    let bytes: Vec<Vec<u8>> = arrays.iter().map(|(_, _, data)| to_bytes(data.as_slice())).collect();
    let mut views = Vec::new();
    for ((name, shape, data), bytes) in arrays.iter().zip(&bytes) {
        views.push((name, TensorView::new(file_dtype(data.dtype()), shape.to_vec(), bytes)?));
    }
    let parameters = ran.op.map_or_else(|| "upload".to_string(), |op| format!("{op:?}"));
    let about = about.iter().copied().chain([("op", &*parameters)]);
    let about: HashMap<String, String> = about.map(|(key, text)| (key.to_string(), text.to_string())).collect();
    let file = safetensors::serialize(views, Some(about))?;
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    Ok(std::fs::write(path, file)?)
}

fn default_folder() -> PathBuf {
    let in_target = Path::new("target").join("lockstep");
    if in_target.is_dir() { in_target } else { std::env::temp_dir().join("consort-lockstep") }
}

/// Values, and bounds where they are reals.
fn split(cells: &[Cell]) -> (HostData, Option<HostData>) {
    let int = |cell: &Cell| if let Value::Int(v) = cell { Some(*v) } else { None };
    if let Some(ints) = cells.iter().map(int).collect::<Option<Vec<i64>>>() {
        return (HostData::I64(ints), None);
    }
    let real = |cell: &Cell| match cell {
        Value::Real(v) => (v.value, v.error),
        Value::Int(v) => (*v as f64, 0.0),
    };
    let (values, bounds) = cells.iter().map(real).unzip();
    (HostData::F64(values), Some(HostData::F64(bounds)))
}

fn to_bytes(data: HostSlice<'_>) -> Vec<u8> {
    match data {
        HostSlice::F64(v) => v.iter().flat_map(|v| v.to_le_bytes()).collect(),
        HostSlice::F32(v) => v.iter().flat_map(|v| v.to_le_bytes()).collect(),
        HostSlice::F16(v) => v.iter().flat_map(|v| v.to_le_bytes()).collect(),
        HostSlice::BF16(v) => v.iter().flat_map(|v| v.to_le_bytes()).collect(),
        HostSlice::I64(v) => v.iter().flat_map(|v| v.to_le_bytes()).collect(),
        HostSlice::I32(v) => v.iter().flat_map(|v| v.to_le_bytes()).collect(),
        HostSlice::U8(v) => v.to_vec(),
        HostSlice::Bool(v) => v.iter().map(|&v| v.into()).collect(),
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
