//! Picking and adding by index along one axis.

use super::{
    Contract, Keeps, Meta, Metas, NUMBERS, Record, Role, axis_in, exactly, index_dtype, not_bool, one, same_dtype,
};
use crate::{Error, Result};

/// Inputs x and index (i64 or i32, same rank); y[.., j, ..] = x[.., index[.., j, ..], ..] along `axis`; y has the
/// index's shape, which may be narrower than x along the other axes.
///
/// An index_select is a gather whose index is a vector expanded (stride 0) along the other axes: kernels copy
/// whole rows then. An index out of range is an error on the CPU; negative indices are out of range.
#[derive(Clone, Debug)]
pub struct Gather {
    /// The resolved axis.
    pub axis: usize,
}

fn check(op: &'static str, axis: usize, x: &Meta, index: &Meta) -> Result<()> {
    axis_in(op, axis, x.shape.rank())?;
    index_dtype(op, index.dtype)?;
    let fits =
        index.shape.rank() == x.shape.rank() && (0..x.shape.rank()).all(|a| a == axis || index.shape[a] <= x.shape[a]);
    if fits {
        return Ok(());
    }
    Err(Error::shape(
        op,
        format!(
            "index must have the input's rank and be no larger along the other axes: input {}, index {}, axis {axis}",
            x.shape, index.shape
        ),
    ))
}

impl Record for Gather {
    fn name(&self) -> &str {
        "gather"
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Metas> {
        let [x, index] = exactly(inputs, "gather")?;
        check("gather", self.axis, x, index)?;
        one(index.shape.clone(), x.dtype)
    }

    fn contract(&self) -> Contract {
        Contract { inputs: &[Role::Data, Role::Index], ..Contract::exact() }
    }

    fn keeps(&self) -> Keeps {
        Keeps { inputs: 0b10, outputs: 0 }
    }
}

/// Inputs x, index, source; y = x, then y[.., index[.., j, ..], ..] += source[.., j, ..] along `axis`, repeated indices
/// adding up in row-major order. Source has the index's shape.
#[derive(Clone, Debug)]
pub struct ScatterAdd {
    /// The resolved axis.
    pub axis: usize,
}

impl Record for ScatterAdd {
    fn name(&self) -> &str {
        "scatter_add"
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Metas> {
        let [x, index, source] = exactly(inputs, "scatter_add")?;
        check("scatter_add", self.axis, x, index)?;
        not_bool("scatter_add", "input", x.dtype)?;
        same_dtype("scatter_add", ("input", x.dtype), ("source", source.dtype))?;
        if source.shape != index.shape {
            return Err(Error::shape(
                "scatter_add",
                format!("source must have the index's shape: source {}, index {}", source.shape, index.shape),
            ));
        }
        one(x.shape.clone(), x.dtype)
    }

    fn contract(&self) -> Contract {
        Contract { inputs: &[Role::Data, Role::Index, Role::Data], ..Contract::sums(NUMBERS) }
    }

    fn keeps(&self) -> Keeps {
        Keeps { inputs: 0b10, outputs: 0 }
    }
}
