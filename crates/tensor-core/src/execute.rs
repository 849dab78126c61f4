//! The one road from a tensor method to a backend: infer, choose the interpreter or device, execute, wrap.

use smallvec::{SmallVec, smallvec};

use crate::{Device, Error, Meta, Op, Result, Support, Tensor, Tensors, defer};

/// Runs an op with at least one input.
///
/// # Errors
/// What the op's shape-and-dtype rule rejects, operands on different devices, an op the device does not support,
/// and what the device reports.
pub fn execute(op: &Op, inputs: &[&Tensor]) -> Result<Tensors> {
    let [first, rest @ ..] = inputs else {
        return Err(Error::device(op.name().to_string(), "an op without inputs needs a device: use execute_on"));
    };
    // Tensors of a closed interpreter count as their plain values.
    if inputs.iter().any(|x| is_closed(x.place())) {
        let lowered: SmallVec<[Tensor; 4]> = inputs.iter().map(|x| plain(x)).collect();
        let lowered: SmallVec<[&Tensor; 4]> = lowered.iter().collect();
        return execute(op, &lowered);
    }
    let mut highest = first.place();
    for x in rest {
        let place = x.place();
        if place == highest {
            continue;
        }
        let (a, b) = (first.place().physical(), place.physical());
        if a != b {
            return Err(Error::device(
                op.name().to_string(),
                format!(
                    "operands are on different devices: {}; move one with .to(&device)",
                    if inputs.len() == 2 { format!("lhs {a}, rhs {b}") } else { format!("{a} and {b}") }
                ),
            ));
        }
        if place.backend().level() > highest.backend().level() {
            highest = place;
        }
    }
    run(highest, op, inputs)
}

/// Runs an op on a device; its inputs, if any, live there.
pub fn execute_on(device: &Device, op: &Op, inputs: &[&Tensor]) -> Result<Tensors> {
    if inputs.is_empty() { run(device.physical(), op, inputs) } else { execute(op, inputs) }
}

fn run(device: &Device, op: &Op, inputs: &[&Tensor]) -> Result<Tensors> {
    let record = op.record();
    let metas: SmallVec<[Meta; 4]> = inputs.iter().map(|x| x.meta()).collect();
    let outputs = record.infer(&metas)?;
    for meta in &outputs {
        meta.shape.check_len(|| record.name().to_string())?;
    }
    match device.backend().supports(op, &metas) {
        Support::Native => {}
        Support::Decompose => {
            return record.decompose(inputs).unwrap_or_else(|| {
                Err(Error::unsupported(record.name().to_string(), format!("has no decomposition for {device}")))
            });
        }
        Support::Unsupported(reason) => {
            let dtype = metas.first().map_or(outputs[0].dtype, |m| m.dtype);
            // The backend says `reason; remedy`.
            let (reason, remedy) = reason.split_once(';').unwrap_or((&reason, ""));
            let remedy = if remedy.is_empty() { String::new() } else { format!(";{remedy}") };
            return Err(Error::unsupported(
                record.name().to_string(),
                match op {
                    // Of a user's op it is the kernel that is missing.
                    Op::Custom(_) => format!("is not supported on {device} ({reason}){remedy}"),
                    _ => format!("dtype {dtype} is not supported on {device} ({reason}){remedy}"),
                },
            ));
        }
    }
    let backend = device.backend();
    let storages = if backend.base().is_some() {
        // An interpreter enters again with what it lowers.
        backend.execute(op, inputs, &outputs)?
    } else {
        if let Op::Map(map) = op
            && let Some(pending) = defer::put_off(device, map, inputs, &outputs)?
        {
            return Ok(smallvec![pending]);
        }
        defer::run(device, op, inputs, &outputs)?
    };
    Ok(outputs
        .into_iter()
        .zip(storages)
        .map(|(meta, storage)| Tensor::from_storage(storage, meta, device.clone()))
        .collect())
}

fn is_closed(device: &Device) -> bool {
    device.backend().base().is_some() && device.backend().level() == 0
}

/// The tensor below all closed interpreters.
fn plain(x: &Tensor) -> Tensor {
    let mut x = x.clone();
    while is_closed(x.place()) {
        match x.place().backend().lower(&x) {
            Some(lower) => x = lower,
            None => break,
        }
    }
    x
}
