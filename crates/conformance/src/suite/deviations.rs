//! Where a backend may differ from the contract, and why. An op that passes all the same is a failure, so the table stays
//! true; but for rows about types that a device lacks, where an op may do without.

use tensor_core::{DType, DeviceInfo, Kind};

/// An op and a dtype that a kind of device does not run as the contract says.
#[derive(Clone, Copy, Debug)]
pub struct Deviation {
    /// The op's name, or a pattern with `*`.
    pub op: &'static str,
    /// The dtypes.
    pub dtypes: &'static [DType],
    /// The kind of device.
    pub kind: Kind,
    /// What the device lacks, as [`DeviceInfo::capability`] would list it; the row is about devices without it.
    pub lacking: Option<&'static str>,
    /// Why.
    pub reason: &'static str,
    /// What happens instead.
    pub observed: &'static str,
}

const FLOATS: &[DType] = &[DType::F32, DType::F16, DType::BF16];

/// Every deviation of every backend of this workspace.
pub const DEVIATIONS: &[Deviation] = &[
    Deviation {
        op: "*",
        dtypes: &[DType::F64],
        kind: Kind::Wgpu,
        lacking: Some("f64"),
        reason: "most GPUs have no 64-bit floats in WGSL",
        observed: "an error that says so; elements are moved all the same",
    },
    Deviation {
        op: "*",
        dtypes: &[DType::I64],
        kind: Kind::Wgpu,
        lacking: Some("i64"),
        reason: "some GPUs have no 64-bit integers in WGSL",
        observed: "an error that says so; elements are moved and serve as indices all the same",
    },
    Deviation {
        op: "cast",
        dtypes: &DType::ALL,
        kind: Kind::Wgpu,
        lacking: Some("f64"),
        reason: "there is no casting to what the adapter does not compute in",
        observed: "an error that says so",
    },
    Deviation {
        op: "loss::nll",
        dtypes: FLOATS,
        kind: Kind::Wgpu,
        lacking: Some("i64"),
        reason: "the class that is ignored is found by comparing indices of 64 bits",
        observed: "an error that says so; indices of 32 bits do",
    },
    Deviation {
        op: "loss::cross_entropy",
        dtypes: FLOATS,
        kind: Kind::Wgpu,
        lacking: Some("i64"),
        reason: "the class that is ignored is found by comparing indices of 64 bits",
        observed: "an error that says so; indices of 32 bits do",
    },
    Deviation {
        op: "*normalize",
        dtypes: FLOATS,
        kind: Kind::Wgpu,
        lacking: Some("16 bindings"),
        reason: "the gradient of a gradient is one expression over eight tensors",
        observed: "an error that says so; first gradients are right",
    },
];

/// The deviation of an op on a device, if the table has one.
pub(super) fn of<'a>(table: &'a [Deviation], op: &str, dtype: DType, device: &DeviceInfo) -> Option<&'a Deviation> {
    let is_it = |d: &&Deviation| {
        let lacks = |what: &str| !device.capability.split(", ").any(|has| has == what);
        d.kind == device.kind
            && d.dtypes.contains(&dtype)
            && d.lacking.is_none_or(lacks)
            && super::pattern::is_like(d.op, op)
    };
    table.iter().find(is_it)
}
