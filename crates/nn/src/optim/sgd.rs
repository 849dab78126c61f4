//! Stochastic gradient descent.

use smallvec::smallvec;
use tensor_core::{Error, Result, Sym};

use super::{Numbers, Outputs, Rule, startable, within};

/// g′ = g + λ·p; with momentum b ← μ·b + (1 − τ)·g′ (at first b ← g′) and g′ = b, or g′ + μ·b for Nesterov; p ← p − η·g′.
///
/// # Source
/// Sutskever et al., 2013; as in PyTorch.
#[derive(Clone, Debug)]
pub struct Sgd {
    /// η.
    pub learning_rate: f64,
    /// μ; 0.
    pub momentum: f64,
    /// τ; 0.
    pub dampening: f64,
    /// Whether the step looks ahead along the momentum; false.
    pub nesterov: bool,
    /// λ; 0.
    pub weight_decay: f64,
}

impl Sgd {
    /// Plain gradient descent.
    pub const fn new(learning_rate: f64) -> Self {
        Self { learning_rate, momentum: 0.0, dampening: 0.0, nesterov: false, weight_decay: 0.0 }
    }

    /// The same with this momentum.
    pub const fn momentum(self, momentum: f64) -> Self {
        Self { momentum, ..self }
    }

    /// The same with Nesterov's momentum.
    pub const fn nesterov(self, momentum: f64) -> Self {
        Self { momentum, nesterov: true, ..self }
    }

    /// The same with this weight decay.
    pub const fn weight_decay(self, weight_decay: f64) -> Self {
        Self { weight_decay, ..self }
    }
}

startable!(Sgd);

impl Rule for Sgd {
    fn name(&self) -> &'static str {
        "sgd"
    }

    fn learning_rate(&mut self) -> &mut f64 {
        &mut self.learning_rate
    }

    fn states(&self) -> &'static [&'static str] {
        if self.momentum == 0.0 { &[] } else { &["momentum_buffer"] }
    }

    fn check(&self) -> Result<()> {
        within("sgd", "momentum", self.momentum, 0.0, f64::INFINITY)?;
        within("sgd", "weight_decay", self.weight_decay, 0.0, f64::INFINITY)?;
        if self.nesterov && (self.momentum == 0.0 || self.dampening != 0.0) {
            return Err(Error::value(
                "sgd",
                format!(
                    "nesterov needs momentum and no dampening: momentum {:?}, dampening {:?}",
                    self.momentum, self.dampening
                ),
            ));
        }
        Ok(())
    }

    fn numbers(&self, step: u64) -> Numbers {
        let share = if step == 1 { 1.0 } else { 1.0 - self.dampening };
        smallvec![self.learning_rate, self.momentum, share, self.weight_decay]
    }

    fn formula(&self, numbers: &[Sym], p: Sym, g: Sym, state: &[Sym]) -> Outputs {
        let &[rate, momentum, share, decay] = numbers else { unreachable!("invariant: four numbers") };
        let g = if self.weight_decay == 0.0 { g } else { g + decay * p };
        match state {
            [b] => {
                let b = momentum * *b + share * g;
                let g = if self.nesterov { g + momentum * b } else { b };
                smallvec![p - rate * g, b]
            }
            _ => smallvec![p - rate * g],
        }
    }
}
