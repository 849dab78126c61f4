//! How parameters start: [`Init`] as data, so that a layer's options can name it.
//!
//! Numbers come from the current random stream (see [`tensor_core::random`]), so that the same seed gives the same model on
//! every device.

use tensor_core::{DType, Device, Error, IntoShape, Place, Result, Shape, Tensor};

mod orthogonal;
mod truncated_normal;

/// Which count of connections sets the scale of a random weight. See [`fans`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fan {
    /// Inputs of one output: keeps the scale of activations.
    In,
    /// Outputs of one input: keeps the scale of gradients.
    Out,
    /// The mean of both.
    Average,
}

/// How a parameter starts.
///
/// | constructor | distribution | source |
/// |---|---|---|
/// | [`Init::glorot_uniform`] | U(−a, a), a = gain·√(6/(fan_in + fan_out)) | Glorot and Bengio, 2010 |
/// | [`Init::glorot_normal`] | N(0, σ²), σ = gain·√(2/(fan_in + fan_out)) | Glorot and Bengio, 2010 |
/// | [`Init::kaiming_uniform`] | U(−a, a), a = √(6/fan_in) | He et al., 2015 |
/// | [`Init::kaiming_normal`] | N(0, σ²), σ = √(2/fan_in) | He et al., 2015 |
/// | [`Init::lecun_uniform`] | U(−a, a), a = √(3/fan_in) | LeCun et al., 1998 |
/// | [`Init::lecun_normal`] | N(0, σ²), σ = √(1/fan_in) | LeCun et al., 1998 |
///
/// ```
/// use nn::init::{Fan, Init};
///
/// // For a weight [64, 32] before a tanh (gain 5/3):
/// let init = Init::glorot_uniform().gain(5.0 / 3.0);
/// assert_eq!(init, Init::ScaledUniform { fan: Fan::Average, gain: 5.0 / 3.0 });
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Init {
    /// One value everywhere.
    Constant(f64),
    /// Ones where row = column, else zeros: for matrices, and, for convolution weights [out, in, kernel…], at the kernel's
    /// centre (Le et al., 2015).
    Identity,
    /// U(low, high).
    Uniform {
        /// Inclusive.
        low: f64,
        /// Exclusive.
        high: f64,
    },
    /// N(mean, std²).
    Normal {
        /// The mean.
        mean: f64,
        /// The standard deviation.
        std: f64,
    },
    /// N(mean, std²) restricted to [low, high]; std is that of the distribution before it is cut.
    TruncatedNormal {
        /// The mean.
        mean: f64,
        /// The standard deviation.
        std: f64,
        /// The smallest value.
        low: f64,
        /// The largest value.
        high: f64,
    },
    /// Uniform about 0 with standard deviation gain/√fan.
    ScaledUniform {
        /// The count of connections.
        fan: Fan,
        /// What the following activation asks for: √2 for relu, 5/3 for tanh.
        gain: f64,
    },
    /// Normal about 0 with standard deviation gain/√fan.
    ScaledNormal {
        /// The count of connections.
        fan: Fan,
        /// What the following activation asks for: √2 for relu, 5/3 for tanh.
        gain: f64,
    },
    /// gain · a random matrix with orthonormal rows or columns, whichever are fewer, uniformly distributed over all of them;
    /// axes after the first count as columns (Saxe et al., 2013).
    Orthogonal {
        /// The length of the rows or columns.
        gain: f64,
    },
}

impl Init {
    /// Zeros.
    pub const ZEROS: Self = Self::Constant(0.0);
    /// Ones.
    pub const ONES: Self = Self::Constant(1.0);

    /// Glorot, uniform.
    pub const fn glorot_uniform() -> Self {
        Self::ScaledUniform { fan: Fan::Average, gain: 1.0 }
    }

    /// Glorot, normal.
    pub const fn glorot_normal() -> Self {
        Self::ScaledNormal { fan: Fan::Average, gain: 1.0 }
    }

    /// Kaiming, uniform, for relu.
    pub const fn kaiming_uniform() -> Self {
        Self::ScaledUniform { fan: Fan::In, gain: std::f64::consts::SQRT_2 }
    }

    /// Kaiming, normal, for relu.
    pub const fn kaiming_normal() -> Self {
        Self::ScaledNormal { fan: Fan::In, gain: std::f64::consts::SQRT_2 }
    }

    /// LeCun, uniform.
    pub const fn lecun_uniform() -> Self {
        Self::ScaledUniform { fan: Fan::In, gain: 1.0 }
    }

    /// LeCun, normal: what selu asks for.
    pub const fn lecun_normal() -> Self {
        Self::ScaledNormal { fan: Fan::In, gain: 1.0 }
    }

    /// U(−1/√fan_in, 1/√fan_in): where the weights of [`crate::Linear`] and the convolutions start, as in PyTorch.
    pub const fn torch_weight() -> Self {
        // √(1/3), the standard deviation of U(−1, 1).
        Self::ScaledUniform { fan: Fan::In, gain: 0.577_350_269_189_625_8 }
    }

    /// N(0, std²) cut at two standard deviations.
    pub const fn truncated_normal(std: f64) -> Self {
        Self::TruncatedNormal { mean: 0.0, std, low: -2.0 * std, high: 2.0 * std }
    }

    /// The same with this gain; constants and distributions with a spread of their own stay as they are.
    pub const fn gain(self, gain: f64) -> Self {
        match self {
            Self::ScaledUniform { fan, .. } => Self::ScaledUniform { fan, gain },
            Self::ScaledNormal { fan, .. } => Self::ScaledNormal { fan, gain },
            Self::Orthogonal { .. } => Self::Orthogonal { gain },
            other => other,
        }
    }

