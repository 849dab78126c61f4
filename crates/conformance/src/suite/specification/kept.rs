//! What the tape keeps of an op against what the op's record says: by the life of storages on a device without values.

use std::any::Any;
use std::collections::HashSet;
use std::sync::Weak;

use nn::{Param, with_gradient};
use tensor_core::op::ReduceKind;
use tensor_core::{DType, Expr, Meta, Op, Result, Tensor, execute};

use super::{failure, trials};
use crate::suite::report::Failure;
use crate::suite::{probe, subjects};

pub(super) fn run(seed: u64) -> Vec<Failure> {
    let mut failures = Vec::new();
    let mut seen = HashSet::new();
    for subject in subjects() {
        for (case, trial) in trials(subject, seed, 6) {
            for (op, metas) in probe::steps(&trial.call, DType::F64).unwrap_or_default() {
                if is_split(&op) || !seen.insert(key(&op, &metas)) {
                    continue;
                }
                let message = match judge(&op, &metas) {
                    Ok(None) => continue,
                    Ok(Some(message)) => message,
                    Err(error) => format!("its gradient needs what is not kept: {error}"),
                };
                let about = format!(
                    "{case}: {}",
                    metas.iter().map(|m| format!("{} {}", m.dtype, m.shape)).collect::<Vec<_>>().join(", ")
                );
                failures.push(failure(op.name(), "kept", about, message));
            }
        }
    }
    failures
}

/// The same for ops that keep the same.
fn key(op: &Op, metas: &[Meta]) -> (String, Vec<DType>, u32, u32) {
    let keeps = op.record().keeps();
    (op.name().to_string(), metas.iter().map(|meta| meta.dtype).collect(), keeps.inputs, keeps.outputs)
}

/// Whether the tape records other ops in its place, of which each is judged where it stands alone.
fn is_split(op: &Op) -> bool {
    let reads_result = |epilogue: &Expr| {
        !epilogue.is_identity() && epilogue.code.derivatives().iter().flatten().any(|code| code.reads(0))
    };
    match op {
        Op::NormalizeGrad(_) | Op::AttentionGrad(_) => true,
        Op::MatMul(op) => reads_result(&op.epilogue),
        Op::Conv(op) => reads_result(&op.epilogue),
        Op::Reduce(op) => op.kind != ReduceKind::Sum && !op.producer.is_identity(),
        _ => false,
    }
}

/// A storage, held by whoever needs it.
struct Watched(Weak<dyn Any + Send + Sync>);

impl Watched {
    /// The storage of the plain value.
    fn new(x: &Tensor) -> Self {
        let plain = x.place().backend().lower(x).unwrap_or_else(|| x.clone());
        Self(std::sync::Arc::downgrade(plain.storage()))
    }

    fn is_alive(&self) -> bool {
        self.0.strong_count() > 0
    }
}

/// What is kept and should not be, or the other way round; an error when the gradient fails for want of it.
fn judge(op: &Op, metas: &[Meta]) -> Result<Option<String>> {
    let (device, _) = probe::device();
    let parameter = |meta: &Meta| {
        let zeros = || Tensor::zeros(&meta.shape[..], (&device, meta.dtype));
        meta.dtype.is_float().then(|| zeros().map(Param::new)).transpose()
    };
    let parameters = metas.iter().map(parameter).collect::<Result<Vec<Option<Param>>>>()?;
    let mut found = None;
    let walked = with_gradient(&parameters, |parameters| {
        // Values that nobody but the tape holds on to: a negation's derivative reads nothing.
        let input = |(p, meta): (&Option<Param>, &Meta)| match p {
            Some(p) => p.neg(),
            None => Tensor::zeros(&meta.shape[..], (&device, meta.dtype)),
        };
        let inputs = parameters.iter().zip(metas).map(input).collect::<Result<Vec<_>>>()?;
        let outputs = execute(op, &inputs.iter().collect::<Vec<_>>())?;
        let mut loss: Option<Tensor> = None;
        for y in outputs.iter().filter(|y| y.dtype().is_float()) {
            let term = y.neg()?.sum(..)?.cast(DType::F64)?;
            loss = Some(match loss {
                Some(loss) => loss.add(&term)?,
                None => term,
            });
        }
        let watched_inputs: Vec<Watched> = inputs.iter().map(Watched::new).collect();
        let watched_outputs: Vec<Watched> = outputs.iter().map(Watched::new).collect();
        let is_recorded = outputs.iter().any(|y| y.dtype().is_float()) && has_slope(op, metas);
        drop((inputs, outputs));
        let keeps = op.record().keeps();
        let differs = |what: &str, i: usize, is_named: bool, watched: &Watched| match (watched.is_alive(), is_named) {
            (true, false) => Some(format!("{what} {i} is kept, but the contract does not name it")),
            (false, true) => Some(format!("{what} {i} is not kept, but the contract names it")),
            _ => None,
        };
        let of_input = |(i, x)| differs("input", i, is_recorded && keeps.input(i), x);
        let of_output = |(k, y)| differs("output", k, is_recorded && keeps.output(k), y);
        let inputs = watched_inputs.iter().enumerate().find_map(of_input);
        found = inputs.or_else(|| watched_outputs.iter().enumerate().find_map(of_output));
        loss.map_or_else(|| Tensor::zeros([0usize; 0], (&device, DType::F64)), Ok)
    });
    match walked {
        // No output is a function of a parameter.
        Err(error) if error.is_gradient() && !has_slope(op, metas) => Ok(found),
        Err(error) => Err(error),
        Ok(_) => Ok(found),
    }
}

/// Whether some output changes smoothly with some input.
fn has_slope(op: &Op, metas: &[Meta]) -> bool {
    let of = |expr: &Expr| {
        let derivatives = expr.code.derivatives().iter().zip(metas);
        derivatives.into_iter().any(|(code, meta)| code.is_some() && meta.dtype.is_float())
    };
    match op {
        Op::Map(map) => map.exprs.iter().any(of),
        Op::Reduce(reduce) => of(&reduce.producer),
        Op::ArgReduce(_) | Op::Random(_) | Op::Iota(_) | Op::Fill(_) => false,
        _ => metas.iter().any(|meta| meta.dtype.is_float()),
    }
}
