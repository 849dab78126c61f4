//! Adam with decoupled weight decay.

use tensor_core::{Result, Sym};

use super::{Adam, Numbers, Outputs, Rule, startable};

/// p ← p − η·λ·p, then [`Adam`] without decay: the decay does not pass through the moments.
///
/// # Source
/// Loshchilov and Hutter, 2017.
#[derive(Clone, Debug)]
pub struct AdamW {
    /// η.
    pub learning_rate: f64,
    /// β₁ and β₂; (0.9, 0.999).
    pub betas: (f64, f64),
    /// ε; 1e-8.
    pub epsilon: f64,
    /// λ; 0.01.
    pub weight_decay: f64,
}

impl AdamW {
    /// AdamW with its usual constants.
    pub const fn new(learning_rate: f64) -> Self {
        Self { learning_rate, betas: (0.9, 0.999), epsilon: 1e-8, weight_decay: 0.01 }
    }

    /// The same with these β.
    pub const fn betas(self, beta1: f64, beta2: f64) -> Self {
        Self { betas: (beta1, beta2), ..self }
    }

    /// The same with this ε.
    pub const fn epsilon(self, epsilon: f64) -> Self {
        Self { epsilon, ..self }
    }

    /// The same with this weight decay.
    pub const fn weight_decay(self, weight_decay: f64) -> Self {
        Self { weight_decay, ..self }
    }

    fn adam(&self) -> Adam {
        let &Self { learning_rate, betas, epsilon, weight_decay } = self;
        Adam { learning_rate, betas, epsilon, weight_decay }
    }
}

startable!(AdamW);

impl Rule for AdamW {
    fn name(&self) -> &'static str {
        "adamw"
    }

    fn learning_rate(&mut self) -> &mut f64 {
        &mut self.learning_rate
    }

    fn states(&self) -> &'static [&'static str] {
        &["exp_avg", "exp_avg_sq"]
    }

    fn check(&self) -> Result<()> {
        self.adam().check_as("adamw")
    }

    fn numbers(&self, step: u64) -> Numbers {
        let mut numbers = self.adam().moments(step);
        numbers.push(1.0 - self.learning_rate * self.weight_decay);
        numbers
    }

    fn formula(&self, numbers: &[Sym], p: Sym, g: Sym, state: &[Sym]) -> Outputs {
        let p = if self.weight_decay == 0.0 { p } else { p * numbers[5] };
        Adam::step(numbers, p, g, state)
    }
}
