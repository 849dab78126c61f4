//! Composite ops, producers and epilogues in their decomposed form, which a backend may run natively.

use std::sync::Arc;

use tensor_core::{
    Backend, Device, DeviceInfo, HostData, HostView, MemoryStatus, Meta, Op, Result, Storage, Storages, Support,
    Target, Tensor, UpdateRule,
};

use super::{Verdict, judge};
use crate::compare::Agreement;
use crate::suite::case::Trial;

pub(super) fn check(trial: &Trial, device: &Device) -> Verdict {
    if !trial.ops.iter().any(is_composite) {
        return Verdict::Inapplicable;
    }
    let split = Device::new(Arc::new(Split { inner: device.clone() }));
    let reference = Trial::reference(device);
    let want = trial.inputs_on(&reference).and_then(|inputs| trial.run(&reference, &inputs));
    // The parts word an error in their own names; that there is one has been judged.
    if want.is_err() {
        return Verdict::Inapplicable;
    }
    let got = trial.inputs_on(&split).and_then(|inputs| trial.run(&split, &inputs));
    match (&got, &want) {
        // A bad value in the data is found by some part, which knows itself alone.
        (Err(got), Err(_)) if !got.is_unsupported() => Verdict::Passed(Agreement::default()),
        _ => judge(&split, (got, want), &trial.ops, trial.is_integral()),
    }
}

/// Whether an op has simpler parts.
fn is_composite(op: &Op) -> bool {
    match op {
        Op::Softmax(_)
        | Op::Normalize(_)
        | Op::NormalizeGrad(_)
        | Op::CrossEntropy(_)
        | Op::Attention(_)
        | Op::AttentionGrad(_) => true,
        Op::Reduce(op) => !op.producer.is_identity(),
        Op::MatMul(op) => !op.epilogue.is_identity(),
        Op::Conv(op) => !op.epilogue.is_identity(),
        _ => false,
    }
}

/// The device, which declines whatever has simpler parts.
struct Split {
    inner: Device,
}

impl Split {
    /// The same tensor on the device underneath.
    fn plain(&self, x: &Tensor) -> Tensor {
        Tensor::from_storage(x.storage().clone(), x.meta(), self.inner.clone()).with_layout(x.layout().clone())
    }
}

impl Backend for Split {
    fn info(&self) -> &DeviceInfo {
        self.inner.info()
    }

    fn supports(&self, op: &Op, inputs: &[Meta]) -> Support {
        if is_composite(op) { Support::Decompose } else { self.inner.backend().supports(op, inputs) }
    }

    fn upload(&self, data: HostView<'_>) -> Result<Storage> {
        self.inner.backend().upload(data)
    }

    fn download(&self, x: &Tensor) -> Result<HostData> {
        self.inner.backend().download(&self.plain(x))
    }

    fn execute(&self, op: &Op, inputs: &[&Tensor], outputs: &[Meta]) -> Result<Storages> {
        let inputs: Vec<Tensor> = inputs.iter().map(|x| self.plain(x)).collect();
        self.inner.backend().execute(op, &inputs.iter().collect::<Vec<_>>(), outputs)
    }

    fn update(&self, rule: &UpdateRule, targets: &mut [Target<'_>]) -> Result<()> {
        self.inner.backend().update(rule, targets)
    }

    fn synchronize(&self) -> Result<()> {
        self.inner.synchronize()
    }

    fn memory(&self) -> Result<MemoryStatus> {
        self.inner.memory()
    }

    fn release_cached(&self) -> Result<()> {
        self.inner.release_cached()
    }
}
