//! Optimizers: a [`Rule`] says, as formulas, how one step changes a number; an [`Optimizer`] applies it to a model.
//!
//! A rule is a struct of hyper-parameters in a short file here and a line below. All parameters are updated in place by one
//! call of the backend, each tied one once. Deliberately absent: zeroing of gradients, which are values.

mod adam;
mod adamw;
mod clip;
mod group;
mod optimizer;
mod sgd;
mod state;
mod update;

pub use adam::Adam;
pub use adamw::AdamW;
pub use group::Groups;
pub use optimizer::Optimizer;
pub use sgd::Sgd;

use std::fmt;

use smallvec::SmallVec;
use tensor_core::{Error, Result, Sym};

/// The run-time numbers of a rule's formulas.
pub type Numbers = SmallVec<[f64; 8]>;
/// A rule's new parameter, then its new states.
pub type Outputs = SmallVec<[Sym; 4]>;

/// How an optimizer changes a parameter: hyper-parameters, and one step as elementwise formulas over them.
///
/// To write your own, implement this and start it with [`Optimizer::new`]:
///
/// ```
/// use nn::optim::{Numbers, Outputs, Rule};
/// use tensor_core::Sym;
///
/// /// p ← p − η·sign(g).
/// #[derive(Clone, Debug)]
/// struct SignSgd {
///     learning_rate: f64,
/// }
///
/// impl Rule for SignSgd {
///     fn name(&self) -> &'static str {
///         "sign_sgd"
///     }
///
///     fn learning_rate(&mut self) -> &mut f64 {
///         &mut self.learning_rate
///     }
///
///     fn numbers(&self, _: u64) -> Numbers {
///         Numbers::from_slice(&[self.learning_rate])
///     }
///
///     fn formula(&self, numbers: &[Sym], param: Sym, grad: Sym, _: &[Sym]) -> Outputs {
///         Outputs::from_slice(&[param - numbers[0] * grad.sign()])
///     }
/// }
/// ```
pub trait Rule: fmt::Debug + Send + Sync {
    /// The name in errors.
    fn name(&self) -> &'static str;

    /// The learning rate, to be read and changed.
    fn learning_rate(&mut self) -> &mut f64;

    /// The names of the numbers that are kept for every number of a parameter; they start as 0.
    fn states(&self) -> &'static [&'static str] {
        &[]
    }

    /// What is wrong with the hyper-parameters.
    ///
    /// # Errors
    /// A hyper-parameter outside its domain.
    fn check(&self) -> Result<()> {
        Ok(())
    }

    /// The numbers of step `step`, counted from 1 for each parameter by itself.
    fn numbers(&self, step: u64) -> Numbers;

    /// The new parameter and the new states, over the numbers (as symbols, in order), parameter, gradient and states. May
    /// depend on which hyper-parameters are 0, but on the step only through the numbers.
    fn formula(&self, numbers: &[Sym], param: Sym, grad: Sym, state: &[Sym]) -> Outputs;
}

/// That a hyper-parameter lies in [low, high).
fn within(rule: &'static str, name: &str, value: f64, low: f64, high: f64) -> Result<()> {
    if low <= value && value < high {
        return Ok(());
    }
    Err(Error::value(rule, format!("{name} must be in [{low}, {high}): {name} {value:?}")))
}

/// The ways to start a rule, as methods of its own so that no trait has to be in scope.
macro_rules! startable {
    ($rule:ty) => {
        impl $rule {
            /// An optimizer with this rule for the model's parameters.
            ///
            /// # Errors
            /// A hyper-parameter outside its domain, a parameter that is not of a float dtype, no memory for the states.
            pub fn setup(
                self,
                model: &(impl $crate::Module + ?Sized),
            ) -> tensor_core::Result<$crate::optim::Optimizer> {
                $crate::optim::Groups::new(self).setup(model)
            }

            /// Adjusts the rule for the parameters whose path `matches`; of several such groups the first one counts.
            pub fn group(
                self,
                matches: impl Fn(&str) -> bool + Send + Sync + 'static,
                adjust: impl FnOnce(&mut Self),
            ) -> $crate::optim::Groups<Self> {
                $crate::optim::Groups::new(self).group(matches, adjust)
            }
        }
    };
}
use startable;