    /// A tensor that starts so. Weights are [out, in, kernel…].
    ///
    /// # Errors
    /// If the dtype is not a float, the shape has not enough axes for the rule, or its parameters make no sense.
    pub fn tensor(&self, shape: impl IntoShape, place: impl Place) -> Result<Tensor> {
        let shape = shape.into_shape("init")?;
        let (device, dtype) = place.place();
        let place = (&device, dtype.unwrap_or(DType::F32));
        match *self {
            Self::Constant(value) => Tensor::full(&shape, value, place),
            Self::Identity => {
                let mut values = room(&shape)?;
                values.resize(shape.len(), 0.0);
                let [rows, columns, kernel @ ..] = &shape[..] else { return Err(too_few_axes("identity", &shape)) };
                let taps: usize = kernel.iter().product();
                let centre = kernel.iter().fold(0, |centre, &k| centre * k + k / 2);
                if taps > 0 {
                    (0..*rows.min(columns)).for_each(|i| values[(i * columns + i) * taps + centre] = 1.0);
                }
                from_f64(&values, &shape, place)
            }
            Self::Uniform { low, high } => Tensor::uniform(low, high, &shape, place),
            Self::Normal { mean, std } => Tensor::normal(mean, std, &shape, place),
            Self::TruncatedNormal { mean, std, low, high } => {
                drop(room(&shape)?);
                from_f64(&truncated_normal::draw(shape.len(), mean, std, low, high)?, &shape, place)
            }
            Self::ScaledUniform { fan, gain } => {
                let bound = gain * (3.0 / count(&shape, fan)?).sqrt();
                Tensor::uniform(-bound.abs(), bound.abs(), &shape, place)
            }
            Self::ScaledNormal { fan, gain } => Tensor::normal(0.0, gain / count(&shape, fan)?.sqrt(), &shape, place),
            Self::Orthogonal { gain } => {
                let (rows, columns) = match shape[..] {
                    [] | [_] => return Err(too_few_axes("orthogonal", &shape)),
                    [rows, ref rest @ ..] => (rows, rest.iter().product()),
                };
                drop(room(&shape)?);
                from_f64(&orthogonal::draw(rows, columns, gain), &shape, place)
            }
        }
    }
}

/// Memory of the host for values that are drawn there.
fn room(shape: &Shape) -> Result<Vec<f64>> {
    let mut values = Vec::new();
    values.try_reserve_exact(shape.len()).map_err(|error| {
        Error::out_of_memory("init", format!("the values do not fit into memory: shape {shape}")).with_source(error)
    })?;
    Ok(values)
}

/// How many inputs one output of a weight [out, in, kernel…] has, and how many outputs one input: in·taps and out·taps.
///
/// # Errors
/// If the weight has fewer than two axes.
pub fn fans(weight: &Shape) -> Result<(usize, usize)> {
    let [out, input, kernel @ ..] = &weight[..] else { return Err(too_few_axes("fans", weight)) };
    let taps: usize = kernel.iter().product();
    Ok((input * taps, out * taps))
}

/// The bound 1/√fan_in of U(−bound, bound), where biases start in PyTorch.
pub(crate) fn bias_bound(weight: &Shape) -> Result<Init> {
    let (fan_in, _) = fans(weight)?;
    let bound = if fan_in == 0 { 0.0 } else { 1.0 / (fan_in as f64).sqrt() };
    Ok(Init::Uniform { low: -bound, high: bound })
}

fn count(shape: &Shape, fan: Fan) -> Result<f64> {
    let (fan_in, fan_out) = fans(shape)?;
    let n = match fan {
        Fan::In => fan_in as f64,
        Fan::Out => fan_out as f64,
        Fan::Average => (fan_in + fan_out) as f64 / 2.0,
    };
    // A weight without elements has no scale.
    Ok(n.max(1.0))
}

fn too_few_axes(op: &'static str, shape: &Shape) -> Error {
    Error::shape(op, format!("needs a weight [out, in, ..] of two axes or more: shape {shape}"))
}

fn from_f64(values: &[f64], shape: &Shape, place: (&Device, DType)) -> Result<Tensor> {
    if place.1 == DType::F64 {
        return Tensor::from_slice(values, shape, place);
    }
    // Rounded here: the device may have no f64.
    let values: Vec<f32> = values.iter().map(|&v| v as f32).collect();
    Tensor::from_vec(values, shape, place)
}

/// Uniform numbers in (0, 1) from a stream of their own, made on the host: the same on every device to the last bit.
fn host_uniform() -> impl Iterator<Item = f64> {
    let key = tensor_core::random::fork().take(0);
    (0u64..).map(move |i| {
        let words = tensor_core::random::philox(key, i / 2);
        let at = 2 * (i % 2) as usize;
        let bits = u64::from(words[at]) << 32 | u64::from(words[at + 1]);
        ((bits >> 11) as f64 + 0.5) * (-53f64).exp2()
    })
}

/// Normal numbers from uniform ones (Box and Muller, 1958).
fn host_normal(mut uniform: impl Iterator<Item = f64>) -> impl Iterator<Item = f64> {
    std::iter::from_fn(move || {
        let (radius, angle) = (uniform.next()?, uniform.next()?);
        Some((-2.0 * radius.ln()).sqrt() * (std::f64::consts::TAU * angle).cos())
    })
}
