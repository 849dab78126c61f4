//! The CPU under another name, with an identity and memory of its own, that fails on request: so that what must hold
//! with two devices, out of memory, or with a lost or slow device is tested on a machine that has neither.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use tensor_core::{
    Backend, Device, DeviceInfo, Error, HostData, HostView, Kind, MemoryStatus, Meta, Op, Result, Storage, Storages,
    Support, Target, Tensor, UpdateRule,
};

use crate::{CpuBackend, Pool};

/// A device of kind [`Kind::Other`] called `{name}:{index}`, and the handle that makes it fail. Two calls give two
/// different devices.
pub fn test_device(name: &str, index: usize) -> (Device, Control) {
    test_device_like(DeviceInfo {
        kind: Kind::Other,
        index,
        label: format!("{name}:{index}"),
        name: "test device".into(),
        capability: "the CPU, failing on request".into(),
        is_hardware: false,
    })
}

/// A test device that describes itself as `info`: as a real GPU, for instance.
pub fn test_device_like(info: DeviceInfo) -> (Device, Control) {
    let faults = Arc::new(Faults { label: info.label.clone(), ..Faults::default() });
    let gate = faults.clone();
    let pool = Pool::with_gate(info.label.clone(), Box::new(move |bytes| gate.allocation(bytes)));
    let control = Control(faults.clone());
    (Device::new(Arc::new(TestBackend { cpu: CpuBackend::new(info, pool), faults })), control)
}

/// Makes a test device fail. Clones control the same device.
#[derive(Clone)]
pub struct Control(Arc<Faults>);

impl Control {
    /// Lets `n` more allocations succeed, fails the one after with "out of memory", and serves all later ones.
    pub fn fail_allocation_after(&self, n: u64) {
        self.0.allocations_left.store(n + 1, Relaxed);
    }

    /// Fails every allocation of more than `bytes`; `None` ends that.
    pub fn fail_allocations_above(&self, bytes: Option<usize>) {
        self.0.largest_allocation.store(bytes.map_or(0, |b| b + 1), Relaxed);
    }

    /// Loses the device: every call fails from now on, or works again with `false`.
    pub fn set_lost(&self, is_lost: bool) {
        self.0.is_lost.store(is_lost, Relaxed);
    }

    /// Makes every op, update, upload and download take so much longer.
    pub fn set_delay(&self, delay: Duration) {
        self.0.delay_ns.store(delay.as_nanos() as u64, Relaxed);
    }

    /// How many ops and updates the device has run.
    pub fn n_ops(&self) -> u64 {
        self.0.n_ops.load(Relaxed)
    }
}

#[derive(Default)]
struct Faults {
    label: String,
    /// 0: no fault is set; else counts down to the failing allocation, 1.
    allocations_left: AtomicU64,
    /// 0: no fault is set; else the smallest size that fails.
    largest_allocation: AtomicUsize,
    is_lost: AtomicBool,
    delay_ns: AtomicU64,
    n_ops: AtomicU64,
}

impl Faults {
    fn allocation(&self, bytes: usize) -> Result<()> {
        let smallest_failing = self.largest_allocation.load(Relaxed);
        let is_too_large = smallest_failing != 0 && bytes >= smallest_failing;
        let left = self.allocations_left.load(Relaxed);
        if left != 0 {
            self.allocations_left.store(left - 1, Relaxed);
        }
        if left == 1 || is_too_large {
            return Err(Error::out_of_memory(
                self.label.clone(),
                format!(
                    "out of memory: request {bytes} bytes, free 0 bytes; use a smaller batch, a smaller model or a lower precision"
                ),
            ));
        }
        Ok(())
    }

    fn call(&self) -> Result<()> {
        if self.is_lost.load(Relaxed) {
            return Err(Error::device_lost(
                self.label.clone(),
                "the device stopped working: move the model to another device and go on from the last checkpoint",
            ));
        }
        let delay = self.delay_ns.load(Relaxed);
        if delay != 0 {
            std::thread::sleep(Duration::from_nanos(delay));
        }
        Ok(())
    }
}

struct TestBackend {
    cpu: CpuBackend,
    faults: Arc<Faults>,
}

impl Backend for TestBackend {
    fn info(&self) -> &DeviceInfo {
        self.cpu.info()
    }

    fn supports(&self, op: &Op, inputs: &[Meta]) -> Support {
        self.cpu.supports(op, inputs)
    }

    fn upload(&self, data: HostView<'_>) -> Result<Storage> {
        self.faults.call()?;
        self.cpu.upload(data)
    }

    fn download(&self, x: &Tensor) -> Result<HostData> {
        self.faults.call()?;
        self.cpu.download(x)
    }

    fn execute(&self, op: &Op, inputs: &[&Tensor], outputs: &[Meta]) -> Result<Storages> {
        self.faults.call()?;
        self.faults.n_ops.fetch_add(1, Relaxed);
        self.cpu.execute(op, inputs, outputs)
    }

    fn update(&self, rule: &UpdateRule, targets: &mut [Target<'_>]) -> Result<()> {
        self.faults.call()?;
        self.faults.n_ops.fetch_add(1, Relaxed);
        self.cpu.update(rule, targets)
    }

    fn synchronize(&self) -> Result<()> {
        self.faults.call()?;
        self.cpu.synchronize()
    }

    fn memory(&self) -> Result<MemoryStatus> {
        self.faults.call()?;
        self.cpu.memory()
    }

    fn release_cached(&self) -> Result<()> {
        self.faults.call()?;
        self.cpu.release_cached()
    }

    fn set_memory_limit(&self, bytes: Option<usize>) -> Result<()> {
        self.cpu.set_memory_limit(bytes)
    }

    fn reset_peak(&self) {
        self.cpu.reset_peak();
    }
}
