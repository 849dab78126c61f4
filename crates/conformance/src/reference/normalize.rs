//! Normalisation, with the moments in f64.

use tensor_core::expr::{Algebra, Binary, Bounded, Bounds, Unary, Value};
use tensor_core::op::Normalize;
use tensor_core::{DType, Meta, Shape};

use super::array::{Array, indices};
use super::fold::sum;
use super::real;

/// y, rstd and, with `center`, mean. Moments do not overflow: they are taken as if in f64.
pub(super) fn normalize(bounds: &Bounds, op: &Normalize, x: &Array, outputs: &[Meta]) -> Vec<Array> {
    let moments = Shape::new(&x.dims).reduced(&op.axes, true);
    let position =
        |index: &[usize]| index.iter().zip(moments.iter()).fold(0, |at, (&i, &n)| at * n + if n == 1 { 0 } else { i });
    let mut groups: Vec<Vec<Bounded>> = vec![Vec::new(); moments.len()];
    for index in indices(&x.dims) {
        groups[position(&index)].push(real(x.at(&index)));
    }
    let dtype = x.dtype.compute();
    let n = |group: &[Bounded]| Bounds::exact(group.len() as f64);
    let mean: Vec<Bounded> = groups
        .iter()
        .map(|group| {
            if op.center { bounds.binary(Binary::Div, sum(group, dtype), n(group), dtype) } else { Bounds::exact(0.0) }
        })
        .collect();
    let rstd: Vec<Bounded> = groups
        .iter()
        .zip(&mean)
        .map(|(group, &mean)| {
            let squares: Vec<Bounded> = group
                .iter()
                .map(|&v| {
                    let centered = bounds.binary(Binary::Sub, v, mean, dtype);
                    // The square may leave f32's range while the result does not.
                    let square = bounds.binary(Binary::Mul, centered, centered, DType::F64);
                    let relative = 2.0 * dtype.epsilon() * square.value;
                    Bounded { error: square.error + relative, ..square }
                })
                .collect();
            let total = sum(&squares, DType::F64);
            let spread = squares.len() as f64 * dtype.epsilon() * total.value.abs();
            let total = Bounded { error: total.error + spread, ..total };
            let variance = bounds.binary(Binary::Div, total, n(group), DType::F64);
            let shifted = bounds.binary(Binary::Add, variance, Bounds::exact(op.epsilon), DType::F64);
            bounds.rounded(bounds.unary(Unary::Rsqrt, shifted, DType::F64), 2.0, dtype)
        })
        .collect();
    let y = Array::from_fn(&x.dims, x.dtype, |index| {
        let at = position(&index);
        let centered = bounds.binary(Binary::Sub, real(x.at(&index)), mean[at], dtype);
        Value::Real(bounds.binary(Binary::Mul, centered, rstd[at], dtype))
    });
    let moment = |cells: &[Bounded]| Array {
        dims: moments.to_vec(),
        dtype: x.dtype,
        cells: cells.iter().map(|&v| Value::Real(v)).collect(),
    };
    let mut arrays = vec![y, moment(&rstd)];
    if outputs.len() > 2 {
        arrays.push(moment(&mean));
    }
    arrays
}
