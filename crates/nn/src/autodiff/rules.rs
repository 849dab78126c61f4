//! The derivative of every op, once, written in ops: so it runs on every device and can be differentiated itself.

use tensor_core::op::ReduceKind;
use tensor_core::{Error, Op, Result, Shape, Tensor, execute};

use super::tape::{NONE, Operand, Slot};
use super::walk::{Step, zeros};

mod attention;
mod conv;
mod elementwise;
mod index;
mod matmul;
mod movement;
mod normalize;
mod pool;
mod reduce;
mod scan;
mod softmax;

pub(super) use movement::movement;

/// The gradients by the inputs of a recorded op.
pub(super) fn op(op: &Op, step: &mut Step<'_>) -> Result<()> {
    match op {
        Op::Map(map) => elementwise::map(map, step),
        Op::Reduce(reduce) => match reduce.kind {
            ReduceKind::Sum => reduce::sum(reduce, step),
            ReduceKind::Prod => reduce::product(reduce, step),
            ReduceKind::Max => reduce::extremum(reduce, true, step),
            ReduceKind::Min => reduce::extremum(reduce, false, step),
        },
        Op::Scan(scan) => scan::scan(scan, step),
        Op::MatMul(matmul) => matmul::matmul(matmul, step),
        Op::Conv(conv) => conv::conv(conv, step),
        Op::ConvInputGrad(grad) => conv::input_grad(grad, step),
        Op::ConvWeightGrad(grad) => conv::weight_grad(grad, step),
        Op::Pool(pool) => pool::pool(pool, step),
        Op::AvgPoolGrad(grad) => pool::avg_pool_grad(grad, step),
        Op::Gather(gather) => index::gather(gather, step),
        Op::ScatterAdd(scatter) => index::scatter_add(scatter, step),
        Op::Sort(sort) => index::sort(sort, step),
        Op::Concat(concat) => movement::concat(concat, step),
        Op::Pad(pad) => movement::pad(pad, step),
        Op::Copy => step.give(0, step.g().clone()),
        Op::Softmax(softmax) => softmax::softmax(softmax, step),
        Op::CrossEntropy(_) => softmax::cross_entropy(step),
        Op::Normalize(normalize) => normalize::normalize(normalize, step),
        Op::Attention(op) => attention::attention(op, step),
        Op::Custom(custom) => elementwise::custom(&**custom, step),
        // Split into other ops before they are recorded: see `is_split`.
        Op::NormalizeGrad(_) | Op::AttentionGrad(_) => Err(never_recorded(op)),
        // Functions of nothing, or to integers: see `is_smooth`.
        Op::ArgReduce(_) | Op::Random(_) | Op::Iota(_) | Op::Fill(_) => Err(never_recorded(op)),
    }
}

#[cold]
fn never_recorded(op: &Op) -> Error {
    Error::gradient(op.name().to_string(), "invariant: this op is never recorded")
}

/// Whether the op is recorded as its decomposition: where a rule would read a value that the op does not give.
pub(super) fn is_split(op: &Op) -> bool {
    match op {
        Op::MatMul(matmul) => elementwise::reads_result(&matmul.epilogue),
        Op::Conv(conv) => elementwise::reads_result(&conv.epilogue),
        Op::Reduce(reduce) => reduce.kind != ReduceKind::Sum && !reduce.producer.is_identity(),
        Op::NormalizeGrad(_) | Op::AttentionGrad(_) => true,
        Op::Map(_)
        | Op::ArgReduce(_)
        | Op::Scan(_)
        | Op::ConvInputGrad(_)
        | Op::ConvWeightGrad(_)
        | Op::Pool(_)
        | Op::AvgPoolGrad(_)
        | Op::Gather(_)
        | Op::ScatterAdd(_)
        | Op::Sort(_)
        | Op::Concat(_)
        | Op::Pad(_)
        | Op::Copy
        | Op::Random(_)
        | Op::Iota(_)
        | Op::Fill(_)
        | Op::Softmax(_)
        | Op::Normalize(_)
        | Op::CrossEntropy(_)
        | Op::Attention(_)
        | Op::Custom(_) => false,
    }
}

