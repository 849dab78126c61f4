//! What the normalising layers share.

use std::sync::OnceLock;

use smallvec::SmallVec;
use tensor_core::op::{Map, Normalize};
use tensor_core::{Error, Expr, Op, Param, Result, Shape, Tensor, Tensors, execute, expr};

/// Normalises over `axes`: y, rstd and, with `center`, the mean.
pub(super) fn normalize(x: &Tensor, axes: impl Iterator<Item = usize>, epsilon: f64, center: bool) -> Result<Tensors> {
    execute(&Op::Normalize(Normalize { axes: axes.collect(), epsilon, center }), &[x])
}

/// y·weight + bias, each where there is one; both have this shape.
pub(super) fn affine(
    name: &'static str,
    y: Tensor,
    weight: Option<&Param>,
    bias: Option<&Param>,
    shape: &Shape,
) -> Result<Tensor> {
    static BOTH: OnceLock<Expr> = OnceLock::new();
    let shaped = |p: &Param| if p.shape() == shape { Ok(p.value().clone()) } else { p.reshape(shape) };
    match (weight, bias) {
        (Some(weight), Some(bias)) => {
            let expr = BOTH.get_or_init(|| expr::build(|[y, weight, bias]| y * weight + bias)).clone();
            super::only(execute(&Op::Map(Map::new(name, expr)), &[&y, &shaped(weight)?, &shaped(bias)?]))
        }
        (Some(weight), None) => y.mul(&shaped(weight)?),
        (None, Some(bias)) => y.add(&shaped(bias)?),
        (None, None) => Ok(y),
    }
}

/// [C, 1, 1…]: a channel's numbers against an input of this rank.
pub(super) fn channel_shape(n_channels: usize, rank: usize) -> Shape {
    std::iter::once(n_channels).chain(std::iter::repeat_n(1, rank.saturating_sub(2))).collect()
}

/// The last axes of `x`, which must be these; else an error that names the layer.
pub(super) fn last_axes(layer: impl Fn() -> String, x: &Tensor, dims: &[usize]) -> Result<std::ops::Range<usize>> {
    if x.dims().ends_with(dims) {
        return Ok(x.rank() - dims.len()..x.rank());
    }
    Err(Error::shape(layer(), format!("last axes must be {dims:?}: input {}", x.shape())))
}

/// The sizes of a layer's settings: `6` or `3×4`.
pub(super) fn joined(dims: &[usize]) -> String {
    dims.iter().map(usize::to_string).collect::<SmallVec<[String; 4]>>().join("×")
}
