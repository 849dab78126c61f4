//! Ops that place elements by index.

use tensor_core::expr::{Binary, Bounded, Bounds, Value, int_binary};
use tensor_core::op::{Concat, Gather, Pad, ScatterAdd};
use tensor_core::{Meta, Result};

use super::array::{Array, Cell, indices};
use super::fold::sum;
use super::{create, out_of_range, real};

fn checked(op: &'static str, index: &Array, at: &[usize], axis: usize, n: usize) -> Result<usize> {
    let Value::Int(i) = index.at(at) else { unreachable!("invariant: indices are integers") };
    usize::try_from(i).ok().filter(|&i| i < n).ok_or_else(|| out_of_range(op, i, at, axis, n))
}

/// Elements picked along the axis.
pub(super) fn gather(op: &Gather, inputs: &[Array], meta: &Meta) -> Result<Array> {
    let (x, index) = (&inputs[0], &inputs[1]);
    let mut cells = Vec::with_capacity(meta.shape.len());
    for mut at in indices(&meta.shape) {
        at[op.axis] = checked("gather", index, &at, op.axis, x.dims[op.axis])?;
        cells.push(x.at(&at));
    }
    Ok(Array { dims: meta.shape.to_vec(), dtype: meta.dtype, cells })
}

/// Elements added along the axis.
pub(super) fn scatter_add(_: &Bounds, op: &ScatterAdd, inputs: &[Array], meta: &Meta) -> Result<Array> {
    let (x, index, source) = (&inputs[0], &inputs[1], &inputs[2]);
    let mut terms: Vec<Vec<Cell>> = x.cells.iter().map(|&c| vec![c]).collect();
    for at in indices(&index.dims) {
        let mut to = at.clone();
        to[op.axis] = checked("scatter_add", index, &at, op.axis, x.dims[op.axis])?;
        terms[x.position(&to)].push(source.at(&at));
    }
    let total = |terms: &Vec<Cell>| match terms[..] {
        [only] => only,
        _ if meta.dtype.is_int() => Value::Int(terms.iter().fold(0, |acc, cell| match cell {
            Value::Int(v) => int_binary(Binary::Add, acc, *v, meta.dtype),
            Value::Real(_) => unreachable!("invariant: integers"),
        })),
        _ => Value::Real(sum(&terms.iter().map(|&c| real(c)).collect::<Vec<Bounded>>(), meta.dtype)),
    };
    Ok(Array { dims: meta.shape.to_vec(), dtype: meta.dtype, cells: terms.iter().map(total).collect() })
}

/// One input after another.
pub(super) fn concat(op: &Concat, inputs: &[Array], meta: &Meta) -> Array {
    Array::from_fn(&meta.shape, meta.dtype, |mut at| {
        for x in inputs {
            let n = x.dims[op.axis];
            if at[op.axis] < n {
                return x.at(&at);
            }
            at[op.axis] -= n;
        }
        unreachable!("invariant: the sizes add up")
    })
}

/// Elements apart, in a surrounding.
pub(super) fn pad(_: &Bounds, op: &Pad, x: &Array, meta: &Meta) -> Array {
    let value = create::number(op.value, meta.dtype);
    Array::from_fn(&meta.shape, meta.dtype, |at| {
        let from: Option<Vec<usize>> = (0..at.len())
            .map(|a| {
                let inner = at[a].checked_sub(op.before[a])?;
                let step = op.interior[a] + 1;
                (inner % step == 0 && inner / step < x.dims[a]).then_some(inner / step)
            })
            .collect();
        from.map_or(value, |from| x.at(&from))
    })
}
