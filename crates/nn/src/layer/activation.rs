//! Activations as layers, for models written as a chain.

use tensor_core::{IntoAxis, Result, Tensor};

use crate::{Forward, Module};

macro_rules! activations {
    ($($name:ident = $method:ident;)*) => { $(
        #[doc = concat!("[`Tensor::", stringify!($method), "`] as a layer.")]
        #[derive(Module, Clone, Copy, Debug, Default)]
        pub struct $name;

        impl Forward for $name {
            fn forward(&self, x: &Tensor) -> Result<Tensor> {
                x.$method()
            }
        }
    )* };
}

activations! {
    Gelu = gelu;
    GeluTanh = gelu_tanh;
    HardSwish = hard_swish;
    HardTanh = hard_tanh;
    LogSigmoid = log_sigmoid;
    Mish = mish;
    Relu = relu;
    Selu = selu;
    Sigmoid = sigmoid;
    Silu = silu;
    Softplus = softplus;
    Softsign = softsign;
    Tanh = tanh;
}

macro_rules! with_number {
    ($($name:ident($number:ident: $t:ty = $default:expr) = $method:ident;)*) => { $(
        #[doc = concat!(
            "[`Tensor::", stringify!($method), "`] as a layer; the ", stringify!($number), " is ", stringify!($default),
            " by default."
        )]
        #[derive(Module, Clone, Copy, Debug)]
        #[module(describe = Self::settings)]
        pub struct $name(#[module(skip)] pub $t);

        impl Default for $name {
            fn default() -> Self {
                Self($default)
            }
        }

        impl $name {
            fn settings(&self) -> String {
                format!("{}({})", stringify!($name), self.0)
            }
        }

        impl Forward for $name {
            fn forward(&self, x: &Tensor) -> Result<Tensor> {
                x.$method(self.0)
            }
        }
    )* };
}

with_number! {
    Celu(alpha: f64 = 1.0) = celu;
    Elu(alpha: f64 = 1.0) = elu;
    LeakyRelu(slope: f64 = 0.01) = leaky_relu;
    LogSoftmax(axis: isize = -1) = log_softmax;
    Softmax(axis: isize = -1) = softmax;
}

/// y = a·sigmoid(b), a and b the halves of x along the axis; −1 by default (Dauphin et al., 2016).
///
/// # Errors
/// If the axis is out of range or of odd size.
#[derive(Module, Clone, Copy, Debug)]
#[module(describe = Self::settings)]
pub struct Glu(#[module(skip)] pub isize);

impl Default for Glu {
    fn default() -> Self {
        Self(-1)
    }
}

impl Glu {
    fn settings(&self) -> String {
        format!("Glu({})", self.0)
    }
}

impl Forward for Glu {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let axis = self.0.resolve_axis("glu", x.rank())?;
        let len = x.dims()[axis];
        if !len.is_multiple_of(2) {
            return Err(tensor_core::Error::shape(
                "glu",
                format!("the axis must have an even size: input {}, axis {axis}", x.shape()),
            ));
        }
        let (a, b) = (x.narrow(axis, 0, len / 2)?, x.narrow(axis, len / 2, len / 2)?);
        tensor_core::zip(&a, &b, |a, b| a * b.sigmoid())
    }
}
