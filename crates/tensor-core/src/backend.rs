//! What a backend implements. Someone outside this workspace can: see docs/adding-a-backend.md.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use smallvec::SmallVec;

use crate::expr::Accuracy;
use crate::{Device, Error, Expr, HostData, HostSlice, Layout, Meta, Movement, Op, Result, Shape, Tensor};

/// A backend's own storage, behind a shared pointer that core never looks into.
pub type Storage = Arc<dyn Any + Send + Sync>;
/// The storages of an op's outputs, row-major each.
pub type Storages = SmallVec<[Storage; 1]>;

/// A kind of device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// The processor.
    Cpu,
    /// An NVIDIA GPU, or the emulator that stands in for one.
    Cuda,
    /// Any GPU, through Vulkan, Metal or DX12.
    Wgpu,
    /// A backend from outside this workspace.
    Other,
}

impl Kind {
    /// The name used in device strings.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Cuda => "cuda",
            Self::Wgpu => "wgpu",
            Self::Other => "other",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// What is known about a device.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceInfo {
    /// Its kind.
    pub kind: Kind,
    /// Its number among its kind.
    pub index: usize,
    /// What errors and prints call it: `cpu`, `cuda:0`, `cuda-emulated:0`.
    pub label: String,
    /// The product's name.
    pub name: String,
    /// Compute capability, adapter limits or instruction set, in words.
    pub capability: String,
    /// Whether it is real hardware of its kind, not an emulator or a software adapter.
    pub is_hardware: bool,
    /// How accurate its primitives are; parity holds it to that.
    pub accuracy: Accuracy,
}

/// Whether a backend runs an op.
#[derive(Clone, Debug, PartialEq)]
pub enum Support {
    /// Yes.
    Native,
    /// No, but it runs the op's decomposition.
    Decompose,
    /// No, for this reason and with this remedy: `WGSL has no f64; cast to f32 or use cpu`.
    Unsupported(String),
}

/// Row-major host values and their shape.
#[derive(Clone, Copy, Debug)]
pub struct HostView<'a> {
    /// The sizes.
    pub shape: &'a Shape,
    /// As many values as the shape has elements.
    pub data: HostSlice<'a>,
}

/// A device's memory, in bytes. `None` where the system cannot tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryStatus {
    /// Held by tensors.
    pub used_bytes: usize,
    /// Held by tensors or kept for reuse.
    pub reserved_bytes: usize,
    /// The most that tensors held since the last [`Device::reset_peak`].
    pub peak_bytes: usize,
    /// The limit set with [`Device::set_memory_limit`].
    pub limit_bytes: Option<usize>,
    /// What the device has.
    pub total_bytes: Option<usize>,
    /// What of it is free.
    pub free_bytes: Option<usize>,
}

/// An optimizer's step as data: elementwise expressions over param, grad, state 0, state 1, …
#[derive(Clone, Debug)]
pub struct UpdateRule {
    /// The new param, then the new states, each of its target's dtype. Numbers (learning rate, step) are arguments.
    pub outputs: SmallVec<[Expr; 4]>,
}

/// What an update writes.
pub struct Target<'a> {
    /// Overwritten with the rule's first output.
    pub param: &'a mut Tensor,
    /// Read; the param's shape and dtype.
    pub grad: &'a Tensor,
    /// Overwritten with the further outputs; the param's shape.
    pub state: &'a mut [Tensor],
}

/// The devices that run tensors, and the interpreters that wrap them.
///
/// Core has checked shapes, dtypes, axes and devices before it calls: a backend reports only what happens while it
/// works (memory, a lost device, an index out of range). Work may be asynchronous; only `download` and
/// `synchronize` wait. Layouts of inputs are any; outputs are row-major.
pub trait Backend: Send + Sync {
    /// What is known about the device.
    fn info(&self) -> &DeviceInfo;

    /// Whether this op on these inputs runs here.
    fn supports(&self, op: &Op, inputs: &[Meta]) -> Support;

