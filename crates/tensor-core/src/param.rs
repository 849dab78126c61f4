//! A trainable leaf of a model.

use std::fmt;
use std::ops::Deref;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::Tensor;

/// A tensor that is trained: it keeps its identity while its value changes. Derefs to [`Tensor`].
///
/// Clones share the identity: the same parameter used twice in a model is tied.
#[derive(Clone)]
pub struct Param {
    id: u64,
    trainable: bool,
    value: Tensor,
}

impl Param {
    /// A new parameter with its own identity.
    pub fn new(value: Tensor) -> Self {
        Self { id: Self::fresh_id(), trainable: true, value }
    }

    fn fresh_id() -> u64 {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        NEXT.fetch_add(1, Relaxed)
    }

    /// The identity, unique within the process.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Gives it a new identity, or another parameter's.
    pub fn set_id(&mut self, id: Option<u64>) -> u64 {
        self.id = id.unwrap_or_else(Self::fresh_id);
        self.id
    }

    /// Whether gradients are taken by it.
    pub fn is_trainable(&self) -> bool {
        self.trainable
    }

    /// Freezes (false) or thaws it.
    pub fn set_trainable(&mut self, trainable: bool) {
        self.trainable = trainable;
    }

    /// The value.
    pub fn value(&self) -> &Tensor {
        &self.value
    }

    /// The value, to be replaced or updated in place.
    pub fn value_mut(&mut self) -> &mut Tensor {
        &mut self.value
    }
}

impl Deref for Param {
    type Target = Tensor;
    fn deref(&self) -> &Tensor {
        &self.value
    }
}

impl fmt::Debug for Param {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Param({} {})", self.value.shape(), self.value.dtype())
    }
}
