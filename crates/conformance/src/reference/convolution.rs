//! Convolution and its adjoints as the definition says them.

use tensor_core::expr::Bounds;
use tensor_core::op::{Conv, ConvInputGrad, ConvWeightGrad, Window};
use tensor_core::{Meta, Result};

use super::array::{Array, Cell, indices};
use super::elementwise::epilogue;
use super::matmul::dot;

/// Where tap `tap` of the window at `output` reads, or `None` in the padding.
pub(super) fn source(window: &Window, output: &[usize], tap: &[usize], input: &[usize]) -> Option<Vec<usize>> {
    (0..window.rank())
        .map(|a| {
            let position = output[a] * window.stride[a] + tap[a] * window.dilation[a];
            position.checked_sub(window.before[a]).filter(|&p| p < input[a])
        })
        .collect()
}

fn join(head: [usize; 2], tail: &[usize]) -> Vec<usize> {
    head.into_iter().chain(tail.iter().copied()).collect()
}

/// Calls `f` with (n, output channel, output position, channel within the group, input channel, tap, input position) for
/// every product of the convolution.
fn products(op: &Conv, x: &[usize], w: &[usize], y: &[usize], mut f: impl FnMut(&[usize], &[usize], &[usize])) {
    let per_group = w[0] / op.groups;
    for at in indices(&[y[0], y[1]]) {
        let group = at[1] / per_group;
        for output in indices(&y[2..]) {
            for c in 0..w[1] {
                for tap in indices(&w[2..]) {
                    if let Some(position) = source(&op.window, &output, &tap, &x[2..]) {
                        f(
                            &join([at[0], group * w[1] + c], &position),
                            &join([at[1], c], &tap),
                            &join([at[0], at[1]], &output),
                        );
                    }
                }
            }
        }
    }
}

/// Gathers the pairs that are summed into each element of a result of `dims` and sums them.
fn collect(bounds: &Bounds, meta: &Meta, fill: impl FnOnce(&mut dyn FnMut(&[usize], (Cell, Cell)))) -> Array {
    let zero = Array::from_fn(&meta.shape, meta.dtype, |_| super::exact(0.0));
    let mut pairs: Vec<Vec<(Cell, Cell)>> = vec![Vec::new(); zero.cells.len()];
    fill(&mut |index, pair| pairs[zero.position(index)].push(pair));
    let cells = pairs.iter().map(|pairs| dot(bounds, pairs, meta.dtype)).collect();
    Array { cells, ..zero }
}

/// The convolution, then its epilogue.
pub(super) fn conv(bounds: &Bounds, op: &Conv, inputs: &[Array], meta: &Meta) -> Result<Array> {
    let (x, w) = (&inputs[0], &inputs[1]);
    let plain = Meta::new(meta.shape.clone(), x.dtype);
    let result = collect(bounds, &plain, |add| {
        products(op, &x.dims, &w.dims, &meta.shape, |ix, iw, iy| add(iy, (x.at(ix), w.at(iw))));
    });
    epilogue(bounds, "conv", &op.epilogue, result, &inputs[2..], meta)
}

/// The adjoint by the input.
pub(super) fn input_grad(bounds: &Bounds, op: &ConvInputGrad, inputs: &[Array], meta: &Meta) -> Array {
    let (g, w) = (&inputs[0], &inputs[1]);
    collect(bounds, meta, |add| {
        products(&op.conv, &meta.shape, &w.dims, &g.dims, |ix, iw, iy| add(ix, (g.at(iy), w.at(iw))));
    })
}

/// The adjoint by the weight.
pub(super) fn weight_grad(bounds: &Bounds, op: &ConvWeightGrad, inputs: &[Array], meta: &Meta) -> Array {
    let (x, g) = (&inputs[0], &inputs[1]);
    collect(bounds, meta, |add| {
        products(&op.conv, &x.dims, &meta.shape, &g.dims, |ix, iw, iy| add(iw, (x.at(ix), g.at(iy))));
    })
}
