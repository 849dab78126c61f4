//! Reductions: a sum through its producer, a product without dividing, an extremum to the first of equals.

use tensor_core::op::{ArgReduce, Reduce, Scan, ScanKind};
use tensor_core::{Dims, Op, Result, Shape, Tensor};

use super::elementwise::pull;
use super::movement::unpermute;
use super::{Step, run};

/// y = Σ p(x…): the gradient is repeated over the axes and pulled through the producer.
pub(super) fn sum(reduce: &Reduce, step: &mut Step<'_>) -> Result<()> {
    let mut full = step.shape(0).clone();
    for x in &step.inputs[1..] {
        full = full.broadcast(x.shape()).expect("invariant: inputs broadcast");
    }
    let g = step.g().reshape(full.reduced(&reduce.axes, true))?.expand(&full)?;
    let inputs = step.inputs;
    pull(reduce.name, &reduce.producer, inputs, &g, |i, gradient| step.give(i, gradient))
}

/// The reduced axes merged into one, the last.
struct Flat<'a> {
    shape: &'a Shape,
    /// The other axes, then the reduced ones.
    order: Dims,
    n_kept: usize,
}

impl<'a> Flat<'a> {
    fn new(shape: &'a Shape, axes: &[usize]) -> Self {
        let kept = (0..shape.rank()).filter(|a| !axes.contains(a));
        let order: Dims = kept.chain(axes.iter().copied()).collect();
        Self { shape, n_kept: shape.rank() - axes.len(), order }
    }

    fn flatten(&self, x: &Tensor) -> Result<Tensor> {
        let sorted: Dims = self.order.iter().map(|&a| self.shape[a]).collect();
        let (kept, reduced) = sorted.split_at(self.n_kept);
        let dims: Dims = kept.iter().copied().chain([reduced.iter().product()]).collect();
        x.permute(&self.order[..])?.reshape(&dims[..])
    }

    fn restore(&self, x: &Tensor) -> Result<Tensor> {
        let sorted: Dims = self.order.iter().map(|&a| self.shape[a]).collect();
        unpermute(&x.reshape(&sorted[..])?, &self.order)
    }

    /// The gradient of the result, as a last axis of size 1.
    fn column(&self, g: &Tensor) -> Result<Tensor> {
        let dims: Dims = self.order[..self.n_kept].iter().map(|&a| self.shape[a]).chain([1]).collect();
        g.reshape(&dims[..])
    }
}

/// y = Π x: ∂x_i = g · Π_{j<i} x_j · Π_{j>i} x_j, which is right where some x are 0.
pub(super) fn product(reduce: &Reduce, step: &mut Step<'_>) -> Result<()> {
    let flat = Flat::new(step.shape(0), &reduce.axes);
    let x = flat.flatten(step.input(0))?;
    if x.is_empty() {
        return step.give(0, step.zeros_like(0)?);
    }
    let (axis, n) = (x.rank() - 1, x.dims()[x.rank() - 1]);
    let mut ends: Vec<(usize, usize)> = vec![(0, 0); x.rank()];
    ends[axis] = (1, 0);
    let before = products(&x.narrow(axis, 0, n - 1)?.pad(&ends, 1)?, axis, false)?;
    ends[axis] = (0, 1);
    let after = products(&x.narrow(axis, 1, n - 1)?.pad(&ends, 1)?, axis, true)?;
    let gradient = before.mul(&after)?.mul(&flat.column(step.g())?)?;
    step.give(0, flat.restore(&gradient)?)
}

fn products(x: &Tensor, axis: usize, reverse: bool) -> Result<Tensor> {
    run(&Op::Scan(Scan { kind: ScanKind::Prod, axis, reverse }), &[x])
}

/// y = max x: the gradient goes to the first of equals, as the arg-reduction finds it.
pub(super) fn extremum(reduce: &Reduce, max: bool, step: &mut Step<'_>) -> Result<()> {
    let flat = Flat::new(step.shape(0), &reduce.axes);
    let x = flat.flatten(step.input(0))?;
    if x.is_empty() {
        return step.give(0, step.zeros_like(0)?);
    }
    let axis = x.rank() - 1;
    let index = run(&Op::ArgReduce(ArgReduce { max, axis, keepdim: true }), &[&x])?;
    let zeros = flat.flatten(&step.zeros_like(0)?)?;
    step.give(0, flat.restore(&zeros.scatter_add(axis, &index, &flat.column(step.g())?)?)?)
}
