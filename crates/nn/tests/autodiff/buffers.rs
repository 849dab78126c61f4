//! Buffers: written inside a gradient, stored in the original once the call has succeeded.

use std::panic::{AssertUnwindSafe, catch_unwind};

use nn::{Buffer, Forward, Module, Param, with_gradient};
use tensor_core::{Error, Result, Tensor};

use crate::support::{assert_values, device, tensor};

/// Scales, and counts its calls.
#[derive(Module, Clone, Debug)]
struct Counting {
    scale: Param,
    calls: Buffer,
    last: Buffer,
}

impl Counting {
    fn new() -> Self {
        let zero = || Buffer::new(tensor(&[0.0], ()));
        Self { scale: Param::new(tensor(&[2.0], ())), calls: zero(), last: zero() }
    }

    #[track_caller]
    fn assert(&self, name: &str, calls: f64, last: f64) {
        assert_values(name, &self.calls.get(), &[calls]);
        assert_values(name, &self.last.get(), &[last]);
        assert_eq!(*self.calls.get().place(), device(), "{name}: a plain value");
    }
}

impl Forward for Counting {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let y = x.mul(&self.scale)?;
        self.calls.set(&self.calls.get().add(1.0)?)?;
        self.last.set(&y)?;
        Ok(y)
    }
}

fn one() -> Tensor {
    tensor(&[1.0], ())
}

#[test]
fn writes_reach_the_original_when_the_call_succeeds() {
    let model = Counting::new();
    with_gradient(&model, |m| {
        let y = m.forward(&one())?;
        model.assert("not yet", 0.0, 0.0);
        m.assert("at once in the copy", 1.0, 2.0);
        m.forward(&y)
    })
    .unwrap();
    model.assert("twice", 2.0, 4.0);
    model.forward(&one()).unwrap();
    model.assert("outside of gradients at once", 3.0, 2.0);
}

#[test]
fn writes_are_lost_when_the_call_fails() {
    let model = Counting::new();
    let fails = |m: &Counting| -> Result<Tensor> {
        m.forward(&one())?;
        Err(Error::other("test", "fails"))
    };
    with_gradient(&model, fails).unwrap_err();
    with_gradient(&model, |m| m.forward(&tensor(&[1.0, 2.0], [2]))).unwrap_err();
    let panics = |m: &Counting| -> Result<Tensor> {
        m.forward(&one())?;
        panic!("in the closure")
    };
    catch_unwind(AssertUnwindSafe(|| with_gradient(&model, panics))).unwrap_err();
    model.assert("nothing", 0.0, 0.0);
    with_gradient(&model, |m| m.forward(&one())).unwrap();
    model.assert("and works on", 1.0, 2.0);
}

#[test]
fn nested_calls_commit_with_the_outermost() {
    let model = Counting::new();
    let nested = |m: &Counting| {
        let (_, grads) = with_gradient(m, |m| m.forward(&one())?.square())?;
        m.assert("in the outer copy", 1.0, 2.0);
        model.assert("not yet", 0.0, 0.0);
        m.forward(grads.of(&m.scale).expect("the scale reaches the loss"))
    };
    with_gradient(&model, nested).unwrap();
    model.assert("both", 2.0, 8.0);
    let fails_outside = |m: &Counting| -> Result<Tensor> {
        with_gradient(m, |m| m.forward(&one()))?;
        Err(Error::other("test", "fails"))
    };
    with_gradient(&model, fails_outside).unwrap_err();
    model.assert("unchanged", 2.0, 8.0);
}

#[test]
fn clones_are_copies_but_share_inside() {
    let model = Counting::new();
    let clone = model.clone();
    clone.forward(&one()).unwrap();
    model.assert("a clone has its own", 0.0, 0.0);
    with_gradient(&model, |m| m.clone().forward(&one())).unwrap();
    model.assert("a clone of the lent model writes to it", 1.0, 2.0);
}

#[test]
fn a_buffer_keeps_its_form() {
    let buffer = Buffer::new(tensor(&[0.0, 0.0], [2]));
    let error = buffer.set(&tensor(&[0.0], [1])).unwrap_err();
    assert_eq!(
        error.to_string(),
        "buffer: a new value must be like the old one: old [2] f64 on cpu, new [1] f64 on cpu"
    );
}
