//! The leaves of models that are not parameters: buffers, and the mode.

use std::cell::Cell;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tensor_core::{Error, Result, Tensor};

use crate::autodiff;

/// State that the forward pass writes through `&self` and that is saved with the model: running statistics.
///
/// `Clone` copies it. The model that [`crate::with_gradient`] lends its closure writes to copies; what was written is
/// stored in the original, as plain values, when the call has succeeded. Clones of the lent model share its copies.
pub struct Buffer {
    cell: Arc<Mutex<State>>,
    /// Whether clones share the cell.
    is_lifted: bool,
}

struct State {
    value: Tensor,
    is_written: bool,
}

impl Buffer {
    /// A buffer holding `value`.
    pub fn new(value: Tensor) -> Self {
        Self { cell: Arc::new(Mutex::new(State { value, is_written: false })), is_lifted: false }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.cell.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The value.
    pub fn get(&self) -> Tensor {
        autodiff::replayed(|| self.state().value.clone())
    }

    /// Replaces the value: no gradient flows through it. Within a recomputation by [`crate::checkpoint`] this does
    /// nothing.
    ///
    /// # Errors
    /// If shape, dtype or device differ from what the buffer holds.
    pub fn set(&self, value: &Tensor) -> Result<()> {
        if autodiff::is_replaying() {
            return Ok(());
        }
        let mut state = self.state();
        let old = &state.value;
        if old.shape() != value.shape() || old.dtype() != value.dtype() || old.device() != value.device() {
            return Err(Error::shape(
                "buffer",
                format!(
                    "a new value must be like the old one: old {} {} on {}, new {} {} on {}",
                    old.shape(),
                    old.dtype(),
                    old.device(),
                    value.shape(),
                    value.dtype(),
                    value.device()
                ),
            ));
        }
        *state = State { value: value.stop_gradient(), is_written: true };
        Ok(())
    }

    /// Holds another tensor from now on, of any shape and on any device.
    pub fn replace(&mut self, value: Tensor) {
        *self = Self::new(value);
    }

    /// Becomes the copy that a lifted model writes to.
    pub(crate) fn lift(&mut self) {
        let value = self.state().value.clone();
        *self = Self { is_lifted: true, ..Self::new(value) };
    }

    /// What was written since it was lifted.
    pub(crate) fn written(&self) -> Option<Tensor> {
        let state = self.state();
        state.is_written.then(|| state.value.clone())
    }

    /// Stores what a lifted copy was written.
    pub(crate) fn commit(&self, value: Tensor) {
        *self.state() = State { value, is_written: true };
    }
}

impl Clone for Buffer {
    fn clone(&self) -> Self {
        if self.is_lifted {
            return Self { cell: self.cell.clone(), is_lifted: true };
        }
        Self::new(self.state().value.clone())
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state();
        write!(f, "Buffer({} {})", state.value.shape(), state.value.dtype())
    }
}

/// Whether a layer trains or infers: a leaf of layers that behave differently (dropout, batch norm).
///
/// A new one infers. [`crate::with_gradient`] sets it to training in the model it lends; [`training`] and [`inference`]
/// override it on the calling thread.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Mode {
    is_training: bool,
}

impl Mode {
    /// The mode in which layers train.
    pub const TRAINING: Self = Self { is_training: true };
    /// The mode in which layers infer.
    pub const INFERENCE: Self = Self { is_training: false };

    /// Whether the layer that holds this is to train.
    pub fn is_training(&self) -> bool {
        OVERRIDE.get().unwrap_or(self.is_training)
    }
}

impl fmt::Debug for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_training { "Training" } else { "Inference" })
    }
}

thread_local! {
    static OVERRIDE: Cell<Option<bool>> = const { Cell::new(None) };
}

/// Runs `f` with every layer training on this thread, inside gradients or not.
pub fn training<R>(f: impl FnOnce() -> R) -> R {
    with_mode(Some(true), f)
}

/// Runs `f` with every layer inferring on this thread, inside gradients or not.
pub fn inference<R>(f: impl FnOnce() -> R) -> R {
    with_mode(Some(false), f)
}

/// What overrides the mode on this thread.
pub(crate) fn mode_override() -> Option<bool> {
    OVERRIDE.get()
}

pub(crate) fn with_mode<R>(is_training: Option<bool>, f: impl FnOnce() -> R) -> R {
    struct Restore(Option<bool>);
    impl Drop for Restore {
        fn drop(&mut self) {
            OVERRIDE.set(self.0);
        }
    }
    let _restore = Restore(OVERRIDE.replace(is_training));
    f()
}
