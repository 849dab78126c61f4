//! Recomputation: the same loss and gradients, with less kept.

use nn::{Buffer, Forward, Module, Param, checkpoint, gradient, inference, with_gradient};
use tensor_core::{Result, Tensor, random};

use crate::support::{assert_close, assert_values, device, spread, tensor, values};

/// tanh(x·w), a dropout-like mask, and a count of calls.
#[derive(Module, Clone, Debug)]
struct Block {
    weight: Param,
    calls: Buffer,
    level: Buffer,
    mode: nn::Mode,
}

impl Block {
    fn new(seed: u64) -> Self {
        Self {
            weight: Param::new(spread(&[3, 3], -1.0, 1.0, seed)),
            calls: Buffer::new(tensor(&[0.0], ())),
            level: Buffer::new(tensor(&[1.0], ())),
            mode: nn::Mode::default(),
        }
    }
}

impl Forward for Block {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        self.calls.set(&self.calls.get().add(1.0)?)?;
        // A buffer that is read before and after it is written.
        let before = self.level.get();
        self.level.set(&before.mul(3.0)?)?;
        let y = x.matmul(&self.weight)?.mul(&before)?.mul(&self.level.get())?.tanh()?;
        if !self.mode.is_training() {
            return Ok(y);
        }
        let mask = Tensor::bernoulli(0.5, [2, 3], (&device(), tensor_core::DType::F64))?;
        y.mul(&mask)
    }
}

type Model = (Block, Block);

fn recomputed(m: &Model, x: &Tensor) -> Result<Tensor> {
    let (a, b) = m.clone();
    let y = checkpoint(move |x| a.forward(x), x)?;
    checkpoint(move |x| b.forward(x), &y)?.square()?.sum(..)
}

/// One checkpoint around two.
fn nested(m: &Model, x: &Tensor) -> Result<Tensor> {
    let m = m.clone();
    checkpoint(move |x| recomputed(&m, x), x)
}

/// Without checkpoints. A checkpoint forks the random stream: so does this.
fn plain(m: &Model, x: &Tensor) -> Result<Tensor> {
    let y = random::with_stream(random::fork(), || m.0.forward(x))?;
    random::with_stream(random::fork(), || m.1.forward(&y))?.square()?.sum(..)
}

#[test]
fn gradients_are_those_of_the_plain_function() {
    let x = spread(&[2, 3], -1.0, 1.0, 9);
    let run = |f: fn(&Model, &Tensor) -> Result<Tensor>| {
        let model = (Block::new(1), Block::new(2));
        let stream = random::Stream::new(5);
        let (loss, grads) = random::with_stream(stream, || with_gradient(&model, |m| f(m, &x))).unwrap();
        assert_values("calls are counted once", &model.0.calls.get(), &[1.0]);
        assert_values("and states move once", &model.1.level.get(), &[3.0]);
        let grads: Vec<Vec<f64>> = grads.iter().map(|(_, g)| values(g)).collect();
        assert_eq!(grads.len(), 2);
        (values(&loss), grads)
    };
    assert_eq!(run(recomputed), run(plain));
    let inner = |m: &Model, x: &Tensor| random::with_stream(random::fork(), || plain(m, x));
    assert_eq!(run(nested), run(inner));
}

#[test]
fn the_input_has_its_gradient_too() {
    let w = spread(&[3, 3], -1.0, 1.0, 1);
    let x = spread(&[2, 3], -1.0, 1.0, 9);
    let plain = |x: &Tensor| x.matmul(&w)?.tanh()?.square()?.sum(..);
    let recomputed = |x: &Tensor| {
        let w = w.clone();
        checkpoint(move |x| x.matmul(&w)?.tanh()?.square(), x)?.sum(..)
    };
    assert_close("first", &gradient(recomputed, &x).unwrap(), &gradient(plain, &x).unwrap(), 1e-12);
    let second = |f: &dyn Fn(&Tensor) -> Result<Tensor>| gradient(|x| gradient(f, x)?.square()?.sum(..), &x).unwrap();
    assert_close("second", &second(&recomputed), &second(&plain), 1e-12);
    // The outer level reaches the closure through what it holds, the inner one through its argument.
    let both = |x: &Tensor| {
        let outer = x.clone();
        gradient(
            |y| {
                let outer = outer.clone();
                checkpoint(move |y| y.square()?.mul(&outer)?.sum(..), y)
            },
            x,
        )?
        .sum(..)
    };
    // d/dx of Σ 2·x·x is 4·x.
    assert_close("levels", &gradient(both, &x).unwrap(), &x.mul(4.0).unwrap(), 1e-12);
}

#[test]
fn corner_cases() {
    let x = tensor(&[1.0, 2.0], [2]);
    let c = x.clone();
    assert_values(
        "a constant function",
        &gradient(
            move |_| {
                let c = c.clone();
                checkpoint(move |_| c.sum(..), &tensor(&[1.0], ()))
            },
            &x,
        )
        .unwrap(),
        &[0.0, 0.0],
    );
    assert_values("the identity", &gradient(|x| checkpoint(|x| Ok(x.clone()), x)?.sum(..), &x).unwrap(), &[1.0, 1.0]);
    let captured = |x: &Tensor| {
        let held = x.clone();
        checkpoint(move |_| Ok(held.clone()), &tensor(&[1.0], ()))?.sum(..)
    };
    assert_values("handed through", &gradient(captured, &x).unwrap(), &[1.0, 1.0]);
    let within = |x: &Tensor| checkpoint(|x| gradient(|x| x.square()?.square()?.sum(..), x), x)?.sum(..);
    assert_values("a gradient within", &gradient(within, &x).unwrap(), &[12.0, 48.0]);
    assert_values("outside of gradients", &checkpoint(|x| x.square(), &x).unwrap(), &[1.0, 4.0]);
    let fails = |x: &Tensor| checkpoint(|x| x.reshape([3]), x)?.sum(..);
    assert!(gradient(fails, &x).unwrap_err().is_shape());
    assert_values("and works on", &gradient(|x| x.square()?.sum(..), &x).unwrap(), &[2.0, 4.0]);
}

/// The second run has the mode of the first, though the override has ended by then.
#[test]
fn the_mode_is_that_of_the_first_run() {
    let model = Block::new(1);
    let x = spread(&[2, 3], -1.0, 1.0, 9);
    let f = |m: &Block| m.forward(&x)?.square()?.sum(..);
    let (_, expected) = with_gradient(&model.clone(), |m| inference(|| f(m))).unwrap();
    let recomputed = |m: &Block| {
        let m = m.clone();
        inference(|| checkpoint(move |x| m.forward(x), &x))?.square()?.sum(..)
    };
    let (_, got) = with_gradient(&model.clone(), recomputed).unwrap();
    assert_close("weight", got.of(&model.weight).unwrap(), expected.of(&model.weight).unwrap(), 1e-12);
}