    /// Copies host values to the device.
    fn upload(&self, data: HostView<'_>) -> Result<Storage>;

    /// Copies a tensor's elements to the host, row-major. Waits.
    fn download(&self, x: &Tensor) -> Result<HostData>;

    /// Runs an op; one storage per output, row-major, of exactly these shapes and dtypes.
    fn execute(&self, op: &Op, inputs: &[&Tensor], outputs: &[Meta]) -> Result<Storages>;

    /// Applies an optimizer's rule to all targets, in place where a target's storage has no other owner; a shared
    /// one is replaced, so that views and clones keep their values. Nothing is changed when it fails.
    fn update(&self, rule: &UpdateRule, targets: &mut [Target<'_>]) -> Result<()>;

    /// Waits until all work is done.
    fn synchronize(&self) -> Result<()>;

    /// Memory in use.
    fn memory(&self) -> Result<MemoryStatus>;

    /// Gives memory kept for reuse back to the system.
    fn release_cached(&self) -> Result<()>;

    /// Elements from which it pays to put elementwise work off ([`crate::Deferral`]); the largest number: never.
    fn defers_from(&self) -> usize {
        usize::MAX
    }

    /// Sets the most that may be reserved; `None` lifts the limit.
    fn set_memory_limit(&self, bytes: Option<usize>) -> Result<()> {
        let _ = bytes;
        Err(Error::unsupported("set_memory_limit", format!("{} has no settable limit", self.info().label)))
    }

    /// Starts a new peak at what is used now.
    fn reset_peak(&self) {}

    /// For interpreters that wrap a device: how deep it is nested; the highest among the operands runs an op.
    /// 0 for devices, and for an interpreter that has closed: its tensors count as their plain values.
    fn level(&self) -> u64 {
        0
    }

    /// For interpreters: the device underneath.
    fn base(&self) -> Option<&Device> {
        None
    }

    /// For interpreters: the plain value of one of its own tensors.
    fn lower(&self, x: &Tensor) -> Option<Tensor> {
        let _ = x;
        None
    }

    /// A movement of one of its own tensors, whose new layout core has worked out. Devices share the storage.
    fn view(&self, movement: &Movement, x: &Tensor, layout: Layout) -> Result<Tensor> {
        let _ = movement;
        Ok(x.with_layout(layout))
    }
}

impl MemoryStatus {
    /// Bytes in binary units: `1.5 GiB`.
    pub fn in_units(bytes: usize) -> String {
        let units = ["B", "KiB", "MiB", "GiB", "TiB"];
        let mut value = bytes as f64;
        let mut unit = 0;
        while value >= 1024.0 && unit + 1 < units.len() {
            value /= 1024.0;
            unit += 1;
        }
        if unit == 0 { format!("{bytes} B") } else { format!("{value:.1} {}", units[unit]) }
    }

    /// What the device has and what of it is free, in words: `12.0 GiB of 24.0 GiB free (50.0 %)`.
    pub fn available(&self) -> String {
        match (self.free_bytes, self.total_bytes) {
            (Some(free), Some(total)) => {
                let percent = 100.0 * free as f64 / total.max(1) as f64;
                format!("{} of {} free ({percent:.1} %)", Self::in_units(free), Self::in_units(total))
            }
            (None, Some(total)) => format!("{} in all", Self::in_units(total)),
            _ => "memory unknown".to_string(),
        }
    }
}

impl fmt::Display for MemoryStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "used {}", Self::in_units(self.used_bytes))?;
        if let Some(total) = self.limit_bytes.or(self.total_bytes) {
            let percent = 100.0 * self.used_bytes as f64 / total.max(1) as f64;
            write!(f, " of {} ({percent:.1} %)", Self::in_units(total))?;
        }
        write!(
            f,
            ", reserved {}, peak {}; {}",
            Self::in_units(self.reserved_bytes),
            Self::in_units(self.peak_bytes),
            self.available()
        )
    }
}
