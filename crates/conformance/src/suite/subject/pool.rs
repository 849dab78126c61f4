//! Pools over windows, and over parts of each axis.

use tensor_core::{Padding, PoolOptions, Result, Tensor};

use super::{MANY, is_rare, subject};
use crate::suite::case::{Call, Subject};
use crate::suite::draw::Draw;
use crate::suite::input::Input;

type Pool = fn(&Tensor, &PoolOptions) -> Result<Tensor>;
type Adaptive = fn(&Tensor, Vec<usize>) -> Result<Tensor>;

const POOLS: [(&str, usize, Pool); 6] = [
    ("max_pool1d", 1, Tensor::max_pool1d),
    ("max_pool2d", 2, Tensor::max_pool2d),
    ("max_pool3d", 3, Tensor::max_pool3d),
    ("avg_pool1d", 1, Tensor::avg_pool1d),
    ("avg_pool2d", 2, Tensor::avg_pool2d),
    ("avg_pool3d", 3, Tensor::avg_pool3d),
];

const ADAPTIVE: [(&str, usize, Adaptive); 6] = [
    ("adaptive_max_pool1d", 1, Tensor::adaptive_max_pool1d),
    ("adaptive_max_pool2d", 2, Tensor::adaptive_max_pool2d),
    ("adaptive_max_pool3d", 3, Tensor::adaptive_max_pool3d),
    ("adaptive_avg_pool1d", 1, Tensor::adaptive_avg_pool1d),
    ("adaptive_avg_pool2d", 2, Tensor::adaptive_avg_pool2d),
    ("adaptive_avg_pool3d", 3, Tensor::adaptive_avg_pool3d),
];

/// An input and windows over it; once in a while padding above half a window, a misfit, or [`MANY`] planes.
fn pool(draw: &mut Draw<'_>, rank: usize) -> (Vec<usize>, PoolOptions) {
    let mut dims = vec![draw.pick(&[1, 2, 0]), draw.pick(&[1, 2, 3])];
    if rank == 1 && is_rare(draw, 100) {
        return (vec![MANY, 1, 2], PoolOptions::new(2));
    }
    let misfit = usize::from(is_rare(draw, 32));
    let (mut kernel, mut stride, mut dilation, mut padding) = (vec![], vec![], vec![], vec![]);
    for _ in 0..rank {
        let (size, apart) = (draw.pick(&[2, 3, 1, 4]), draw.pick(&[1, 1, 2]));
        let at_most = size / 2 + misfit;
        let sides = (draw.below(at_most + 1), draw.below(at_most + 1));
        let reach = (size - 1) * apart + 1;
        dims.push((reach.saturating_sub(sides.0 + sides.1).max(1) + draw.below(4)).saturating_sub(misfit));
        stride.push(draw.pick(&[1, 2, 3]));
        kernel.push(size);
        dilation.push(apart);
        padding.push(sides);
    }
    let options = PoolOptions::new(kernel).dilation(dilation).padding(Padding::from(&padding[..]));
    let options = if draw.below(3) == 2 { options } else { options.stride(stride) };
    (dims, options.count_padding(draw.flag()))
}

pub(super) fn subjects() -> Vec<Subject> {
    let pools = POOLS.into_iter().map(|(name, rank, run)| {
        subject(name, format!("{name}(options)"), move |draw, _| {
            let (dims, options) = pool(draw, rank);
            Call::new(format!("{options:?}"), vec![Input::data(&dims)], move |x| run(&x[0], &options))
        })
    });
    let adaptive = ADAPTIVE.into_iter().map(|(name, rank, run)| {
        subject(name, format!("{name}(sizes)"), move |draw, _| {
            let dims: Vec<usize> = [1, 2].into_iter().chain((0..rank).map(|_| draw.pick(&[4, 3, 5, 7, 1]))).collect();
            let lowest = usize::from(!is_rare(draw, 24));
            let sizes: Vec<usize> = (0..rank).map(|_| draw.pick(&[2, lowest, 3, 4])).collect();
            // Below 1, so that no data are integers: their means over three are none, though they come of products.
            let input = if name.contains("avg") { Input::within(&dims, -0.9, 0.9) } else { Input::data(&dims) };
            Call::new(format!("sizes {sizes:?}"), vec![input], move |x| run(&x[0], sizes.clone()))
        })
    });
    let positions = subject("max_pool_with_positions", "max_pool_with_positions(options)", |draw, _| {
        let rank = draw.pick(&[2, 1, 3]);
        let (dims, options) = pool(draw, rank);
        Call::many(format!("{options:?}"), vec![Input::data(&dims)], move |_, x| {
            x[0].max_pool_with_positions(&options).map(|(values, positions)| vec![values, positions])
        })
    });
    pools.chain(adaptive).chain([positions]).collect()
}
