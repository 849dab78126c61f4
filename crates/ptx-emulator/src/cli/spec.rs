//! Arguments of kernels as the command line spells them.

use super::npy;
use half::{bf16, f16};
use ptx_emulator::{Arg, Device, Stats};

/// An argument, and its buffer if it has one.
pub(super) struct Prepared {
    pub(super) arg: Arg,
    pub(super) buffer: Option<Saved>,
}

/// A buffer that can be written to a file.
pub(super) struct Saved {
    pub(super) address: u64,
    pub(super) bytes: usize,
    pub(super) descr: &'static str,
    pub(super) shape: Vec<usize>,
}

/// Types by name, with NumPy's name for them.
const TYPES: &[(&str, &str, usize)] = &[
    ("f32", "f4", 4),
    ("f64", "f8", 8),
    ("f16", "f2", 2),
    ("bf16", "u2", 2),
    ("i8", "i1", 1),
    ("i16", "i2", 2),
    ("i32", "i4", 4),
    ("i64", "i8", 8),
    ("u8", "u1", 1),
    ("u16", "u2", 2),
    ("u32", "u4", 4),
    ("u64", "u8", 8),
];

pub(super) fn prepare(device: &mut Device, spec: &str, name: &str) -> Result<Prepared, String> {
    let fail = |what: String| Err(format!("--arg {spec}: {what}"));
    if spec == "null" {
        return Ok(Prepared { arg: Arg::address(0), buffer: None });
    }
    if spec.ends_with(".npy") {
        let file = std::fs::read(spec).map_err(|error| format!("--arg {spec}: {error}"))?;
        let array = npy::read(&file).map_err(|error| format!("--arg {spec}: {error}"))?;
        let buffer = allocate(device, name, array.bytes.len(), array.descr, array.shape)?;
        device.write_bytes(buffer.address, &array.bytes).map_err(|error| error.to_string())?;
        return Ok(Prepared { arg: Arg::address(buffer.address), buffer: Some(buffer) });
    }
    let (spec_type, written) = match spec.strip_prefix("uninit:") {
        Some(rest) => (rest, false),
        None => (spec, true),
    };
    if let Some((ty, rest)) = spec_type.split_once('[') {
        let len = rest.strip_suffix(']').and_then(|len| len.parse::<usize>().ok());
        let (Some((_, descr, width)), Some(len)) = (TYPES.iter().find(|(known, ..)| *known == ty), len) else {
            return fail("expected a buffer such as f32[1024]".into());
        };
        let Some(bytes) = len.checked_mul(*width) else { return fail("too long".into()) };
        let buffer = allocate(device, name, bytes, descr, vec![len])?;
        if written {
            device.fill_bytes(buffer.address, bytes as u64, 0).map_err(|error| error.to_string())?;
        }
        return Ok(Prepared { arg: Arg::address(buffer.address), buffer: Some(buffer) });
    }
    let Some((ty, value)) = spec.split_once(':') else {
        return fail("expected a file, a buffer, null or a number such as i32:7".into());
    };
    match scalar(ty, value) {
        Some(arg) => Ok(Prepared { arg, buffer: None }),
        None => fail(format!("expected a number of type {ty}")),
    }
}

fn allocate(
    device: &mut Device,
    name: &str,
    bytes: usize,
    descr: &'static str,
    shape: Vec<usize>,
) -> Result<Saved, String> {
    let address = device.alloc_bytes(bytes as u64, name).map_err(|error| error.to_string())?;
    Ok(Saved { address, bytes, descr, shape })
}

fn scalar(ty: &str, value: &str) -> Option<Arg> {
    Some(match ty {
        "f32" => Arg::value(value.parse::<f32>().ok()?),
        "f64" => Arg::value(value.parse::<f64>().ok()?),
        "f16" => Arg::value(f16::from_f64(value.parse().ok()?)),
        "bf16" => Arg::value(bf16::from_f64(value.parse().ok()?)),
        "i8" => Arg::value(value.parse::<i8>().ok()?),
        "i16" => Arg::value(value.parse::<i16>().ok()?),
        "i32" => Arg::value(value.parse::<i32>().ok()?),
        "i64" => Arg::value(value.parse::<i64>().ok()?),
        "u8" => Arg::value(value.parse::<u8>().ok()?),
        "u16" => Arg::value(value.parse::<u16>().ok()?),
        "u32" => Arg::value(value.parse::<u32>().ok()?),
        "u64" => Arg::value(value.parse::<u64>().ok()?),
        _ => return None,
    })
}

/// Counts as a table.
pub(super) fn stats_text(stats: &Stats) -> String {
    let mut text = format!(
        "blocks {}\nwarp instructions {}\nlane instructions {}\n\
         shared requests {}, {:.2} times the passes without bank conflicts\n\
         global requests {}, {:.2} times the sectors if coalesced\nmatrix multiply-adds {}\n",
        stats.blocks,
        stats.warp_instructions,
        stats.lane_instructions,
        stats.shared_requests,
        stats.bank_conflict_factor(),
        stats.global_requests,
        stats.coalescing_factor(),
        stats.matrix_macs
    );
    let mut counts: Vec<_> = stats.by_opcode.iter().collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    for (name, count) in counts {
        text += &format!("{count:>12} {name}\n");
    }
    text
}
