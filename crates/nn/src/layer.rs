//! Layers: structs with parameters that map a tensor to a tensor.
//!
//! Names of parameters and their layouts are PyTorch's, so that files are read both ways. A layer is a file here and a line
//! below.

mod activation;
mod adaptive_pool;
mod attention;
mod batch_norm;
mod conv;
mod dropout;
mod embedding;
mod flatten;
mod global_pool;
mod group_norm;
mod layer_norm;
mod linear;
mod norm;
mod pool;
mod rms_norm;
mod sizes;

pub use activation::{
    Celu, Elu, Gelu, GeluTanh, Glu, HardSwish, HardTanh, LeakyRelu, LogSigmoid, LogSoftmax, Mish, Relu, Selu, Sigmoid,
    Silu, Softmax, Softplus, Softsign, Tanh,
};
pub use adaptive_pool::{
    AdaptiveAvgPool1d, AdaptiveAvgPool2d, AdaptiveAvgPool3d, AdaptiveAvgPoolNd, AdaptiveMaxPool1d, AdaptiveMaxPool2d,
    AdaptiveMaxPool3d, AdaptiveMaxPoolNd,
};
pub use attention::{AttentionMask, MultiHeadAttention, MultiHeadAttentionOptions};
pub use batch_norm::{BatchNorm1d, BatchNorm2d, BatchNorm3d, BatchNormNd, BatchNormOptions};
pub use conv::{Conv1d, Conv1dOptions, Conv2d, Conv2dOptions, Conv3d, Conv3dOptions, ConvNd, ConvNdOptions};
pub use dropout::Dropout;
pub use embedding::{Embedding, EmbeddingOptions};
pub use flatten::Flatten;
pub use global_pool::{GlobalAvgPool, GlobalMaxPool};
pub use group_norm::{GroupNorm, GroupNormOptions};
pub use layer_norm::{LayerNorm, LayerNormOptions};
pub use linear::{Linear, LinearOptions};
pub use pool::{AvgPool1d, AvgPool2d, AvgPool3d, AvgPoolNd, MaxPool1d, MaxPool2d, MaxPool3d, MaxPoolNd};
pub use rms_norm::{RmsNorm, RmsNormOptions};
pub use sizes::Sizes;

use tensor_core::{DType, Device, Error, Place, Result, Tensor, Tensors};

/// Where a layer's parameters are made: f32 unless said otherwise, and always a float dtype.
fn float_place(layer: &'static str, place: impl Place) -> Result<(Device, DType)> {
    let (device, dtype) = place.place();
    let dtype = dtype.unwrap_or(DType::F32);
    if dtype.is_float() {
        return Ok((device, dtype));
    }
    Err(Error::dtype(layer, format!("parameters need a float dtype: dtype {dtype}; use DType::F32")))
}

/// The first output.
fn only(outputs: Result<Tensors>) -> Result<Tensor> {
    Ok(outputs?.into_iter().next().expect("invariant: an op has an output"))
}