/// Whether an output changes smoothly with input `i` (a float): otherwise its gradient is zero everywhere.
pub(super) fn is_smooth(op: &Op, i: usize) -> bool {
    match op {
        Op::Map(map) => map.exprs.iter().any(|e| e.code.derivatives()[i].is_some()),
        Op::Reduce(reduce) => reduce.producer.code.derivatives()[i].is_some(),
        Op::MatMul(matmul) => i < 2 || matmul.epilogue.code.derivatives()[i - 1].is_some(),
        Op::Conv(conv) => i < 2 || conv.epilogue.code.derivatives()[i - 1].is_some(),
        Op::ArgReduce(_) | Op::Random(_) | Op::Iota(_) | Op::Fill(_) => false,
        Op::Scan(_)
        | Op::ConvInputGrad(_)
        | Op::ConvWeightGrad(_)
        | Op::Pool(_)
        | Op::AvgPoolGrad(_)
        | Op::Gather(_)
        | Op::ScatterAdd(_)
        | Op::Sort(_)
        | Op::Concat(_)
        | Op::Pad(_)
        | Op::Copy
        | Op::Softmax(_)
        | Op::Normalize(_)
        | Op::NormalizeGrad(_)
        | Op::CrossEntropy(_)
        | Op::Attention(_)
        | Op::AttentionGrad(_)
        | Op::Custom(_) => true,
    }
}

/// What is kept of an op: of what its record declares, what the gradients that are wanted read.
pub(super) struct Keeps<'a> {
    op: &'a Op,
    wanted: &'a [Slot],
    declared: tensor_core::Keeps,
}

impl<'a> Keeps<'a> {
    pub(super) fn of(op: &'a Op, wanted: &'a [Slot]) -> Self {
        let declared = match op {
            // Read off their expressions below.
            Op::Map(_) | Op::MatMul(_) | Op::Conv(_) => tensor_core::Keeps::NOTHING,
            _ => op.record().keeps(),
        };
        Self { op, wanted, declared }
    }

    pub(super) fn input(&self, i: usize) -> bool {
        let wants = |j: usize| self.wanted.get(j).is_some_and(|&slot| slot != NONE);
        match self.op {
            Op::Map(map) => map.exprs.iter().any(|e| elementwise::is_read(e, i, wants)),
            Op::Reduce(reduce) if reduce.kind == ReduceKind::Sum => elementwise::is_read(&reduce.producer, i, wants),
            Op::MatMul(matmul) => matmul::is_read(&matmul.epilogue, i, wants),
            Op::Conv(conv) => matmul::is_read(&conv.epilogue, i, wants),
            Op::ConvInputGrad(_) | Op::ConvWeightGrad(_) => wants(1 - i),
            _ => self.declared.input(i),
        }
    }

    pub(super) fn output(&self, k: usize) -> bool {
        self.declared.output(k)
    }
}

/// Sums a gradient of a broadcast result back to the shape that was broadcast.
fn unbroadcast(g: &Tensor, shape: &Shape) -> Result<Tensor> {
    if g.shape() == shape {
        return Ok(g.clone());
    }
    g.sum_keepdim(&broadcast_axes(g.shape(), shape)[..])?.reshape(shape)
}

/// The axes of `full` along which a tensor of `shape` was repeated.
fn broadcast_axes(full: &Shape, shape: &Shape) -> tensor_core::Dims {
    let lead = full.rank() - shape.rank();
    (0..full.rank()).filter(|&a| a < lead || (shape[a - lead] == 1 && full[a] != 1)).collect()
}

/// Runs an op and gives its first output.
fn run(op: &Op, inputs: &[&Tensor]) -> Result<Tensor> {
    Ok(execute(op, inputs)?.into_iter().next().expect("invariant: an op has an output"))
}

/// An expression that is built once.
macro_rules! formula {
    (|[$($x:ident),+]| $value:expr) => {{
        static EXPR: std::sync::OnceLock<tensor_core::Expr> = std::sync::OnceLock::new();
        EXPR.get_or_init(|| tensor_core::expr::build(|[$($x),+]| $value))
    }};
}
use formula;

/// A formula over tensors as one op.
fn zip(name: &'static str, expr: &tensor_core::Expr, inputs: &[&Tensor]) -> Result<Tensor> {
    run(&Op::Map(tensor_core::op::Map::new(name, expr.clone())), inputs)
}
