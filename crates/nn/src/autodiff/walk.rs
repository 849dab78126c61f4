//! The walk back over a tape: from the last node to the first, each freed when its gradient has been taken.

use tensor_core::{DType, Error, Result, Shape, Tensor};

use super::tape::{NONE, Node, Operand, Recorded, Slot, Tape};
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
            if cotangents[slots.clone()].iter().all(Option::is_none) {
                continue;
            }
            // What the node gives goes to earlier slots.
            let (sums, grads) = cotangents.split_at_mut(slots.start);
            let grads = &mut grads[..node.outputs.len()];
            match &node.recorded {
                Recorded::Op(op) => rules::op(op, &mut Step::new(&node, grads, sums))?,
                Recorded::Movement(movement) => rules::movement(movement, &mut Step::new(&node, grads, sums))?,
                Recorded::Checkpoint(replay) => {
                    let gradient = grads[0].take();
                    let autodiff = &self.session.autodiff;
                    let (tape, slot) = autodiff.record_again(n_slots, || replay.run(autodiff, &node.inputs[0]))?;
                    n_slots = tape.n_slots;
                    cotangents.resize(n_slots as usize, None);
                    nodes.extend(tape.nodes);
                    if let (Some(gradient), true) = (gradient, slot != NONE) {
                        add(&mut cotangents[slot as usize], gradient)?;
                    }
                    continue;
                }
            }
            grads.fill(None);
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

/// A recorded op, the gradients by its outputs (at least one is there), and where those by its inputs go.
pub(super) struct Step<'a> {
    node: &'a Node,
    pub(super) inputs: &'a [Operand],
    pub(super) grads: &'a [Option<Tensor>],
    sums: &'a mut [Option<Tensor>],
}

impl<'a> Step<'a> {
    fn new(node: &'a Node, grads: &'a [Option<Tensor>], sums: &'a mut [Option<Tensor>]) -> Self {
        Self { node, inputs: &node.inputs, grads, sums }
    }

    /// Whether the gradient by input `i` is asked for.
    pub(super) fn wants(&self, i: usize) -> bool {
        self.inputs[i].is_wanted()
    }

    /// Adds to the gradient by input `i`, if that is asked for.
    pub(super) fn give(&mut self, i: usize, gradient: Tensor) -> Result<()> {
        let input = &self.inputs[i];
        if !input.is_wanted() {
            return Ok(());
        }
        if gradient.shape() != input.shape() || gradient.dtype() != input.dtype() {
            return Err(self.wrong_gradient(input, &gradient));
        }
        add(&mut self.sums[input.slot() as usize], gradient)
    }

    /// Only a user's own op can get here: the other rules are tested.
    #[cold]
    fn wrong_gradient(&self, input: &Operand, gradient: &Tensor) -> Error {
        let name = match &self.node.recorded {
            Recorded::Op(op) => op.name().to_string(),
            Recorded::Movement(movement) => movement.name().to_string(),
            Recorded::Checkpoint(_) => "checkpoint".to_string(),
        };
        Error::gradient(
            name,
            format!(
                "a derivative must have its input's shape and dtype: input {} {}, derivative {} {}",
                input.shape(),
                input.dtype(),
                gradient.shape(),
                gradient.dtype()
            ),
        )
    }

    /// An input's value: one that the op keeps.
    pub(super) fn input(&self, i: usize) -> &'a Tensor {
        self.inputs[i].value().expect("invariant: the op keeps this input")
    }

    /// An output's value: one that the op keeps.
    pub(super) fn output(&self, k: usize) -> &'a Tensor {
        self.node.outputs[k].as_ref().expect("invariant: the op keeps this output")
    }

    pub(super) fn n_outputs(&self) -> usize {
        self.node.outputs.len()
    }

    /// An input's shape.
    pub(super) fn shape(&self, i: usize) -> &'a Shape {
        self.inputs[i].shape()
    }

    /// The gradient by the first output, where the op has no other differentiable one.
    pub(super) fn g(&self) -> &'a Tensor {
        self.grads[0].as_ref().expect("invariant: an op is passed when its output has a gradient")
    }

    /// Zeros like input `i`, which take no memory.
    pub(super) fn zeros_like(&self, i: usize) -> Result<Tensor> {
        zeros(self.shape(i), self.inputs[i].dtype(), self.g())
    }
}

/// Zeros on the device of `like`, which take no memory.
pub(super) fn zeros(shape: &Shape, dtype: DType, like: &Tensor) -> Result<Tensor> {
    Tensor::zeros((), (like.place(), dtype))?.expand(shape)
}

fn add(sum: &mut Option<Tensor>, gradient: Tensor) -> Result<()> {
    *sum = Some(match sum.take() {
        Some(sum) => sum.add(&gradient)?,
        None => gradient,
    });
    Ok(())
}
