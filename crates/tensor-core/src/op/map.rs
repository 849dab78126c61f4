//! Elementwise ops: one or more expressions over inputs that broadcast to one shape.

use smallvec::{SmallVec, smallvec};

use super::{Contract, Keeps, Meta, Metas, Record, Tolerance, one};
use crate::expr::FORMULAS;
use crate::{DType, Error, Expr, Result, Shape};

/// y_k = e_k(x_0, x_1, …), elementwise over the broadcast inputs.
#[derive(Clone, Debug)]
pub struct Map {
    /// The name of the function it came from, for errors and profiles.
    pub name: &'static str,
    /// One expression per output, all over the same inputs.
    pub exprs: SmallVec<[Expr; 1]>,
}

impl Map {
    /// A map with one output.
    pub fn new(name: &'static str, expr: Expr) -> Self {
        Self { name, exprs: smallvec![expr] }
    }
}

/// The shape that all inputs broadcast to.
pub(super) fn broadcast(op: &'static str, inputs: &[Meta]) -> Result<Shape> {
    let mut shape = inputs.first().map(|m| m.shape.clone()).unwrap_or_default();
    for (i, meta) in inputs.iter().enumerate().skip(1) {
        if meta.shape == shape {
            continue;
        }
        shape = shape.broadcast(&meta.shape).ok_or_else(|| {
            let rule = "shapes do not broadcast (sizes, from the last axis on, must be equal or 1)";
            Error::shape(
                op,
                match (i, inputs) {
                    (1, [lhs, rhs]) => format!("{rule}: lhs {}, rhs {}", lhs.shape, rhs.shape),
                    _ => format!("{rule}: input {i} {}, those before it {shape}", meta.shape),
                },
            )
        })?;
    }
    Ok(shape)
}

impl Record for Map {
    fn name(&self) -> &str {
        self.name
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Metas> {
        let shape = broadcast(self.name, inputs)?;
        let dtypes: SmallVec<[DType; 4]> = inputs.iter().map(|m| m.dtype).collect();
        let dtype = |expr: &Expr| expr.code.result(self.name, &dtypes);
        match &self.exprs[..] {
            [expr] => one(shape, dtype(expr)?),
            exprs => exprs.iter().map(|expr| Ok(Meta::new(shape.clone(), dtype(expr)?))).collect(),
        }
    }

    fn contract(&self) -> Contract {
        let formula = FORMULAS.iter().find(|f| f.name == self.name);
        let domain = formula.map_or((-4.0, 4.0), |f| f.domain);
        Contract { domain, tolerance: Tolerance::Elementwise, ..Contract::exact() }
    }

    fn keeps(&self) -> Keeps {
        // What the derivative's formulas read.
        let inputs = self.exprs.iter().fold(0, |mask, expr| mask | expr.code.derivative_reads());
        Keeps { inputs, outputs: 0 }
    }
}
