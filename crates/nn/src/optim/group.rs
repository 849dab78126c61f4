//! Parameter groups: one rule, adjusted for some of the parameters.

use std::sync::Arc;

use tensor_core::Result;

use super::{Optimizer, Rule};
use crate::Module;

/// Whether a parameter's path belongs to a group.
pub(super) type Matches = Arc<dyn Fn(&str) -> bool + Send + Sync>;

/// A rule with variants of it for groups of parameters; made by the rule's method `group`.
///
/// ```
/// # use nn::optim::AdamW;
/// // No weight decay for biases.
/// let rule = AdamW::new(3e-4).group(|path| path.ends_with("bias"), |rule| rule.weight_decay = 0.0);
/// ```
pub struct Groups<R> {
    base: R,
    groups: Vec<(Matches, R)>,
}

impl<R: Rule + Clone + 'static> Groups<R> {
    /// A rule without variants.
    pub fn new(rule: R) -> Self {
        Self { base: rule, groups: Vec::new() }
    }

    /// Adjusts the rule for the parameters whose path `matches`; of several such groups the first one counts.
    pub fn group(
        mut self,
        matches: impl Fn(&str) -> bool + Send + Sync + 'static,
        adjust: impl FnOnce(&mut R),
    ) -> Self {
        let mut rule = self.base.clone();
        adjust(&mut rule);
        self.groups.push((Arc::new(matches), rule));
        self
    }

    /// An optimizer with these rules for the model's parameters.
    ///
    /// # Errors
    /// A hyper-parameter outside its domain, a parameter that is not of a float dtype, no memory for the states.
    pub fn setup(self, model: &(impl Module + ?Sized)) -> Result<Optimizer> {
        let boxed = |rule: R| Box::new(rule) as Box<dyn Rule>;
        let groups = self.groups.into_iter().map(|(matches, rule)| (matches, boxed(rule))).collect();
        Optimizer::from_groups(boxed(self.base), groups, model)
    }
}
