//! Adam.

use smallvec::smallvec;
use tensor_core::{Result, Sym};

use super::{Numbers, Outputs, Rule, startable, within};

/// g′ = g + λ·p; m ← β₁·m + (1 − β₁)·g′; v ← β₂·v + (1 − β₂)·g′²; p ← p − η·m̂/(√v̂ + ε) with m̂ = m/(1 − β₁ᵗ) and
/// v̂ = v/(1 − β₂ᵗ) at step t.
///
/// The weight decay λ acts through the gradient; for the decoupled one see [`super::AdamW`].
///
/// # Source
/// Kingma and Ba, 2014.
#[derive(Clone, Debug)]
pub struct Adam {
    /// η.
    pub learning_rate: f64,
    /// β₁ and β₂; (0.9, 0.999).
    pub betas: (f64, f64),
    /// ε; 1e-8.
    pub epsilon: f64,
    /// λ; 0.
    pub weight_decay: f64,
}

impl Adam {
    /// Adam with its usual constants.
    pub const fn new(learning_rate: f64) -> Self {
        Self { learning_rate, betas: (0.9, 0.999), epsilon: 1e-8, weight_decay: 0.0 }
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

    /// The numbers but for the decay, which is last.
    pub(super) fn moments(&self, step: u64) -> Numbers {
        let (beta1, beta2) = self.betas;
        let unbiased = |beta: f64| 1.0 - beta.powi(i32::try_from(step).unwrap_or(i32::MAX));
        smallvec![
            self.learning_rate / unbiased(beta1),
            1.0 - beta1,
            1.0 - beta2,
            unbiased(beta2).sqrt().recip(),
            self.epsilon
        ]
    }

    /// The step without decay.
    pub(super) fn step(numbers: &[Sym], p: Sym, g: Sym, state: &[Sym]) -> Outputs {
        let (&[rate, rest1, rest2, unbias, epsilon, ..], &[m, v]) = (numbers, state) else {
            unreachable!("invariant: five numbers and two states")
        };
        let m = m + rest1 * (g - m);
        let v = v + rest2 * (g.square() - v);
        smallvec![p - rate * m / (v.sqrt() * unbias + epsilon), m, v]
    }

    pub(super) fn check_as(&self, rule: &'static str) -> Result<()> {
        within(rule, "beta1", self.betas.0, 0.0, 1.0)?;
        within(rule, "beta2", self.betas.1, 0.0, 1.0)?;
        within(rule, "epsilon", self.epsilon, 0.0, f64::INFINITY)?;
        within(rule, "weight_decay", self.weight_decay, 0.0, f64::INFINITY)
    }
}

startable!(Adam);

impl Rule for Adam {
    fn name(&self) -> &'static str {
        "adam"
    }

    fn learning_rate(&mut self) -> &mut f64 {
        &mut self.learning_rate
    }

    fn states(&self) -> &'static [&'static str] {
        &["exp_avg", "exp_avg_sq"]
    }

    fn check(&self) -> Result<()> {
        self.check_as("adam")
    }

    fn numbers(&self, step: u64) -> Numbers {
        let mut numbers = self.moments(step);
        numbers.push(self.weight_decay);
        numbers
    }

    fn formula(&self, numbers: &[Sym], p: Sym, g: Sym, state: &[Sym]) -> Outputs {
        let g = if self.weight_decay == 0.0 { g } else { g + numbers[5] * p };
        Self::step(numbers, p, g, state)
    }
}
