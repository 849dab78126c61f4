//! A device without values: it tells which ops a call executes, and what core rejects a call for.

use std::sync::{Arc, Mutex, PoisonError};

use smallvec::SmallVec;
use tensor_core::expr::Accuracy;
use tensor_core::{
    Backend, DType, Device, DeviceInfo, HostData, HostView, Kind, MemoryStatus, Meta, Op, Result, Storage, Storages,
    Support, Target, Tensor, UpdateRule,
};

use super::case::Call;

struct Probe {
    info: DeviceInfo,
    seen: Arc<Mutex<Vec<Op>>>,
    steps: Arc<Mutex<Vec<Step>>>,
}

/// An op, and the shapes and dtypes of what it is executed on.
pub(super) type Step = (Op, Vec<Meta>);

/// The ops of a call for data of a dtype, in order. Values that a call looks at are 0.
///
/// # Errors
/// What core rejects the call for.
pub(super) fn ops(call: &Call, dtype: DType) -> Result<Vec<Op>> {
    let (device, seen) = device();
    let inputs: Result<Vec<Tensor>> =
        call.inputs.iter().map(|input| Tensor::zeros(&input.dims[..], (&device, input.dtype(dtype)))).collect();
    let inputs = inputs?;
    seen.lock().unwrap_or_else(PoisonError::into_inner).clear();
    (call.run)((&device, dtype), &inputs)?;
    Ok(std::mem::take(&mut *seen.lock().unwrap_or_else(PoisonError::into_inner)))
}

/// The ops of a call for data of a dtype, in order, each with its inputs.
///
/// # Errors
/// What core rejects the call for.
pub(super) fn steps(call: &Call, dtype: DType) -> Result<Vec<Step>> {
    let (device, _, steps) = probe();
    let inputs: Result<Vec<Tensor>> =
        call.inputs.iter().map(|input| Tensor::zeros(&input.dims[..], (&device, input.dtype(dtype)))).collect();
    let inputs = inputs?;
    steps.lock().unwrap_or_else(PoisonError::into_inner).clear();
    (call.run)((&device, dtype), &inputs)?;
    Ok(std::mem::take(&mut *steps.lock().unwrap_or_else(PoisonError::into_inner)))
}

/// A device without values, and the list of what it is asked to execute.
pub(super) fn device() -> (Device, Arc<Mutex<Vec<Op>>>) {
    let (device, seen, _) = probe();
    (device, seen)
}

/// A device without values, and the lists of what it is asked to execute, and on what.
fn probe() -> (Device, Arc<Mutex<Vec<Op>>>, Arc<Mutex<Vec<Step>>>) {
    let info = DeviceInfo {
        kind: Kind::Other,
        index: 0,
        label: "probe".into(),
        name: "a device without values".into(),
        capability: "every op and dtype".into(),
        is_hardware: false,
        accuracy: Accuracy::default(),
    };
    let (seen, steps) = (Arc::default(), Arc::default());
    let probe = Probe { info, seen: Arc::clone(&seen), steps: Arc::clone(&steps) };
    (Device::new(Arc::new(probe)), seen, steps)
}

impl Backend for Probe {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn supports(&self, _: &Op, _: &[Meta]) -> Support {
        Support::Native
    }

    fn upload(&self, _: HostView<'_>) -> Result<Storage> {
        Ok(Arc::new(()))
    }

    fn download(&self, x: &Tensor) -> Result<HostData> {
        Ok(HostData::zeros(x.dtype(), x.len()))
    }

    fn execute(&self, op: &Op, inputs: &[&Tensor], outputs: &[Meta]) -> Result<Storages> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).push(op.clone());
        let metas = inputs.iter().map(|x| x.meta()).collect();
        self.steps.lock().unwrap_or_else(PoisonError::into_inner).push((op.clone(), metas));
        Ok(outputs.iter().map(|_| Arc::new(()) as Storage).collect::<SmallVec<_>>())
    }

    fn update(&self, _: &UpdateRule, _: &mut [Target<'_>]) -> Result<()> {
        Ok(())
    }

    fn synchronize(&self) -> Result<()> {
        Ok(())
    }

    fn memory(&self) -> Result<MemoryStatus> {
        Ok(MemoryStatus::default())
    }

    fn release_cached(&self) -> Result<()> {
        Ok(())
    }
}
