//! Pools of one, two and three spatial axes.

use super::window::window;
use super::{PerAxis, PoolOptions, first};
use crate::op::{Pool, PoolKind};
use crate::{DType, Dims, Error, Op, Result, Tensor, execute};

impl Tensor {
    fn spatial_input(&self, op: &'static str, rank: usize) -> Result<()> {
        if self.rank() == rank + 2 {
            return Ok(());
        }
        Err(Error::shape(
            op,
            format!("input must be [N, C, spatial..] with {rank} spatial axes: input {}", self.shape()),
        ))
    }

    fn pool(&self, op: &'static str, rank: usize, kind: PoolKind, options: &PoolOptions) -> Result<crate::Tensors> {
        self.spatial_input(op, rank)?;
        let kernel = options.kernel.resolve(op, "kernel", rank)?;
        let stride = options.stride.as_ref().unwrap_or(&options.kernel);
        let window = window(op, &kernel, stride, &options.padding, &options.dilation)?.within(&self.dims()[2..]);
        execute(&Op::Pool(Pool { kind, kernel, window }), &[self])
    }

    /// The maximum over windows, and its i32 position in the spatial plane (row-major; of equals the first).
    ///
    /// # Errors
    /// As [`Tensor::max_pool2d`].
    pub fn max_pool_with_positions(&self, options: &PoolOptions) -> Result<(Tensor, Tensor)> {
        let rank = self.rank().saturating_sub(2);
        let mut outputs = self.pool("max_pool", rank, PoolKind::Max, options)?.into_iter();
        let mut next = || outputs.next().expect("invariant: a maximum pool has two outputs");
        Ok((next(), next()))
    }

    /// Averages or maxima over windows that divide each spatial axis into this many, as evenly as they can:
    /// window i reaches from ⌊i·n/size⌋ to ⌈(i + 1)·n/size⌉.
    fn adaptive(&self, op: &'static str, rank: usize, sizes: &PerAxis, max: bool) -> Result<Tensor> {
        self.spatial_input(op, rank)?;
        let sizes = sizes.resolve(op, "size", rank)?;
        let spatial = &self.dims()[2..];
        if sizes.contains(&0) || spatial.contains(&0) {
            return Err(Error::value(op, format!("sizes must be 1 or more: input {}, sizes {sizes:?}", self.shape())));
        }
        if spatial.iter().zip(&sizes).all(|(n, size)| n % size == 0) {
            let kernel: Dims = spatial.iter().zip(&sizes).map(|(n, size)| n / size).collect();
            let kind = if max { PoolKind::Max } else { PoolKind::Avg { count_padding: true } };
            return first(self.pool(op, rank, kind, &PoolOptions::new(&kernel[..])));
        }
        let mut x = self.clone();
        for (i, &size) in sizes.iter().enumerate() {
            let (axis, n) = (i + 2, x.dims()[i + 2]);
            let bounds = |w: usize| (w * n / size, ((w + 1) * n).div_ceil(size));
            x = if max { x.adaptive_max(axis, size, bounds)? } else { x.adaptive_avg(axis, n, size, bounds)? };
        }
        Ok(x)
    }

    /// Windows as a product with a matrix of shares.
    fn adaptive_avg(
        &self,
        axis: usize,
        n: usize,
        size: usize,
        bounds: impl Fn(usize) -> (usize, usize),
    ) -> Result<Tensor> {
        let mut shares = vec![0.0f64; n * size];
        for w in 0..size {
            let (start, stop) = bounds(w);
            (start..stop).for_each(|i| shares[i * size + w] = 1.0 / (stop - start) as f64);
        }
        let shares = Self::from_vec(shares, [n, size], (self.place(), self.dtype()))?;
        self.transpose(axis, -1)?.matmul(&shares)?.transpose(axis, -1)
    }

    /// Windows of one length, the short ones with their last element repeated.
    fn adaptive_max(&self, axis: usize, size: usize, bounds: impl Fn(usize) -> (usize, usize)) -> Result<Tensor> {
        let longest = (0..size).map(|w| bounds(w).1 - bounds(w).0).max().unwrap_or(1);
        let positions: Vec<i64> = (0..size)
            .flat_map(|w| {
                let (start, stop) = bounds(w);
                (0..longest).map(move |i| (start + i).min(stop - 1) as i64)
            })
            .collect();
        let positions = Self::from_vec(positions, [size, longest], (self.place(), DType::I64))?;
        self.index_select(axis, &positions)?.max(axis + 1)
    }
}

macro_rules! pools {
    ($($rank:literal: $max:ident, $avg:ident, $adaptive_max:ident, $adaptive_avg:ident, $input:literal;)*) => { impl Tensor { $(
        #[doc = concat!("The maximum over windows of input ", $input, "; NaN propagates; padding never wins. The first of")]
        /// equals has the gradient.
        ///
        /// # Errors
        /// If the rank does not fit, the padding exceeds half the kernel, or the kernel the padded input.
        pub fn $max(&self, options: &PoolOptions) -> Result<Tensor> {
            first(self.pool(stringify!($max), $rank, PoolKind::Max, options))
        }

        #[doc = concat!("The mean over windows of input ", $input, ".")]
        ///
        /// # Errors
        /// If the rank does not fit, the padding exceeds half the kernel, the kernel the padded input, or the dtype is
        /// not a float.
        pub fn $avg(&self, options: &PoolOptions) -> Result<Tensor> {
            let kind = PoolKind::Avg { count_padding: options.count_padding };
            first(self.pool(stringify!($avg), $rank, kind, options))
        }

        #[doc = concat!("The maximum of input ", $input, " over windows that divide each spatial axis into this many.")]
        ///
        /// # Errors
        /// If the rank does not fit or a size is 0.
        pub fn $adaptive_max(&self, sizes: impl Into<PerAxis>) -> Result<Tensor> {
            self.adaptive(stringify!($adaptive_max), $rank, &sizes.into(), true)
        }

        #[doc = concat!("The mean of input ", $input, " over windows that divide each spatial axis into this many.")]
        ///
        /// # Errors
        /// If the rank does not fit, a size is 0, or the dtype is not a float.
        pub fn $adaptive_avg(&self, sizes: impl Into<PerAxis>) -> Result<Tensor> {
            self.adaptive(stringify!($adaptive_avg), $rank, &sizes.into(), false)
        }
    )* } };
}

pools! {
    1: max_pool1d, avg_pool1d, adaptive_max_pool1d, adaptive_avg_pool1d, "`[N, C, L]`";
    2: max_pool2d, avg_pool2d, adaptive_max_pool2d, adaptive_avg_pool2d, "`[N, C, H, W]`";
    3: max_pool3d, avg_pool3d, adaptive_max_pool3d, adaptive_avg_pool3d, "`[N, C, D, H, W]`";
}
