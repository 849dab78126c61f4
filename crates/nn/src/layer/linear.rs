//! The dense layer.

use std::sync::OnceLock;

use tensor_core::op::MatMul;
use tensor_core::{Error, Expr, Op, Param, Place, Result, Shape, Tensor, execute, expr};

use crate::init::{Init, bias_bound};
use crate::{Forward, Module};

/// y = x·Wᵀ + b over the last axis.
///
/// # Shapes
/// | | shape |
/// |---|---|
/// | input | [.., D_in] |
/// | output | [.., D_out] |
///
/// # Parameters
/// | | shape | starts as |
/// |---|---|---|
/// | `weight` | [D_out, D_in] | U(−1/√D_in, 1/√D_in) |
/// | `bias` | \[D_out\] | U(−1/√D_in, 1/√D_in) |
///
/// # Errors
/// If the input's last axis is not D_in, or its dtype is not the weight's.
#[derive(Module, Clone, Debug)]
#[module(describe = Self::settings)]
pub struct Linear {
    /// [D_out, D_in], as PyTorch stores it.
    pub weight: Param,
    /// \[D_out\].
    pub bias: Option<Param>,
}

/// Options of [`Linear::with`].
#[derive(Clone, Copy, Debug)]
pub struct LinearOptions {
    /// Whether to add a bias; true.
    pub bias: bool,
    /// How the weight starts; [`Init::torch_weight`].
    pub init: Init,
}

impl Default for LinearOptions {
    fn default() -> Self {
        Self { bias: true, init: Init::torch_weight() }
    }
}

impl Linear {
    /// A layer from `n_in` to `n_out` features.
    ///
    /// # Errors
    /// If the dtype is not a float, or the device has no memory.
    pub fn new(n_in: usize, n_out: usize, place: impl Place) -> Result<Self> {
        Self::with(n_in, n_out, LinearOptions::default(), place)
    }

    /// A layer with options.
    ///
    /// # Errors
    /// As [`Linear::new`].
    pub fn with(n_in: usize, n_out: usize, options: LinearOptions, place: impl Place) -> Result<Self> {
        let (device, dtype) = super::float_place("linear", place)?;
        let weight = options.init.tensor([n_out, n_in], (&device, dtype))?;
        let bias = options.bias.then(|| bias_bound(weight.shape())?.tensor(n_out, (&device, dtype))).transpose()?;
        Ok(Self { weight: Param::new(weight), bias: bias.map(Param::new) })
    }

    fn settings(&self) -> String {
        let bias = if self.bias.is_none() { ", no bias" } else { "" };
        format!("Linear({} => {}{bias})", self.weight.dims()[1], self.weight.dims()[0])
    }

    #[cold]
    fn misfit(&self, x: &Tensor) -> Error {
        let (n_out, n_in) = (self.weight.dims()[0], self.weight.dims()[1]);
        let is_image = x.rank() > 2 && x.dims()[1..].iter().product::<usize>() == n_in;
        let remedy = if is_image { "; flatten the image first" } else { "" };
        Error::shape(
            format!("linear({n_in} => {n_out})"),
            format!("last axis must be {n_in}: input {}{remedy}", x.shape()),
        )
    }

    /// x [N, D_in] times the transposed weight, the bias added in the same pass.
    fn product(&self, x: &Tensor) -> Result<Tensor> {
        static ADD_BIAS: OnceLock<Expr> = OnceLock::new();
        let weight = self.weight.t()?;
        let Some(bias) = &self.bias else { return x.matmul(&weight) };
        let epilogue = ADD_BIAS.get_or_init(|| expr::build(|[y, b]| y + b)).clone();
        super::only(execute(&Op::MatMul(MatMul { epilogue }), &[x, &weight, bias]))
    }
}

impl Forward for Linear {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let [rows @ .., n_in] = x.dims() else { return Err(self.misfit(x)) };
        if *n_in != self.weight.dims()[1] {
            return Err(self.misfit(x));
        }
        if rows.len() == 1 {
            return self.product(x);
        }
        // One product over all rows; a batched one would multiply small matrices.
        let n_rows: usize = rows.iter().product();
        let shape: Shape = rows.iter().copied().chain([self.weight.dims()[0]]).collect();
        self.product(&x.reshape([n_rows, *n_in])?)?.reshape(shape)
    }
}
