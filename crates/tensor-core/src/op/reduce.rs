//! Reductions over any subset of axes, with an elementwise producer fused in.

use smallvec::{SmallVec, smallvec};

use super::map::broadcast;
use super::{Contract, Keeps, Map, Meta, Metas, NUMBERS, Op, Record, Tensors, Tolerance, not_bool, one};
use crate::{DType, Dims, Error, Expr, Result, Tensor, execute};

/// What is folded over the axes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ReduceKind {
    /// Σ x; of nothing 0. 16-bit floats accumulate in f32; integers wrap.
    Sum,
    /// Π x; of nothing 1.
    Prod,
    /// The largest; NaN propagates; of nothing an error. Bool: any.
    Max,
    /// The smallest; NaN propagates; of nothing an error. Bool: all.
    Min,
}

/// y = fold over `axes` of producer(x_0, x_1, …).
#[derive(Clone, Debug)]
pub struct Reduce {
    /// The name of the function it came from, for errors and profiles.
    pub name: &'static str,
    /// The fold.
    pub kind: ReduceKind,
    /// Resolved axes of the broadcast inputs, ascending.
    pub axes: Dims,
    /// Whether reduced axes stay with size 1.
    pub keepdim: bool,
    /// What is folded; the identity for a plain reduction.
    pub producer: Expr,
}

impl Record for Reduce {
    fn name(&self) -> &str {
        self.name
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Metas> {
        let shape = broadcast(self.name, inputs)?;
        if let Some(&axis) = self.axes.iter().find(|&&a| a >= shape.rank()) {
            return Err(Error::axis(self.name, format!("axis is out of range: axis {axis}, rank {}", shape.rank())));
        }
        let dtypes: SmallVec<[DType; 4]> = inputs.iter().map(|m| m.dtype).collect();
        let dtype = self.producer.code.result(self.name, &dtypes)?;
        match self.kind {
            ReduceKind::Sum | ReduceKind::Prod => not_bool(self.name, "input", dtype)?,
            ReduceKind::Max | ReduceKind::Min => {
                let out = shape.reduced(&self.axes, false);
                if dtype != DType::Bool && shape.is_empty() && !out.is_empty() {
                    return Err(Error::shape(
                        self.name,
                        format!("has no value over no elements: input {shape}, axes {:?}", self.axes),
                    ));
                }
            }
        }
        one(shape.reduced(&self.axes, self.keepdim), dtype)
    }

    fn contract(&self) -> Contract {
        match self.kind {
            ReduceKind::Sum => Contract::sums(NUMBERS),
            ReduceKind::Prod => Contract::products(NUMBERS),
            ReduceKind::Max | ReduceKind::Min if self.producer.is_identity() => Contract::exact(),
            ReduceKind::Max | ReduceKind::Min => Contract { tolerance: Tolerance::Elementwise, ..Contract::exact() },
        }
    }

    fn keeps(&self) -> Keeps {
        match self.kind {
            ReduceKind::Sum => Map::new(self.name, self.producer.clone()).keeps(),
            // A producer is split off before the op is recorded.
            _ => Keeps { inputs: 1, outputs: 0 },
        }
    }

    fn decompose(&self, inputs: &[&Tensor]) -> Option<Result<Tensors>> {
        if self.producer.is_identity() {
            return None;
        }
        Some((|| {
            let produced = execute(&Op::Map(Map::new(self.name, self.producer.clone())), inputs)?;
            let plain = Self { producer: Expr::identity(), ..self.clone() };
            execute(&Op::Reduce(plain), &[&produced[0]])
        })())
    }
}

impl Reduce {
    /// A plain reduction.
    pub fn new(name: &'static str, kind: ReduceKind, axes: &[usize], keepdim: bool) -> Self {
        Self { name, kind, axes: Dims::from_slice(axes), keepdim, producer: Expr::identity() }
    }

    /// The producer as a map of its own.
    pub fn producer_map(&self) -> Map {
        Map { name: self.name, exprs: smallvec![self.producer.clone()] }
    }
}
