//! Where a backend may differ from the contract, and why. A row that no case needs is a failure: the table stays true.

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
    /// Why.
    pub reason: &'static str,
    /// What happens instead.
    pub observed: &'static str,
}

/// Every deviation of every backend of this workspace.
pub const DEVIATIONS: &[Deviation] = &[];

/// The deviation of an op on a device, if the table has one.
pub(super) fn of<'a>(table: &'a [Deviation], op: &str, dtype: DType, device: &DeviceInfo) -> Option<&'a Deviation> {
    let is_it =
        |d: &&Deviation| d.kind == device.kind && d.dtypes.contains(&dtype) && super::pattern::is_like(d.op, op);
    table.iter().find(is_it)
}
