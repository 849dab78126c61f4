//! What is asked of every case: each check runs it on the device and on the reference, and says what it saw.

use tensor_core::op::Tolerance;
use tensor_core::{Device, Error, HostData, Op, Result, Tensor};

use super::case::{Case, Subject, Trial};
use super::draw::Draw;
use super::input::Input;
use crate::compare::{Agreement, allowed, compare};
use crate::reference;

mod decomposed;
mod forward;
mod gradient;

/// A check, by name.
pub struct Check {
    /// The name in reports.
    pub name: &'static str,
    /// Whether it judges derivatives: its ulps stand in a column of their own.
    pub is_gradient: bool,
    /// Runs it.
    pub run: fn(&Trial, &Device) -> Verdict,
}

/// What a check found.
pub enum Verdict {
    /// The device is right.
    Passed(Agreement),
    /// There is nothing to judge: no float is differentiated, no composite is executed.
    Inapplicable,
    /// The device declines the op or the dtype: the error that a user sees.
    Unsupported(String),
    /// The device is wrong.
    Failed(String),
}

/// Every check, cheapest first.
pub const CHECKS: &[Check] = &[
    Check { name: "forward", is_gradient: false, run: forward::check },
    Check { name: "gradient", is_gradient: true, run: gradient::first },
    Check { name: "second gradient", is_gradient: true, run: gradient::second },
    Check { name: "decomposition", is_gradient: false, run: decomposed::check },
];

/// What a device and the reference did with the same call.
pub(super) type Pair = (Result<Vec<Tensor>>, Result<Vec<Tensor>>);

/// Judges outputs: as many, each of the shape and dtype, and every element within its bound.
pub(super) fn judge(device: &Device, (got, want): Pair, ops: &[Op], is_integral: bool) -> Verdict {
    let (got, want) = match (got, want) {
        (Ok(got), Ok(want)) => (got, want),
        (Err(got), _) if got.is_unsupported() => return Verdict::Unsupported(got.to_string()),
        (Err(got), Err(want)) => return same_error(device, &got, &want),
        (Err(got), Ok(_)) => return Verdict::Failed(format!("fails, but should not: {got}")),
        // A device that works asynchronously finds out when its results are waited for.
        (Ok(got), Err(want)) => match got.iter().try_for_each(|y| y.to_host().map(drop)) {
            Err(late) => return same_error(device, &late, &want),
            Ok(()) => return Verdict::Failed(format!("runs, but should fail with: {want}")),
        },
    };
    if got.len() != want.len() {
        return Verdict::Failed(format!("{} outputs, not {}", got.len(), want.len()));
    }
    let mut seen = Agreement::default();
    for (i, (got, want)) in got.iter().zip(&want).enumerate() {
        let which = if want.dtype().is_float() || i > 0 { format!("output {i}: ") } else { String::new() };
        if got.meta() != want.meta() {
            let metas = (got.shape(), got.dtype(), want.shape(), want.dtype());
            return Verdict::Failed(format!("{which}is {} {}, not {} {}", metas.0, metas.1, metas.2, metas.3));
        }
        let values = match got.to_host() {
            Ok(values) => values,
            Err(error) => return Verdict::Failed(format!("{which}download fails: {error}")),
        };
        let cells = allowed(&reference::cells(want), tolerance(ops), want.dtype());
        match compare(&values, want.shape(), &cells, is_integral) {
            Ok(agreement) => {
                seen.max_used = seen.max_used.max(agreement.max_used);
                if agreement.max_ulps >= seen.max_ulps {
                    seen = Agreement { max_used: seen.max_used, ..agreement };
                }
            }
            Err(breach) => return Verdict::Failed(format!("{which}{breach}")),
        }
    }
    Verdict::Passed(seen)
}

/// The tolerance of the one op that was executed; of several, the widest scale: their bounds are in the cells.
fn tolerance(ops: &[Op]) -> Tolerance {
    if let [op] = ops {
        return op.record().contract().tolerance;
    }
    let scale = |op: &Op| match op.record().contract().tolerance {
        Tolerance::Sum { scale } | Tolerance::Product { scale } | Tolerance::Decomposed { scale } => scale,
        _ => 1.0,
    };
    Tolerance::Decomposed { scale: ops.iter().map(scale).fold(1.0, f64::max) }
}

/// Errors come from core, with the same text wherever they are found.
fn same_error(device: &Device, got: &Error, want: &Error) -> Verdict {
    let got = got.to_string().replace(device.label(), "reference");
    if got == want.to_string() {
        Verdict::Passed(Agreement::default())
    } else {
        Verdict::Failed(format!("fails with another error: {got:?}, not {:?}", want.to_string()))
    }
}

/// The bits of host values: equal bits are equal values, NaN included.
fn bits(values: &HostData) -> Vec<u64> {
    match values {
        HostData::F64(v) => v.iter().map(|v| v.to_bits()).collect(),
        HostData::F32(v) => v.iter().map(|v| v.to_bits().into()).collect(),
        HostData::F16(v) => v.iter().map(|v| v.to_bits().into()).collect(),
        HostData::BF16(v) => v.iter().map(|v| v.to_bits().into()).collect(),
        HostData::I64(v) => v.iter().map(|&v| v as u64).collect(),
        HostData::I32(v) => v.iter().map(|&v| v as u64).collect(),
        HostData::U8(v) => v.iter().map(|&v| v.into()).collect(),
        HostData::Bool(v) => v.iter().map(|&v| v.into()).collect(),
    }
}

/// The bits of tensors.
fn all_bits(tensors: &[Tensor]) -> Result<Vec<Vec<u64>>> {
    tensors.iter().map(|x| Ok(bits(&x.to_host()?))).collect()
}

/// A call that core rejects: the device and the reference reject it, too, with the same text.
pub(super) fn rejected(
    subject: &Subject,
    case: &Case,
    device: &Device,
    error: &Error,
) -> std::result::Result<(), String> {
    let mut draw = Draw::new(&case.choices);
    // As `Trial::new` draws.
    let _ = (draw.below(1), draw.below(1), draw.below(1));
    let call = (subject.draw)(&mut draw, case.dtype);
    let on = |device: &Device| {
        let zeros = |input: &Input| Tensor::zeros(&input.dims[..], (device, input.dtype(case.dtype)));
        let inputs = call.inputs.iter().map(zeros).collect::<Result<Vec<_>>>()?;
        (call.run)((device, case.dtype), &inputs)
    };
    match on(device) {
        Ok(_) => Err(format!("runs, but should fail with: {error}")),
        Err(got) if got.is_unsupported() => Ok(()),
        Err(got) if got.to_string().replace(device.label(), "probe") == error.to_string() => Ok(()),
        Err(got) => Err(format!("fails with another error: {got}, not {error}")),
    }
}
