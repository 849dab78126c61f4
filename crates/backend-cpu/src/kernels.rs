//! The kernels, one file per op. Each has `run(op, inputs, outputs, context)`: inputs of any layout that core has
//! accepted, `outputs` what core inferred, and one row-major storage per output to return.

use tensor_core::{Error, Meta, Op, Result, Storages, Tensor};

use crate::Context;

pub(crate) mod concat;
pub(crate) mod copy;
pub(crate) mod custom;
pub(crate) mod fill;
pub(crate) mod iota;
pub(crate) mod map;
pub(crate) mod pad;
pub(crate) mod random;
pub(crate) mod update;

/// Sends an op to its kernel.
pub(crate) fn execute(op: &Op, inputs: &[&Tensor], outputs: &[Meta], cx: &Context<'_>) -> Result<Storages> {
    match op {
        Op::Copy => copy::run(inputs, outputs, cx),
        Op::Map(op) => map::run(op, inputs, outputs, cx),
        Op::Reduce(_) => missing(op),
        Op::ArgReduce(_) => missing(op),
        Op::Scan(_) => missing(op),
        Op::MatMul(_) => missing(op),
        Op::Conv(_) => missing(op),
        Op::ConvInputGrad(_) => missing(op),
        Op::ConvWeightGrad(_) => missing(op),
        Op::Pool(_) => missing(op),
        Op::AvgPoolGrad(_) => missing(op),
        Op::Gather(_) => missing(op),
        Op::ScatterAdd(_) => missing(op),
        Op::Sort(_) => missing(op),
        Op::Concat(op) => concat::run(op, inputs, outputs, cx),
        Op::Pad(op) => pad::run(op, inputs, outputs, cx),
        Op::Random(op) => random::run(op, inputs, outputs, cx),
        Op::Iota(op) => iota::run(op, inputs, outputs, cx),
        Op::Fill(op) => fill::run(op, inputs, outputs, cx),
        Op::Softmax(_) => missing(op),
        Op::Normalize(_) => missing(op),
        Op::NormalizeGrad(_) => missing(op),
        Op::CrossEntropy(_) => missing(op),
        Op::Attention(_) => missing(op),
        Op::Custom(op) => custom::run(op, inputs, outputs, cx),
    }
}

fn missing(op: &Op) -> Result<Storages> {
    Err(Error::unsupported(op.name().to_string(), "has no kernel on cpu yet"))
}
