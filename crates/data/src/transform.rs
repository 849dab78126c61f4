//! Scaling by numbers that are learnt from the training part alone.

use tensor_core::{Result, Tensor};

/// (x − mean) / std, each feature by its own numbers: afterwards the training data have mean 0 and deviation 1.
///
/// # Shapes
/// | | shape |
/// |---|---|
/// | input | \[N, …] |
/// | mean, std | \[1, …] |
#[derive(Clone, Debug)]
pub struct Standardize {
    /// What is taken off.
    pub mean: Tensor,
    /// What is divided by: the deviation, 1 for a feature that is constant.
    pub std: Tensor,
}

impl Standardize {
    /// Learns the numbers along axis 0 of `x`; population deviation, as the whole training set is there.
    pub fn fit(x: &Tensor) -> Result<Self> {
        let std = x.std_keepdim(0, 0)?;
        Ok(Self { mean: x.mean_keepdim(0)?, std: one_where_zero(&std)? })
    }

    /// The scaled data, of the training part or any other.
    pub fn apply(&self, x: &Tensor) -> Result<Tensor> {
        x.sub(&self.mean)?.div(&self.std)
    }

    /// The data before they were scaled.
    pub fn invert(&self, y: &Tensor) -> Result<Tensor> {
        y.mul(&self.std)?.add(&self.mean)
    }
}

/// (x − min) / (max − min), each feature by its own numbers: afterwards the training data lie between 0 and 1.
///
/// # Shapes
/// | | shape |
/// |---|---|
/// | input | \[N, …] |
/// | min, range | \[1, …] |
#[derive(Clone, Debug)]
pub struct Rescale {
    /// What is taken off.
    pub min: Tensor,
    /// What is divided by: max − min, 1 for a feature that is constant.
    pub range: Tensor,
}

impl Rescale {
    /// Learns the numbers along axis 0 of `x`.
    pub fn fit(x: &Tensor) -> Result<Self> {
        let min = x.min_keepdim(0)?;
        let range = x.max_keepdim(0)?.sub(&min)?;
        Ok(Self { min, range: one_where_zero(&range)? })
    }

    /// The scaled data, of the training part or any other.
    pub fn apply(&self, x: &Tensor) -> Result<Tensor> {
        x.sub(&self.min)?.div(&self.range)
    }

    /// The data before they were scaled.
    pub fn invert(&self, y: &Tensor) -> Result<Tensor> {
        y.mul(&self.range)?.add(&self.min)
    }
}

fn one_where_zero(x: &Tensor) -> Result<Tensor> {
    x.eq(0)?.select(&Tensor::ones_like(x)?, x)
}
