//! Gradients by a model's parameters.

use tensor_core::{Error, Result, Tensor};

use super::lift::lift;
use super::{Gradients, check_loss, one};
use crate::module::each_leaf;
use crate::{Leaf, Module};

/// What the closure of [`with_gradient`] may return: the loss, or a tuple that starts with it.
pub trait Outcome: Sized {
    /// The loss: a single float.
    fn loss(&self) -> &Tensor;

    /// The same with the loss as a plain value.
    fn with_loss(self, loss: Tensor) -> Self;
}

impl Outcome for Tensor {
    fn loss(&self) -> &Tensor {
        self
    }

    fn with_loss(self, loss: Tensor) -> Self {
        loss
    }
}

impl<X> Outcome for (Tensor, X) {
    fn loss(&self) -> &Tensor {
        &self.0
    }

    fn with_loss(self, loss: Tensor) -> Self {
        (loss, self.1)
    }
}

impl<X, Y> Outcome for (Tensor, X, Y) {
    fn loss(&self) -> &Tensor {
        &self.0
    }

    fn with_loss(self, loss: Tensor) -> Self {
        (loss, self.1, self.2)
    }
}

/// The loss that a closure computes with a model, and its gradients by the model's trainable parameters.
///
/// The closure receives a copy of the model: its parameters are traced, its layers train (see [`crate::Mode`]), and
/// what it writes to buffers is stored in `model` when the call succeeds. Use that copy, not the outer model. It may be
/// shared with threads. The closure may return `(loss, anything)`: the rest is handed through, and tensors in it count as
/// plain values. Calls nest, for gradients of gradients.
///
/// # Errors
/// What the closure reports; if the loss is not a single float, or lies on another device; if no trainable parameter
/// reaches it; if one parameter has two values, or the parameters lie on different devices.
///
/// # Example: one gradient
/// ```
/// # fn main() -> tensor_core::Result<()> {
/// use nn::{Forward, with_gradient};
/// use tensor_core::Tensor;
///
/// let device = backend_cpu::device();
/// let model = nn::Linear::new(2, 1, &device)?;
/// let x = Tensor::from_slice(&[1.0f32, 2.0], [1, 2], &device)?;
/// let (loss, grads) = with_gradient(&model, |m| m.forward(&x)?.sum(..))?;
/// assert_eq!(loss.item::<f32>()?, model.forward(&x)?.item::<f32>()?);
/// let by_weight = grads.of(&model.weight).expect("the weight reaches the loss");
/// assert_eq!(by_weight.to_vec::<f32>()?, [1.0, 2.0]);
/// # Ok(())
/// # }
/// ```
pub fn with_gradient<M: Module + Clone, T: Outcome>(
    model: &M,
    f: impl FnOnce(&M) -> Result<T>,
) -> Result<(T, Gradients)> {
    let op = "with_gradient";
    let mut copy = model.clone();
    let mut lifted = lift(&mut copy)?;
    let Some(session) = lifted.session.take() else {
        return Err(Error::gradient(op, "the model has no trainable parameter; thaw it with .thaw()"));
    };
    let outcome = f(&copy)?;
    check_loss(op, &session, outcome.loss())?;
    let (value, trace) = session.finish(outcome.loss(), lifted.n_params());
    let written = if lifted.n_buffers > 0 { written_buffers(&copy) } else { Vec::new() };
    drop(copy);
    let Some(trace) = trace else {
        return Err(Error::gradient(
            op,
            "no parameter reaches the loss: did the closure use the outer model, or stop the gradient? use the model that \
             it receives",
        ));
    };
    let outcome = outcome.with_loss(value.clone());
    let walked = trace.walk(one(&value)?)?;
    let parts = lifted.ids().zip(walked).filter_map(|((id, path), gradient)| Some((id, path, gradient?)));
    let gradients = Gradients::collect(parts);
    if !written.is_empty() {
        commit(model, written);
    }
    Ok((outcome, gradients))
}

/// What the closure wrote to the copy's buffers, by number.
fn written_buffers(copy: &impl Module) -> Vec<(usize, Tensor)> {
    let mut written = Vec::new();
    let mut n = 0;
    each_leaf(copy, |_, _, leaf| {
        if let Leaf::Buffer(buffer) = leaf {
            written.extend(buffer.written().map(|value| (n, value)));
            n += 1;
        }
    });
    written
}

fn commit(model: &impl Module, written: Vec<(usize, Tensor)>) {
    let mut written = written.into_iter().peekable();
    let mut n = 0;
    each_leaf(model, |_, _, leaf| {
        if let Leaf::Buffer(buffer) = leaf {
            if let Some((_, value)) = written.next_if(|&(i, _)| i == n) {
                buffer.commit(value);
            }
            n += 1;
        }
    });
}
