//! The kernels, one file per op. Each has `run(op, inputs, outputs, context)`: inputs of any layout that core has
//! accepted, `outputs` what core inferred, and one row-major storage per output to return.

use tensor_core::{Meta, Op, Result, Storages, Tensor};

use crate::Context;

pub(crate) mod arg_reduce;
pub(crate) mod attention;
pub(crate) mod concat;
pub(crate) mod conv;
pub(crate) mod copy;
pub(crate) mod cross_entropy;
pub(crate) mod custom;
pub(crate) mod dense;
pub(crate) mod epilogue;
pub(crate) mod fill;
pub(crate) mod gather;
pub(crate) mod gemm;
pub(crate) mod iota;
pub(crate) mod lanes;
pub(crate) mod map;
pub(crate) mod matmul;
pub(crate) mod normalize;
pub(crate) mod number;
pub(crate) mod pad;
pub(crate) mod pool;
pub(crate) mod random;
pub(crate) mod reduce;
pub(crate) mod scan;
pub(crate) mod softmax;
pub(crate) mod sort;
#[cfg(test)]
pub(crate) mod testing;
pub(crate) mod update;

/// Sends an op to its kernel.
pub(crate) fn execute(op: &Op, inputs: &[&Tensor], outputs: &[Meta], cx: &Context<'_>) -> Result<Storages> {
    match op {
        Op::Copy => copy::run(inputs, outputs, cx),
        Op::Map(op) => map::run(op, inputs, outputs, cx),
        Op::Reduce(op) => reduce::run(op, inputs, outputs, cx),
        Op::ArgReduce(op) => arg_reduce::run(op, inputs, outputs, cx),
        Op::Scan(op) => scan::run(op, inputs, outputs, cx),
        Op::MatMul(op) => matmul::run(op, inputs, outputs, cx),
        Op::Conv(op) => conv::run(op, inputs, outputs, cx),
        Op::ConvInputGrad(op) => conv::input_grad(op, inputs, outputs, cx),
        Op::ConvWeightGrad(op) => conv::weight_grad(op, inputs, outputs, cx),
        Op::Pool(op) => pool::run(op, inputs, outputs, cx),
        Op::AvgPoolGrad(op) => pool::avg_pool_grad(op, inputs, outputs, cx),
        Op::Gather(op) => gather::run(op, inputs, outputs, cx),
        Op::ScatterAdd(op) => gather::scatter_add(op, inputs, outputs, cx),
        Op::Sort(op) => sort::run(op, inputs, outputs, cx),
        Op::Concat(op) => concat::run(op, inputs, outputs, cx),
        Op::Pad(op) => pad::run(op, inputs, outputs, cx),
        Op::Random(op) => random::run(op, inputs, outputs, cx),
        Op::Iota(op) => iota::run(op, inputs, outputs, cx),
        Op::Fill(op) => fill::run(op, inputs, outputs, cx),
        Op::Softmax(op) => softmax::run(op, inputs, outputs, cx),
        Op::Normalize(op) => normalize::run(op, inputs, outputs, cx),
        Op::NormalizeGrad(op) => normalize::grad(op, inputs, outputs, cx),
        Op::CrossEntropy(_) => cross_entropy::run(inputs, outputs, cx),
        Op::Attention(op) => attention::run(op, inputs, outputs, cx),
        Op::AttentionGrad(op) => attention::grad(op, inputs, outputs, cx),
        Op::Custom(op) => custom::run(op, inputs, outputs, cx),
    }
}
