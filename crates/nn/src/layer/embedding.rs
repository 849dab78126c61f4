//! The lookup table of vectors.

use tensor_core::{DType, Error, Param, Place, Result, Shape, Tensor};

use crate::init::Init;
use crate::{Forward, Module};

/// y = the weight's rows at the input's indices.
///
/// # Shapes
/// | | shape |
/// |---|---|
/// | input | [..], i64 or i32 |
/// | output | [.., D] |
///
/// # Parameters
/// | | shape | starts as |
/// |---|---|---|
/// | `weight` | [n, D] | N(0, 1); the padding row 0 |
///
/// # Gradient
/// Repeated indices add up. The padding row has none.
///
/// # Errors
/// If the input's dtype is not i64 or i32; on the CPU if an index is out of range.
#[derive(Module, Clone, Debug)]
#[module(describe = Self::settings)]
pub struct Embedding {
    /// [n, D].
    pub weight: Param,
    #[module(skip)]
    padding_index: Option<usize>,
}

/// Options of [`Embedding::with`].
#[derive(Clone, Copy, Debug)]
pub struct EmbeddingOptions {
    /// An index that stands for nothing: its row starts as zeros and is not trained; none.
    pub padding_index: Option<usize>,
    /// How the other rows start; N(0, 1).
    pub init: Init,
}

impl Default for EmbeddingOptions {
    fn default() -> Self {
        Self { padding_index: None, init: Init::Normal { mean: 0.0, std: 1.0 } }
    }
}

impl Embedding {
    /// A table of `n` vectors of `width` numbers.
    ///
    /// # Errors
    /// If the dtype is not a float, or the device has no memory.
    pub fn new(n: usize, width: usize, place: impl Place) -> Result<Self> {
        Self::with(n, width, EmbeddingOptions::default(), place)
    }

    /// A table with options.
    ///
    /// # Errors
    /// As [`Embedding::new`], or if the padding index is out of range.
    pub fn with(n: usize, width: usize, options: EmbeddingOptions, place: impl Place) -> Result<Self> {
        let (device, dtype) = super::float_place("embedding", place)?;
        let mut weight = options.init.tensor([n, width], (&device, dtype))?;
        if let Some(padding) = options.padding_index {
            if padding >= n {
                return Err(Error::index("embedding", format!("padding index must be below {n}: index {padding}")));
            }
            let row = Tensor::arange(0, n as i64, 1, (&device, DType::I64))?.unsqueeze(-1)?;
            weight = weight.masked_fill(&row.eq(padding as i64)?, 0)?;
        }
        Ok(Self { weight: Param::new(weight), padding_index: options.padding_index })
    }

    fn settings(&self) -> String {
        let padding = self.padding_index.map_or(String::new(), |i| format!(", padding {i}"));
        format!("Embedding({} => {}{padding})", self.weight.dims()[0], self.weight.dims()[1])
    }
}

impl Forward for Embedding {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        if !matches!(x.dtype(), DType::I64 | DType::I32) {
            return Err(Error::dtype(
                format!("embedding({} => {})", self.weight.dims()[0], self.weight.dims()[1]),
                format!("indices must be i64 or i32: input {}; cast them with .cast(DType::I64)", x.dtype()),
            ));
        }
        let shape: Shape = x.dims().iter().copied().chain([self.weight.dims()[1]]).collect();
        let rows = self.weight.index_select(0, &x.reshape(x.len())?)?.reshape(shape)?;
        match self.padding_index {
            Some(padding) => x.eq(padding as i64)?.unsqueeze(-1)?.select(&rows.stop_gradient(), &rows),
            None => Ok(rows),
        }
    }
}
