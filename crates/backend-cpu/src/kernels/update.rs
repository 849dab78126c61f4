//! An optimizer's step over all parameters in one call: one pass over memory, in place where nobody shares it.

use smallvec::SmallVec;
use tensor_core::{DType, Error, Expr, Meta, Result, Storage, Target, Tensor, UpdateRule};

use super::copy;
use crate::eval::{Bound, CHUNK, Evaluator, Input};
use crate::storage::Buffer;
use crate::{Context, threads};

/// Elements of a piece of work: a target is cut into pieces, and all targets' pieces are spread together.
const PIECE: usize = 16 * CHUNK;

/// Applies `rule` to all targets. What can fail, the copies of what is shared, comes first.
pub(crate) fn run(rule: &UpdateRule, targets: &mut [Target<'_>], cx: &Context<'_>) -> Result<()> {
    let mut fresh: Vec<(usize, usize, Buffer)> = Vec::new();
    for (t, target) in targets.iter_mut().enumerate() {
        for k in 0..rule.outputs.len() {
            let x = written(target, k);
            if !is_own(x) {
                let mut buffer = cx.output(&x.meta())?;
                copy::to_bytes(x, buffer.bytes_mut());
                fresh.push((t, k, buffer));
            }
        }
    }
    let evaluators = Evaluators::new(rule, targets)?;
    evaluators.check(targets)?;
    for (t, k, buffer) in fresh {
        let x = written(&mut targets[t], k);
        let (meta, device) = (x.meta(), x.place().clone());
        *x = Tensor::from_storage(buffer.into_storage(), meta, device);
    }
    apply(rule, targets, &evaluators);
    Ok(())
}

/// What output `k` of a rule overwrites.
fn written<'t>(target: &'t mut Target<'_>, k: usize) -> &'t mut Tensor {
    if k == 0 { target.param } else { &mut target.state[k - 1] }
}

/// Whether the tensor may be overwritten where it is: row-major, and nobody else has its storage.
fn is_own(x: &mut Tensor) -> bool {
    x.is_contiguous() && x.unique_storage().and_then(own).is_some()
}

fn own(storage: &mut Storage) -> Option<&mut Buffer> {
    std::sync::Arc::get_mut(storage)?.downcast_mut()
}

/// The rule made ready, once for each combination of element types.
struct Evaluators {
    kinds: Vec<(SmallVec<[DType; 4]>, Evaluator)>,
}

impl Evaluators {
    fn new(rule: &UpdateRule, targets: &[Target<'_>]) -> Result<Self> {
        let mut kinds: Vec<(SmallVec<[DType; 4]>, Evaluator)> = Vec::new();
        let exprs: &[Expr] = &rule.outputs;
        for target in targets {
            let dtypes = dtypes(target);
            if kinds.iter().all(|(d, _)| *d != dtypes) {
                let evaluator = Evaluator::new("update", exprs, &dtypes)?;
                kinds.push((dtypes, evaluator));
            }
        }
        Ok(Self { kinds })
    }

    /// Whether every output has the type and every target the states that it is written to.
    fn check(&self, targets: &[Target<'_>]) -> Result<()> {
        for (t, target) in targets.iter().enumerate() {
            let outputs = self.of(target).outputs();
            let mut written = dtypes(target);
            written.remove(1);
            if outputs != &written[..] {
                let text = format!(
                    "the rule must give param and states in their types: target {t} {written:?}, rule {outputs:?}"
                );
                return Err(Error::dtype("update", text));
            }
        }
        Ok(())
    }

    fn of(&self, target: &Target<'_>) -> &Evaluator {
        let dtypes = dtypes(target);
        let found = self.kinds.iter().find(|(d, _)| *d == dtypes);
        &found.expect("invariant: made for every target").1
    }
}

/// The types of param, grad and states.
fn dtypes(target: &Target<'_>) -> SmallVec<[DType; 4]> {
    let states = target.state.iter().map(Tensor::dtype);
    [target.param.dtype(), target.grad.dtype()].into_iter().chain(states).collect()
}

/// One target with its memory.
struct Work<'a> {
    bound: Bound<'a>,
    outputs: SmallVec<[(&'a mut [u8], usize); 4]>,
    n: usize,
}

fn apply(rule: &UpdateRule, targets: &mut [Target<'_>], evaluators: &Evaluators) {
    let mut works: Vec<Work<'_>> = Vec::with_capacity(targets.len());
    let mut work_ns = 0;
    for target in targets {
        let evaluator = evaluators.of(target);
        let Meta { shape, .. } = target.param.meta();
        // The new values overwrite the old ones, which every piece reads first: param, then grad, then the states.
        let mut inputs: SmallVec<[Input<'_>; 4]> = SmallVec::new();
        inputs.push(Input::Old(0));
        inputs.push(Input::Tensor(target.grad));
        (1..rule.outputs.len()).for_each(|k| inputs.push(Input::Old(k)));
        let bound = evaluator.bind(&shape, &inputs);
        let n = shape.len();
        let tensors = std::iter::once(&mut *target.param).chain(target.state.iter_mut());
        let outputs = tensors.map(|x| {
            let (size, start) = (x.dtype().size_bytes(), x.layout().offset());
            let buffer = x.unique_storage().and_then(own).expect("invariant: what is shared was copied");
            (&mut buffer.bytes_mut()[start * size..][..n * size], size)
        });
        let outputs = outputs.collect();
        work_ns += evaluator.work_ns(n);
        works.push(Work { bound, outputs, n });
    }
    let pieces = works.iter_mut().flat_map(|work| {
        let (bound, n, outputs) = (&work.bound, work.n, &mut work.outputs);
        (0..n).step_by(PIECE).map(move |start| {
            let len = PIECE.min(n - start);
            let mut piece: SmallVec<[&mut [u8]; 4]> = SmallVec::new();
            for (bytes, size) in outputs.iter_mut() {
                let (head, tail) = std::mem::take(bytes).split_at_mut(len * *size);
                piece.push(head);
                *bytes = tail;
            }
            (bound, start, len, piece)
        })
    });
    threads::for_each(work_ns, pieces, |(bound, start, len, mut piece)| {
        bound.worker().run(start, len, &[], &mut piece);
    });
}

#[cfg(test)]
mod tests;
