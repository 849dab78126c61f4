//! An optimizer's step on the candidate, in place as ever, each target judged as the elementwise op that the rule is.

use std::sync::Arc;

use tensor_core::op::Map;
use tensor_core::{HostView, Meta, Op, Result, Target, Tensor, UpdateRule};

use super::Lockstep;
use super::judge::{Observed, Run};

/// Runs and judges the step. At a breach that is an error everything is put back.
pub(super) fn run(lockstep: &Lockstep, rule: &UpdateRule, targets: &mut [Target<'_>]) -> Result<()> {
    let operands = |target: &Target<'_>| {
        let tensors = [&*target.param, target.grad].into_iter().chain(target.state.iter());
        tensors.map(|x| lockstep.observe(&lockstep.own(x))).collect::<Result<Vec<Observed>>>()
    };
    let before = targets.iter().map(operands).collect::<Result<Vec<_>>>()?;
    Lent::new(lockstep, targets).update(rule)?;
    let op = Op::Map(Map { name: "update", exprs: rule.outputs.iter().cloned().collect() });
    let judge = |(target, before): (&Target<'_>, &Vec<Observed>)| {
        let written = || std::iter::once(&*target.param).chain(target.state.iter());
        let outputs: Vec<Meta> = written().map(Tensor::meta).collect();
        let download = |x| lockstep.candidate.backend().download(&lockstep.own(x));
        let got = written().map(download).collect::<Result<Vec<_>>>()?;
        let run = Run { op: Some(&op), inputs: before, got: &got, outputs: &outputs };
        lockstep.judge(&op, &run, &[(1, download(target.grad)?)])
    };
    let judged = targets.iter().zip(&before).try_for_each(judge);
    if judged.is_err() {
        for (target, before) in targets.iter_mut().zip(&before) {
            // All but the gradient, which is only read.
            let olds = before.iter().enumerate().filter(|&(i, _)| i != 1).map(|(_, old)| old);
            for (x, old) in written(target).zip(olds) {
                let data = HostView { shape: old.layout.shape(), data: old.data.as_slice() };
                let storage = lockstep.candidate.backend().upload(data)?;
                *x = Tensor::from_storage(storage, x.meta(), x.place().clone());
            }
        }
    }
    judged
}

/// What a step writes.
fn written<'t>(target: &'t mut Target<'_>) -> impl Iterator<Item = &'t mut Tensor> {
    std::iter::once(&mut *target.param).chain(target.state.iter_mut())
}

/// Targets whose storages the candidate has for the time of an update, as tensors of its own: moved, not shared, so that it
/// can write in place. They go back in any case.
struct Lent<'a, 't> {
    lockstep: &'a Lockstep,
    targets: &'a mut [Target<'t>],
    own: Vec<Own>,
}

struct Own {
    param: Tensor,
    grad: Tensor,
    state: Vec<Tensor>,
    names: Vec<Option<String>>,
}

impl<'a, 't> Lent<'a, 't> {
    fn new(lockstep: &'a Lockstep, targets: &'a mut [Target<'t>]) -> Self {
        let mut lent = Self { lockstep, targets, own: Vec::new() };
        for target in lent.targets.iter_mut() {
            let names = written(target).map(|x| lockstep.log.take_name(x.storage())).collect();
            let mut own = written(target).map(|x| lend(lockstep, x));
            let param = own.next().expect("invariant: a target has a parameter");
            let state = own.collect();
            lent.own.push(Own { param, grad: lockstep.own(target.grad), state, names });
        }
        lent
    }

    fn update(mut self, rule: &UpdateRule) -> Result<()> {
        let own = self.own.iter_mut();
        let mut targets: Vec<Target<'_>> =
            own.map(|own| Target { param: &mut own.param, grad: &own.grad, state: &mut own.state }).collect();
        self.lockstep.candidate.backend().update(rule, &mut targets)
    }
}

impl Drop for Lent<'_, '_> {
    fn drop(&mut self) {
        for (target, own) in self.targets.iter_mut().zip(self.own.drain(..)) {
            let olds = std::iter::once(own.param).chain(own.state).zip(own.names);
            for (x, (own, name)) in written(target).zip(olds) {
                // Where a clone kept the storage, and nothing was written, the tensor is as it was.
                if !Arc::ptr_eq(own.storage(), x.storage()) {
                    let place = x.place().clone();
                    *x = Tensor::from_storage(own.storage().clone(), own.meta(), place)
                        .with_layout(own.layout().clone());
                }
                if let Some(name) = name {
                    self.lockstep.log.name(name, x);
                }
            }
        }
    }
}

/// The candidate's tensor with the storage of `x`, which is left without one where nobody shares it.
fn lend(lockstep: &Lockstep, x: &mut Tensor) -> Tensor {
    let (meta, layout) = (x.meta(), x.layout().clone());
    let storage = match x.unique_storage() {
        Some(storage) => std::mem::replace(storage, Arc::new(())),
        None => x.storage().clone(),
    };
    Tensor::from_storage(storage, meta, lockstep.candidate.clone()).with_layout(layout)
}
