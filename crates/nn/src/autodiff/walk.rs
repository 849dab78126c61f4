//! The walk back over a tape: from the last node to the first, each freed when its gradient has been taken.

use smallvec::SmallVec;
use tensor_core::{Error, Result, Tensor};

use super::tape::{NONE, Node, Recorded, Slot, Tape};
use super::{Autodiff, Session, rules};

/// Gradients by slot.
type Cotangents = Vec<Option<Tensor>>;

/// What was recorded, ready to be walked from its result.
pub(crate) struct Trace<'a> {
    session: &'a Session,
    tape: Tape,
    slot: Slot,
    n_leaves: usize,
    /// The plain value of the result.
    pub(crate) value: Tensor,
}

impl Session {
    /// Ends recording. `y` is the result, of which gradients by the first `n_leaves` lifted tensors will be taken;
    /// `None` when it is no function of them.
    pub(crate) fn finish(&self, y: &Tensor, n_leaves: usize) -> (Tensor, Option<Trace<'_>>) {
        let (value, slot) = self.resolve(y);
        let tape = self.autodiff.close();
        let trace = (slot != NONE).then(|| Trace { session: self, tape, slot, n_leaves, value: value.clone() });
        (value, trace)
    }
}

impl Trace<'_> {
    /// The vector–Jacobian product of `cotangent` by every leaf; `None` where a leaf does not reach the result.
    pub(crate) fn walk(self, cotangent: Tensor) -> Result<Vec<Option<Tensor>>> {
        let mut cotangents: Cotangents = vec![None; self.tape.n_slots as usize];
        cotangents[self.slot as usize] = Some(cotangent);
        let mut nodes = self.tape.nodes;
        let mut n_slots = self.tape.n_slots;
        while let Some(node) = nodes.pop() {
            let slots = node.first as usize..node.first as usize + node.outputs.len();
            let grads: SmallVec<[Option<Tensor>; 1]> = cotangents[slots].iter_mut().map(Option::take).collect();
            if grads.iter().all(Option::is_none) {
                continue;
            }
            match &node.recorded {
                Recorded::Op(op) => {
                    let step = rules::Step { inputs: &node.inputs, outputs: &node.outputs, grads: &grads };
                    accumulate(&mut cotangents, &node, rules::op(op, &step)?)?;
                }
                Recorded::Movement(movement) => {
                    let gradient = rules::movement(movement, node.inputs[0].shape(), grads[0].as_ref())?;
                    accumulate(&mut cotangents, &node, SmallVec::from_iter([gradient]))?;
                }
                Recorded::Checkpoint(replay) => {
                    let autodiff = &self.session.autodiff;
                    let (tape, slot) = autodiff.record_again(n_slots, || replay.run(autodiff, &node.inputs[0]))?;
                    n_slots = tape.n_slots;
                    cotangents.resize(n_slots as usize, None);
                    nodes.extend(tape.nodes);
                    if slot != NONE {
                        let gradient = grads.into_iter().next().flatten();
                        add(&mut cotangents[slot as usize], gradient)?;
                    }
                }
            }
        }
        cotangents.truncate(self.n_leaves);
        Ok(cotangents)
    }

    /// [`Trace::walk`] that keeps the tape for another walk.
    pub(crate) fn walk_again(&self, cotangent: Tensor) -> Result<Vec<Option<Tensor>>> {
        let again = Trace { tape: self.tape.clone(), value: self.value.clone(), ..*self };
        again.walk(cotangent)
    }
}

impl Autodiff {
    /// Runs `f` with recording on, and gives what it recorded and the slot of its result.
    fn record_again(&self, n_slots: Slot, f: impl FnOnce() -> Result<Tensor>) -> Result<(Tape, Slot)> {
        struct Close<'a>(&'a Autodiff);
        impl Drop for Close<'_> {
            fn drop(&mut self) {
                self.0.close();
            }
        }
        self.reopen(n_slots);
        let _close = Close(self);
        let y = super::lowered_to(&f()?, self.level);
        let slot = self.mine(&y).map_or(NONE, |traced| traced.slot);
        Ok((self.close(), slot))
    }
}

fn accumulate(cotangents: &mut Cotangents, node: &Node, gradients: rules::Grads) -> Result<()> {
    for (input, gradient) in node.inputs.iter().zip(gradients) {
        if !input.is_wanted() {
            continue;
        }
        if let Some(g) = &gradient
            && (g.shape() != input.shape() || g.dtype() != input.dtype())
        {
            return Err(wrong_gradient(node, input.shape(), g));
        }
        add(&mut cotangents[input.slot() as usize], gradient)?;
    }
    Ok(())
}

/// Only a user's own op can get here: the other rules are tested.
#[cold]
fn wrong_gradient(node: &Node, shape: &tensor_core::Shape, gradient: &Tensor) -> Error {
    let name = match &node.recorded {
        Recorded::Op(op) => op.name().to_string(),
        Recorded::Movement(movement) => movement.name().to_string(),
        Recorded::Checkpoint(_) => "checkpoint".to_string(),
    };
    Error::gradient(
        name,
        format!(
            "the derivative must have the input's shape and dtype: input {shape}, derivative {} {}",
            gradient.shape(),
            gradient.dtype()
        ),
    )
}

fn add(sum: &mut Option<Tensor>, gradient: Option<Tensor>) -> Result<()> {
    *sum = match (sum.take(), gradient) {
        (Some(a), Some(b)) => Some(a.add(&b)?),
        (a, b) => a.or(b),
    };
    Ok(())
}
