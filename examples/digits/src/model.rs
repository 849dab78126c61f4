//! The two networks to choose from.

use consort::nn;
use consort::prelude::*;

/// Three dense layers on the 64 pixels: knows nothing of images.
#[derive(Module, Clone, Debug)]
pub(crate) struct Mlp {
    hidden: nn::Linear,
    deep: nn::Linear,
    output: nn::Linear,
    dropout: nn::Dropout,
}

impl Mlp {
    pub(crate) fn new(device: &Device) -> Result<Self> {
        Ok(Self {
            hidden: nn::Linear::new(64, 256, device)?,
            deep: nn::Linear::new(256, 256, device)?,
            output: nn::Linear::new(256, 10, device)?,
            dropout: nn::Dropout::new(0.2),
        })
    }
}

impl Forward for Mlp {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let x = x.flatten(1..)?; // [N, 1, 8, 8] to [N, 64]
        let x = self.dropout.forward(&self.hidden.forward(&x)?.relu()?)?;
        let x = self.dropout.forward(&self.deep.forward(&x)?.relu()?)?;
        self.output.forward(&x)
    }
}

/// Two convolutions, then two dense layers: a stroke is the same stroke wherever it lies.
#[derive(Module, Clone, Debug)]
pub(crate) struct Cnn {
    strokes: nn::Conv2d,
    shapes: nn::Conv2d,
    pool: nn::MaxPool2d,
    hidden: nn::Linear,
    dropout: nn::Dropout,
    output: nn::Linear,
}

impl Cnn {
    pub(crate) fn new(device: &Device) -> Result<Self> {
        Ok(Self {
            strokes: nn::Conv2d::new(1, 32, 3, device)?.padding(1),
            shapes: nn::Conv2d::new(32, 64, 3, device)?.padding(1),
            pool: nn::MaxPool2d::new(2),
            hidden: nn::Linear::new(64 * 4 * 4, 128, device)?,
            dropout: nn::Dropout::new(0.25),
            output: nn::Linear::new(128, 10, device)?,
        })
    }
}

impl Forward for Cnn {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let x = self.strokes.forward(x)?.relu()?; // [N, 32, 8, 8]
        let x = self.shapes.forward(&x)?.relu()?; // [N, 64, 8, 8]
        let x = self.pool.forward(&x)?.flatten(1..)?; // [N, 1024]
        let x = self.dropout.forward(&self.hidden.forward(&x)?.relu()?)?;
        self.output.forward(&x)
    }
}

/// The names of the networks, for the command line.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(crate) enum Kind {
    /// Three dense layers
    Mlp,
    /// Two convolutions and two dense layers
    Cnn,
}

impl Kind {
    /// The name as it is written on the command line.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Mlp => "mlp",
            Self::Cnn => "cnn",
        }
    }

    /// How many epochs the network takes to learn all it can, found on a fifth of the training images set aside.
    pub(crate) fn epochs(self) -> usize {
        match self {
            Self::Mlp => 100,
            Self::Cnn => 30,
        }
    }
}
