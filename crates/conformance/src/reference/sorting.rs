//! Stable sort.

use std::cmp::Ordering;

use tensor_core::DType;
use tensor_core::expr::Value;
use tensor_core::op::Sort;

use super::array::{Array, Cell, indices};
use super::real;

fn order(a: Cell, b: Cell, descending: bool) -> Ordering {
    let ascending = match (a, b) {
        (Value::Int(a), Value::Int(b)) => a.cmp(&b),
        _ => {
            let (a, b) = (real(a).value, real(b).value);
            match (a.is_nan(), b.is_nan()) {
                // NaN last in either direction.
                (true, true) => return Ordering::Equal,
                (true, false) => return Ordering::Greater,
                (false, true) => return Ordering::Less,
                (false, false) => a.partial_cmp(&b).expect("invariant: neither is NaN"),
            }
        }
    };
    if descending { ascending.reverse() } else { ascending }
}

/// Values in order, and their positions before.
pub(super) fn sort(op: &Sort, x: &Array) -> Vec<Array> {
    let mut values = x.clone();
    let mut positions = Array { dtype: DType::I64, ..x.clone() };
    let mut lanes = x.dims.clone();
    lanes[op.axis] = x.dims[op.axis].min(1);
    for lane in indices(&lanes) {
        let at = |i: usize| {
            let mut index = lane.clone();
            index[op.axis] = i;
            x.position(&index)
        };
        let mut picked: Vec<usize> = (0..x.dims[op.axis]).collect();
        picked.sort_by(|&a, &b| order(x.cells[at(a)], x.cells[at(b)], op.descending));
        for (i, &from) in picked.iter().enumerate() {
            values.cells[at(i)] = x.cells[at(from)];
            positions.cells[at(i)] = Value::Int(from as i64);
        }
    }
    vec![values, positions]
}
