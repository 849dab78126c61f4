//! The CPU under another name, with an identity and memory of its own, that fails on request: so that what must hold
//! with two devices, out of memory, or with a lost or slow device is tested on a machine that has neither.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use tensor_core::expr::Accuracy;
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
        accuracy: Accuracy::default(),
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

    /// How often memory was asked for.
    pub fn n_allocations(&self) -> u64 {
        self.0.n_allocations.load(Relaxed)
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
    n_allocations: AtomicU64,
    is_lost: AtomicBool,
    delay_ns: AtomicU64,
    n_ops: AtomicU64,
}

impl Faults {
    fn allocation(&self, bytes: usize) -> Result<()> {
        self.n_allocations.fetch_add(1, Relaxed);
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
                    "out of memory: request {}, free 0 B; use a smaller batch, a smaller model or a lower precision",
                    MemoryStatus::in_units(bytes)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_device_has_its_identity_and_memory() {
        let (a, _) = test_device("sim", 0);
        let (b, _) = test_device("sim", 1);
        assert!(a != b && a != crate::device());
        assert_eq!((a.label(), a.info().kind, b.info().index), ("sim:0", Kind::Other, 1));
        let x = Tensor::ones([1000], &a).expect("memory");
        assert!(a.memory().expect("known").used_bytes >= 4000);
        assert_eq!(b.memory().expect("known").used_bytes, 0);
        let y = Tensor::ones([1000], &b).expect("memory");
        assert_eq!(
            x.add(&y).expect_err("two devices").to_string(),
            "add: operands are on different devices: lhs sim:0, rhs sim:1; move one with .to(&device)"
        );
        assert!(x.add(&y.to(&a).expect("moved")).is_ok());
    }

    #[test]
    fn allocations_fail_on_request_and_work_again() {
        let (device, control) = test_device("sim", 0);
        let x = Tensor::ones([1000], &device).expect("memory");
        control.fail_allocation_after(1);
        let y = x.add(&x).expect("the next one is served");
        let error = y.add(&x).expect_err("the one after is not");
        assert!(error.is_out_of_memory());
        assert_eq!(
            error.to_string(),
            "sim:0: out of memory: request 3.9 KiB, free 0 B; use a smaller batch, a smaller model or a lower precision"
        );
        assert_eq!(y.add(&x).and_then(|z| z.to_vec::<f32>()).expect("served again")[999], 3.0);
        control.fail_allocations_above(Some(2000));
        assert!(x.add(&x).is_err() && x.narrow(0, 0, 500).and_then(|x| x.add(&x)).is_ok());
        control.fail_allocations_above(None);
        assert!(x.add(&x).is_ok());
    }

    #[test]
    fn a_lost_device_says_so_and_a_slow_one_takes_its_time() {
        let (device, control) = test_device("sim", 0);
        let x = Tensor::ones([2], &device).expect("memory");
        control.set_lost(true);
        assert!(x.add(&x).expect_err("lost").is_device_lost());
        assert!(x.to_vec::<f32>().expect_err("lost").is_device_lost());
        assert!(device.synchronize().expect_err("lost").is_device_lost());
        control.set_lost(false);
        control.set_delay(Duration::from_millis(5));
        let start = std::time::Instant::now();
        let y = x.add(&x).expect("works again");
        assert!(start.elapsed() >= Duration::from_millis(5));
        assert_eq!(y.to_vec::<f32>().expect("values"), [2.0, 2.0]);
    }
}
