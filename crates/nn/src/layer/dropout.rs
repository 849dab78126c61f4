//! Dropout.

use tensor_core::{DType, Error, Result, Tensor, zip};

use crate::{Forward, Mode, Module};

/// While training y = x/(1 − p) with probability 1 − p, else 0, for each element by itself; while inferring y = x.
///
/// The mask is counter-based: the same seed drops the same elements on every device.
///
/// # Errors
/// If p is not in [0, 1].
///
/// # Source
/// Srivastava et al., 2014.
#[derive(Module, Clone, Debug)]
#[module(describe = Self::settings)]
pub struct Dropout {
    /// The probability of 0.
    #[module(skip)]
    pub p: f64,
    mode: Mode,
}

impl Dropout {
    /// Drops elements with probability `p`.
    pub fn new(p: f64) -> Self {
        Self { p, mode: Mode::default() }
    }

    /// Whether it drops anything now.
    pub(super) fn is_active(&self) -> bool {
        self.p != 0.0 && self.mode.is_training()
    }

    fn settings(&self) -> String {
        format!("Dropout({})", self.p)
    }
}

impl Forward for Dropout {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let p = self.p;
        if !(0.0..=1.0).contains(&p) {
            return Err(Error::value("dropout", format!("the probability must be in [0, 1]: p {p:?}")));
        }
        if !self.is_active() {
            return Ok(x.clone());
        }
        let kept = Tensor::bernoulli(1.0 - p, x.shape(), (&x.device(), DType::Bool))?;
        let scale = 1.0 / (1.0 - p);
        zip(x, &kept, |x, kept| kept.select(x * scale, 0))
    }
}
