//! What is recorded of each op: itself, the slots of its inputs, and the values that its derivative reads.

use std::sync::Arc;

use smallvec::SmallVec;
use tensor_core::{DType, Meta, Movement, Op, Shape, Tensor};

use super::checkpoint::Replay;

/// The number of a traced value: lifted tensors first, then the outputs of nodes in order.
pub(super) type Slot = u32;

/// No traced value.
pub(super) const NONE: Slot = Slot::MAX;

/// What was done.
#[derive(Clone)]
pub(super) enum Recorded {
    Op(Op),
    Movement(Movement),
    /// A closure that is run again when its gradient is taken.
    Checkpoint(Arc<Replay>),
}

/// An input of a node.
#[derive(Clone)]
pub(super) struct Operand {
    /// Where its gradient goes; `NONE` when it is not wanted.
    slot: Slot,
    kept: Kept,
}

#[derive(Clone)]
enum Kept {
    Value(Tensor),
    Meta(Meta),
}

impl Operand {
    pub(super) fn new(x: &Tensor, slot: Slot, keep: bool) -> Self {
        Self { slot, kept: if keep { Kept::Value(x.clone()) } else { Kept::Meta(x.meta()) } }
    }

    /// One of which only shape and dtype are known, and whether its gradient is wanted.
    pub(super) fn known(meta: Meta, is_wanted: bool) -> Self {
        Self { slot: if is_wanted { 0 } else { NONE }, kept: Kept::Meta(meta) }
    }

    pub(super) fn slot(&self) -> Slot {
        self.slot
    }

    pub(super) fn is_wanted(&self) -> bool {
        self.slot != NONE
    }

    pub(super) fn value(&self) -> Option<&Tensor> {
        match &self.kept {
            Kept::Value(value) => Some(value),
            Kept::Meta(_) => None,
        }
    }

    pub(super) fn shape(&self) -> &Shape {
        match &self.kept {
            Kept::Value(value) => value.shape(),
            Kept::Meta(meta) => &meta.shape,
        }
    }

    pub(super) fn dtype(&self) -> DType {
        match &self.kept {
            Kept::Value(value) => value.dtype(),
            Kept::Meta(meta) => meta.dtype,
        }
    }
}

/// One step of a computation.
#[derive(Clone)]
pub(super) struct Node {
    pub(super) recorded: Recorded,
    pub(super) inputs: SmallVec<[Operand; 2]>,
    /// The values of outputs that are kept.
    pub(super) outputs: SmallVec<[Option<Tensor>; 1]>,
    /// The slot of the first output.
    pub(super) first: Slot,
}

impl Node {
    pub(super) fn new(recorded: Recorded) -> Self {
        Self { recorded, inputs: SmallVec::new(), outputs: SmallVec::new(), first: NONE }
    }
}

/// The steps of a computation in order.
#[derive(Clone, Default)]
pub(super) struct Tape {
    pub(super) nodes: Vec<Node>,
    pub(super) n_slots: Slot,
}

impl Tape {
    pub(super) fn starting_at(n_slots: Slot) -> Self {
        Self { nodes: Vec::new(), n_slots }
    }

    pub(super) fn new_slots(&mut self, n: usize) -> Slot {
        let first = self.n_slots;
        self.n_slots += n as Slot;
        first
    }

    pub(super) fn push(&mut self, mut node: Node) -> Slot {
        node.first = self.new_slots(node.outputs.len());
        let first = node.first;
        self.nodes.push(node);
        first
    }
}
