//! The device: reads through the fault, runs on the device underneath, writes through the fault.

use std::collections::HashMap;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tensor_core::{
    Backend, DType, Device, DeviceInfo, HostData, HostView, MemoryStatus, Meta, Op, Result, Storage, Storages, Support,
    Target, Tensor, UpdateRule,
};

use super::{Fault, read, written};

/// The device.
pub(super) struct Saboteur {
    info: DeviceInfo,
    /// What is right.
    pub(super) inner: Device,
    pub(super) fault: Option<Fault>,
    /// How many results there have been.
    pub(super) n_results: AtomicUsize,
    /// The last result of each size.
    pub(super) stale: Mutex<HashMap<(usize, DType), HostData>>,
}

/// A storage that can be written over, views included.
struct Slot(Mutex<Storage>);

impl Slot {
    fn hold(storage: Storage) -> Storage {
        Arc::new(Self(Mutex::new(storage)))
    }

    fn of(x: &Tensor) -> MutexGuard<'_, Storage> {
        let slot: &Self = x.storage().downcast_ref().expect("invariant: a tensor of this device");
        slot.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Saboteur {
    pub(super) fn new(info: DeviceInfo, inner: Device, fault: Option<Fault>) -> Self {
        Self { info, inner, fault, n_results: AtomicUsize::new(0), stale: Mutex::default() }
    }

    /// The same tensor on the device underneath.
    fn plain(&self, x: &Tensor) -> Tensor {
        Tensor::from_storage(Slot::of(x).clone(), x.meta(), self.inner.clone()).with_layout(x.layout().clone())
    }

    /// A tensor of this device in place of `old`.
    fn adopted(old: &Tensor, new: &Tensor) -> Tensor {
        let storage = Slot::hold(new.storage().clone());
        Tensor::from_storage(storage, new.meta(), old.place().clone()).with_layout(new.layout().clone())
    }
}

impl Backend for Saboteur {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn supports(&self, op: &Op, inputs: &[Meta]) -> Support {
        self.inner.backend().supports(op, inputs)
    }

    fn upload(&self, data: HostView<'_>) -> Result<Storage> {
        Ok(Slot::hold(self.inner.backend().upload(data)?))
    }

    fn download(&self, x: &Tensor) -> Result<HostData> {
        self.inner.backend().download(&self.plain(x))
    }

    fn execute(&self, op: &Op, inputs: &[&Tensor], outputs: &[Meta]) -> Result<Storages> {
        let right: Vec<Tensor> = inputs.iter().map(|x| self.plain(x)).collect();
        let storages = match self.fault {
            None => self.inner.backend().execute(op, &right.iter().collect::<Vec<_>>(), outputs)?,
            Some(fault) => {
                let (read_op, read) = read::through(fault, op, &right)?;
                let storages = self.inner.backend().execute(&read_op, &read.iter().collect::<Vec<_>>(), outputs)?;
                written::through(self, fault, (op, &right), outputs, storages)?
            }
        };
        if let (Some(Fault::ChangesAnInput), Op::Map(_), [x], [y]) = (self.fault, op, inputs, outputs)
            && x.is_contiguous()
            && x.layout().offset() == 0
            && x.dtype() == y.dtype
        {
            *Slot::of(x) = storages[0].clone();
        }
        Ok(storages.into_iter().map(Slot::hold).collect())
    }

    fn update(&self, rule: &UpdateRule, targets: &mut [Target<'_>]) -> Result<()> {
        let mut own: Vec<(Tensor, Tensor, Vec<Tensor>)> = targets
            .iter()
            .map(|t| (self.plain(t.param), self.plain(t.grad), t.state.iter().map(|x| self.plain(x)).collect()))
            .collect();
        let mut lent: Vec<Target<'_>> =
            own.iter_mut().map(|(param, grad, state)| Target { param, grad, state }).collect();
        self.inner.backend().update(rule, &mut lent)?;
        for (target, (param, _, state)) in targets.iter_mut().zip(&own) {
            *target.param = Self::adopted(target.param, param);
            target.state.iter_mut().zip(state).for_each(|(old, new)| *old = Self::adopted(old, new));
        }
        Ok(())
    }

    fn synchronize(&self) -> Result<()> {
        self.inner.backend().synchronize()
    }

    fn memory(&self) -> Result<MemoryStatus> {
        self.inner.memory()
    }

    fn release_cached(&self) -> Result<()> {
        self.inner.release_cached()
    }

    fn set_memory_limit(&self, bytes: Option<usize>) -> Result<()> {
        self.inner.set_memory_limit(bytes)
    }

    fn reset_peak(&self) {
        self.inner.reset_peak();
    }
}
