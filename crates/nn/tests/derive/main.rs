//! `#[derive(Module)]`: what is walked, under which paths, how a model prints, and the operations on whole models.

mod operations;
mod print;
mod walk;

use nn::{Buffer, Mode, Module, Param};
use tensor_core::{DType, Result, Tensor};

/// A parameter of `n` numbers.
fn param(n: usize) -> Param {
    Param::new(constant(n))
}

fn constant(n: usize) -> Tensor {
    Tensor::arange(0, n as i64, 1, (&backend_cpu::device(), DType::F64)).expect("n numbers")
}

/// A layer with every kind of leaf.
#[derive(Module, Clone, Debug)]
struct Norm {
    weight: Param,
    running: Buffer,
    table: Tensor,
    mode: Mode,
    epsilon: f64,
}

impl Norm {
    fn new(n: usize) -> Self {
        Self {
            weight: param(n),
            running: Buffer::new(constant(n)),
            table: constant(n),
            mode: Mode::default(),
            epsilon: 1e-5,
        }
    }
}

#[derive(Module, Clone, Debug)]
#[module(describe = Dense::settings)]
struct Dense {
    weight: Param,
    bias: Option<Param>,
}

impl Dense {
    fn new(n_in: usize, n_out: usize) -> Self {
        Self {
            weight: Param::new(constant(n_in * n_out).reshape([n_out, n_in]).expect("as many numbers")),
            bias: Some(param(n_out)),
        }
    }

    fn settings(&self) -> String {
        format!("Dense({} => {})", self.weight.dims()[1], self.weight.dims()[0])
    }
}

impl nn::Forward for Dense {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        x.matmul(&self.weight.t()?)
    }
}
