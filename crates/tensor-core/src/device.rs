//! A place where tensors live and work is done.

use std::fmt;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::Arc;

use crate::{Backend, DType, DeviceInfo, MemoryStatus, Result, Target, Tensor, UpdateRule, stats};

/// A device: a shared handle to a [`Backend`]. Equal when it is the same one.
#[derive(Clone)]
pub struct Device(Arc<dyn Backend>);

impl Device {
    /// A device run by `backend`: how a backend from outside joins in.
    pub fn new(backend: Arc<dyn Backend>) -> Self {
        Self(backend)
    }

    /// The backend.
    pub fn backend(&self) -> &dyn Backend {
        &*self.0
    }

    /// The physical device: itself, unless this is an interpreter around one.
    pub fn physical(&self) -> &Device {
        let mut device = self;
        while let Some(base) = device.0.base() {
            device = base;
        }
        device
    }

    /// What is known about it.
    pub fn info(&self) -> &DeviceInfo {
        self.0.info()
    }

    /// What errors and prints call it: `cpu`, `cuda:0`.
    pub fn label(&self) -> &str {
        &self.0.info().label
    }

    /// [`Backend::update`], once what is pending among the targets has been computed.
    pub fn update(&self, rule: &UpdateRule, targets: &mut [Target<'_>]) -> Result<()> {
        for target in targets.iter() {
            let tensors = [&*target.param, target.grad].into_iter().chain(target.state.iter());
            tensors.into_iter().try_for_each(Tensor::force)?;
        }
        self.0.update(rule, targets)
    }

    /// Memory used, reserved, at its peak, free and in total, where the system can tell.
    pub fn memory(&self) -> Result<MemoryStatus> {
        self.0.memory()
    }

    /// Waits until all work is done that the device has been given; [pending](crate::Deferral) work has not been.
    pub fn synchronize(&self) -> Result<()> {
        stats::count_wait();
        self.0.synchronize()
    }

    /// Gives memory kept for reuse back to the system.
    pub fn release_cached(&self) -> Result<()> {
        self.0.release_cached()
    }

    /// Sets the most bytes that may be reserved; `None` lifts the limit. Beyond it allocation fails with
    /// [`crate::Error::is_out_of_memory`].
    pub fn set_memory_limit(&self, bytes: Option<usize>) -> Result<()> {
        self.0.set_memory_limit(bytes)
    }

    /// Starts a new memory peak at what is used now.
    pub fn reset_peak(&self) {
        self.0.reset_peak();
    }
}

// A backend keeps itself whole when an op panics.
impl UnwindSafe for Device {}
impl RefUnwindSafe for Device {}

impl PartialEq for Device {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::addr_eq(Arc::as_ptr(&self.0), Arc::as_ptr(&other.0))
    }
}

impl Eq for Device {}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.label())
    }
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Device({})", self.label())
    }
}

/// Where a tensor is made: `&device` (f32), or `(&device, DType::F64)`.
pub trait Place {
    /// The device and the element type; `None` when not said.
    fn place(self) -> (Device, Option<DType>);
}

impl Place for &Device {
    fn place(self) -> (Device, Option<DType>) {
        (self.physical().clone(), None)
    }
}

impl Place for (&Device, DType) {
    fn place(self) -> (Device, Option<DType>) {
        (self.0.physical().clone(), Some(self.1))
    }
}
