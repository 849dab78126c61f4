//! Recomputation: a closure whose intermediate values are not kept but computed again for the gradient.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use smallvec::SmallVec;
use tensor_core::{Movement, Result, Tensor, random};

use super::tape::{NONE, Node, Operand, Recorded};
use super::{Autodiff, LAST_LEVEL, lowered_to, wrap};
use crate::leaf;

/// A closure to be run again, with everything it depended on.
pub(super) struct Replay {
    f: Box<dyn Fn(&Tensor) -> Result<Tensor> + Send + Sync>,
    stream: random::Stream,
    mode: Option<bool>,
    /// What buffers held, in the order they were read.
    reads: Vec<Tensor>,
}

/// A checkpoint's first run on this thread: levels that were open before it record nothing.
struct Frame {
    last_level: u64,
    /// The levels that would have recorded.
    levels: SmallVec<[Arc<Autodiff>; 2]>,
    reads: Vec<Tensor>,
}

thread_local! {
    static FRAME: RefCell<Option<Frame>> = const { RefCell::new(None) };
    static REPLAY: RefCell<Option<VecDeque<Tensor>>> = const { RefCell::new(None) };
}

/// f(x), of which only `x` is kept: what lies between is computed again when the gradient is taken.
///
/// Parameters that the closure holds get their gradients. The second run draws the same random numbers, reads buffers
/// as they were and does not write them. The closure outlives the call, so that it holds its layers by value: a clone
/// of a layer shares its parameters.
///
/// # Errors
/// What `f` reports.
///
/// # Example: a layer whose intermediate values are not kept
/// ```
/// # fn main() -> tensor_core::Result<()> {
/// use nn::{Forward, checkpoint, with_gradient};
/// use tensor_core::Tensor;
///
/// let device = backend_cpu::device();
/// let model = nn::Linear::new(2, 3, &device)?;
/// let x = Tensor::ones([4, 2], &device)?;
/// let (_, grads) = with_gradient(&model, |m| {
///     let layer = m.clone();
///     checkpoint(move |x| layer.forward(x)?.tanh(), &x)?.sum(..)
/// })?;
/// assert!(grads.of(&model.weight).is_some());
/// # Ok(())
/// # }
/// ```
pub fn checkpoint(f: impl Fn(&Tensor) -> Result<Tensor> + Send + Sync + 'static, x: &Tensor) -> Result<Tensor> {
    let stream = random::fork();
    if FRAME.with_borrow(Option::is_some) {
        // The outermost checkpoint computes this again anyway.
        return random::with_stream(stream, || f(x));
    }
    let (y, mut frame) = in_frame(|| {
        let y = random::with_stream(stream.clone(), || f(x))?;
        // A result that the closure only hands through counts as a use of it, too.
        y.view(&Movement::Reshape(y.shape().clone()))
    });
    let mut value = lowered_to(&y?, 0);
    frame.levels.sort_by_key(|autodiff| autodiff.level);
    let replay = Arc::new(Replay { f: Box::new(f), stream, mode: leaf::mode_override(), reads: frame.reads });
    for autodiff in &frame.levels {
        let x = lowered_to(x, autodiff.level);
        let mut node = Node::new(Recorded::Checkpoint(replay.clone()));
        node.inputs.push(match autodiff.mine(&x) {
            Some(traced) => Operand::new(&traced.primal, traced.slot, true),
            None => Operand::new(&x, NONE, true),
        });
        node.outputs.push(None);
        let slot = autodiff.push(node);
        value = wrap(value, slot, autodiff.device());
    }
    Ok(value)
}

impl Replay {
    /// f of the kept input, recorded by `autodiff`.
    pub(super) fn run(&self, autodiff: &Autodiff, input: &Operand) -> Result<Tensor> {
        let value = input.value().expect("invariant: a checkpoint keeps its input").clone();
        let x = if input.is_wanted() { wrap(value, input.slot(), autodiff.device()) } else { value };
        let reads = self.reads.iter().cloned().collect();
        replaying(reads, || leaf::with_mode(self.mode, || random::with_stream(self.stream.clone(), || (self.f)(&x))))
    }
}

/// Whether a checkpoint's first run keeps this level from recording; it notes that the level would have.
pub(super) fn is_paused(autodiff: &Autodiff) -> bool {
    FRAME.with_borrow_mut(|frame| match frame {
        Some(frame) if autodiff.level <= frame.last_level => {
            if frame.levels.iter().all(|known| known.level != autodiff.level) {
                frame.levels.extend(autodiff.me.upgrade());
            }
            true
        }
        _ => false,
    })
}

/// What a buffer holds: within a replay what it held at that time.
pub(crate) fn replayed(read: impl FnOnce() -> Tensor) -> Tensor {
    let value = REPLAY.with_borrow_mut(|reads| reads.as_mut().and_then(VecDeque::pop_front)).unwrap_or_else(read);
    FRAME.with_borrow_mut(|frame| frame.iter_mut().for_each(|frame| frame.reads.push(value.clone())));
    value
}

/// Whether buffers are frozen on this thread.
pub(crate) fn is_replaying() -> bool {
    REPLAY.with_borrow(Option::is_some)
}

fn in_frame<R>(f: impl FnOnce() -> R) -> (R, Frame) {
    struct Leave;
    impl Drop for Leave {
        fn drop(&mut self) {
            FRAME.take();
        }
    }
    let last_level = LAST_LEVEL.load(Ordering::Relaxed);
    FRAME.set(Some(Frame { last_level, levels: SmallVec::new(), reads: Vec::new() }));
    let leave = Leave;
    let result = f();
    let frame = FRAME.take().expect("invariant: only the outermost checkpoint has a frame");
    drop(leave);
    (result, frame)
}

fn replaying<R>(reads: VecDeque<Tensor>, f: impl FnOnce() -> R) -> R {
    struct Restore(Option<VecDeque<Tensor>>);
    impl Drop for Restore {
        fn drop(&mut self) {
            REPLAY.set(self.0.take());
        }
    }
    let _restore = Restore(REPLAY.replace(Some(reads)));
    f()
}
