//! Running folds.

use tensor_core::op::{Scan, ScanKind};
use tensor_core::{DType, Dims, Op, Result, Tensor, zip_n};

use super::{Step, formula, run, zip};

pub(super) fn scan(scan: &Scan, step: &mut Step<'_>) -> Result<()> {
    let (g, axis) = (step.g(), scan.axis);
    if g.is_empty() {
        return step.give(0, g.clone());
    }
    // A scan from the end is one of the flipped tensor.
    let turn = |x: &Tensor| if scan.reverse { x.flip(axis) } else { Ok(x.clone()) };
    let gradient = match scan.kind {
        ScanKind::Sum => run(&Op::Scan(Scan { reverse: !scan.reverse, ..scan.clone() }), &[g])?,
        ScanKind::Prod => turn(&product(&turn(step.input(0))?, &turn(g)?, axis)?)?,
        ScanKind::Max => {
            let (x, y) = (turn(step.input(0))?, turn(step.output(0))?);
            turn(&step.zeros_like(0)?.scatter_add(axis, &leaders(&x, &y, axis)?, &turn(g)?)?)?
        }
    };
    step.give(0, gradient)
}

/// The tensor moved `n` places towards the start of the axis, 0 behind it.
fn ahead(x: &Tensor, n: usize, axis: usize) -> Result<Tensor> {
    let mut ends = vec![(0, 0); x.rank()];
    ends[axis].1 = n;
    x.narrow(axis, n, x.dims()[axis] - n)?.pad(&ends, 0)
}

/// y_i = x_0 ⋯ x_i: ∂x_k = (Π_{j<k} x_j) · s_k with s_k = g_k + x_{k+1}·s_{k+1}, which is right where some x are 0.
///
/// The recurrence is solved by doubling: after a step of 2ᵐ, s_k = b_k + a_k·s_{k+2ᵐ}.
fn product(x: &Tensor, g: &Tensor, axis: usize) -> Result<Tensor> {
    let n = x.dims()[axis];
    let mut ends = vec![(0, 0); x.rank()];
    ends[axis].0 = 1;
    let before = x.narrow(axis, 0, n - 1)?.pad(&ends, 1)?;
    let before = run(&Op::Scan(Scan { kind: ScanKind::Prod, axis, reverse: false }), &[&before])?;
    let (mut a, mut b) = (ahead(x, 1, axis)?, g.clone());
    let mut distance = 1;
    while distance < n {
        b = zip("cumprod", formula!(|[a, b, c]| b + a * c), &[&a, &b, &ahead(&b, distance, axis)?])?;
        a = a.mul(&ahead(&a, distance, axis)?)?;
        distance *= 2;
    }
    before.mul(&b)
}

/// For every position the one whose element is the maximum so far: the first of equals, or the first NaN.
fn leaders(x: &Tensor, y: &Tensor, axis: usize) -> Result<Tensor> {
    let n = x.dims()[axis];
    let mut dims = Dims::from_elem(1, x.rank());
    dims[axis] = n - 1;
    // Some GPUs do not compute in 64-bit integers.
    let dtype = if n <= i32::MAX as usize { DType::I32 } else { DType::I64 };
    let positions = Tensor::arange(1, n as i64, 1, (&x.device(), dtype))?.reshape(&dims[..])?;
    let (next, so_far) = (x.narrow(axis, 1, n - 1)?, y.narrow(axis, 0, n - 1)?);
    let leads = zip_n([&next, &so_far, &positions], |[x, y, i]| {
        let is_larger = y.lt(x).or(x.is_nan().and(y.is_nan().not()));
        is_larger.select(i, 0)
    })?;
    let mut ends = vec![(0, 0); x.rank()];
    ends[axis].0 = 1;
    run(&Op::Scan(Scan { kind: ScanKind::Max, axis, reverse: false }), &[&leads.pad(&ends, 0)?])
}
