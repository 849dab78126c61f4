//! A rule at work on a model's parameters.

use std::collections::HashMap;
use std::fmt;

use tensor_core::{DType, Error, Param, Result, Target, Tensor};

use super::Rule;
use super::clip::Clip;
use super::group::Matches;
use super::update::{Formulas, update_rule};
use crate::module::{each_leaf, each_leaf_mut};
use crate::{Gradients, Leaf, LeafMut, Module};

/// A [`Rule`] and what it keeps for each parameter of a model. Made by the rule's `setup`.
///
/// What is kept belongs to a parameter's identity, not its place: models can be moved, cloned and taken apart. Parameters that
/// join later start with the first update that has a gradient for them.
pub struct Optimizer {
    /// The groups in order; last the base rule, which serves all other parameters.
    pub(super) groups: Vec<Group>,
    pub(super) slots: Vec<Slot>,
    index: HashMap<u64, usize>,
    clip: Option<Clip>,
    /// The base rule's.
    learning_rate: f64,
    /// Counts calls of `update`.
    pass: u64,
}

/// A rule and the parameters it is for.
pub(super) struct Group {
    matches: Option<Matches>,
    pub(super) rule: Box<dyn Rule>,
    /// This group's learning rate over the base rule's.
    ratio: f64,
    formulas: Vec<Formulas>,
}

/// What is kept for a parameter.
pub(super) struct Slot {
    pub(super) path: String,
    pub(super) group: usize,
    /// How often it was updated.
    pub(super) step: u64,
    pub(super) state: Vec<Tensor>,
    /// The last pass that met the parameter, and its place there.
    met: (u64, usize),
}

/// A parameter while it is updated.
struct Work<'m> {
    slot: usize,
    /// Group, step and dtype: what parameters that one call updates have in common.
    key: (usize, u64, DType),
    param: &'m mut Param,
    /// The same parameter elsewhere in the model.
    twins: Vec<&'m mut Param>,
    grad: &'m Tensor,
    state: Vec<Tensor>,
    done: bool,
}

impl Optimizer {
    /// An optimizer with one rule for all parameters of the model.
    ///
    /// # Errors
    /// A hyper-parameter outside its domain, a parameter that is not of a float dtype, no memory for the states.
    pub fn new(rule: impl Rule + 'static, model: &(impl Module + ?Sized)) -> Result<Self> {
        Self::from_groups(Box::new(rule), Vec::new(), model)
    }

    pub(super) fn from_groups(
        mut base: Box<dyn Rule>,
        groups: Vec<(Matches, Box<dyn Rule>)>,
        model: &(impl Module + ?Sized),
    ) -> Result<Self> {
        let learning_rate = *base.learning_rate();
        let mut groups: Vec<Group> = groups
            .into_iter()
            .map(|(matches, mut rule)| {
                let ratio = if learning_rate == 0.0 { 1.0 } else { *rule.learning_rate() / learning_rate };
                Group { matches: Some(matches), rule, ratio, formulas: Vec::new() }
            })
            .collect();
        groups.push(Group { matches: None, rule: base, ratio: 1.0, formulas: Vec::new() });
        let mut optimizer =
            Self { groups, slots: Vec::new(), index: HashMap::new(), clip: None, learning_rate, pass: 0 };
        optimizer.check_rules()?;
        let mut result = Ok(());
        each_leaf(model, |path, name, leaf| {
            if let Leaf::Param(param) = leaf
                && param.is_trainable()
                && result.is_ok()
                && !optimizer.index.contains_key(&param.id())
            {
                result = optimizer.add(path.of(name), param).map(|_| ());
            }
        });
        result.map(|()| optimizer)
    }

    /// The same, every number of a gradient clipped to [−limit, limit].
    pub fn clip_by_value(mut self, limit: f64) -> Self {
        self.clip = Some(Clip::Value(limit));
        self
    }

    /// The same, all gradients scaled so that together they are no longer than `limit`. Each update then waits for the device,
    /// and fails, naming the parameters, where a gradient is not finite.
    pub fn clip_by_norm(mut self, limit: f64) -> Self {
        self.clip = Some(Clip::Norm(limit));
        self
    }

    /// The learning rate of the base rule.
    pub fn learning_rate(&self) -> f64 {
        self.learning_rate
    }

    /// Changes the learning rate; those of groups keep their ratio to it.
    pub fn set_learning_rate(&mut self, learning_rate: f64) {
        self.learning_rate = learning_rate;
        for group in &mut self.groups {
            *group.rule.learning_rate() = learning_rate * group.ratio;
        }
    }

    /// One step: changes every trainable parameter of the model that has a gradient, in place, and its states.
    ///
    /// # Errors
    /// Gradients of another model, a gradient or state that does not fit its parameter, a learning rate that is negative or not a number, gradients that are
    /// not finite where they are clipped by norm, and what the device reports. Nothing is changed then, unless the device fails
    /// between two groups.
    pub fn update(&mut self, model: &mut (impl Module + ?Sized), grads: &Gradients) -> Result<()> {
        self.check_rules()?;
        let mut work = self.gather(model, grads)?;
        if work.is_empty() && !grads.is_empty() {
            return Err(Error::gradient(
                self.rule_name(),
                format!(
                    "no gradient belongs to a trained parameter of the model: gradients {}; pass the model that they were taken of",
                    grads.len()
                ),
            ));
        }
        let clip = self.clip_number(&work)?;
        for work in &mut work {
            work.state = std::mem::take(&mut self.slots[work.slot].state);
            // A storage with one owner is updated in place.
            work.twins.iter_mut().for_each(|twin| *twin.value_mut() = work.grad.clone());
        }
        let result = self.apply(&mut work, clip);
        for work in work {
            let slot = &mut self.slots[work.slot];
            slot.state = work.state;
            slot.step += u64::from(work.done);
            for twin in work.twins {
                *twin.value_mut() = work.param.value().clone();
            }
        }
        result
    }

    fn check_rules(&mut self) -> Result<()> {
        for group in &mut self.groups {
            let rate = *group.rule.learning_rate();
            if !(rate >= 0.0 && rate.is_finite()) {
                return Err(Error::value(
                    group.rule.name(),
                    format!("the learning rate must be finite and not negative: learning_rate {rate:?}"),
                ));
            }
            group.rule.check()?;
        }
        Ok(())
    }

    fn rule_name(&self) -> &'static str {
        self.groups[self.groups.len() - 1].rule.name()
    }

    /// Makes room for a parameter.
    fn add(&mut self, path: String, param: &Param) -> Result<usize> {
        let name = self.rule_name();
        if !param.dtype().is_float() {
            return Err(Error::dtype(
                name,
                format!(
                    "a trained parameter must be of a float dtype: {path} {}; freeze it or make it a plain tensor",
                    param.dtype()
                ),
            ));
        }
        let is_member = |group: &Group| group.matches.as_ref().is_none_or(|matches| matches(&path));
        let group = self.groups.iter().position(is_member).expect("invariant: the base rule serves all");
        let zeros = || Tensor::zeros(param.shape(), (&param.device(), param.dtype().compute()));
        let state = self.groups[group].rule.states().iter().map(|_| zeros()).collect::<Result<_>>()?;
        self.index.insert(param.id(), self.slots.len());
        self.slots.push(Slot { path, group, step: 0, state, met: (0, 0) });
        Ok(self.slots.len() - 1)
    }

    /// The parameters to update, each once.
    fn gather<'m>(&mut self, model: &'m mut (impl Module + ?Sized), grads: &'m Gradients) -> Result<Vec<Work<'m>>> {
        self.pass += 1;
        let mut work: Vec<Work<'m>> = Vec::with_capacity(self.slots.len());
        let mut result = Ok(());
        each_leaf_mut(model, |path, name, leaf| {
            let LeafMut::Param(param) = leaf else { return };
            if !param.is_trainable() || result.is_err() {
                return;
            }
            let Some(grad) = grads.of(param) else { return };
            let slot = match self.index.get(&param.id()) {
                Some(&slot) => Ok(slot),
                None => self.add(path.of(name), param),
            };
            let slot = match slot {
                Ok(slot) => slot,
                Err(error) => return result = Err(error),
            };
            if self.slots[slot].met.0 == self.pass {
                return work[self.slots[slot].met.1].twins.push(param);
            }
            result = self.fits(slot, param, grad);
            let Slot { group, step, met, .. } = &mut self.slots[slot];
            *met = (self.pass, work.len());
            let key = (*group, *step + 1, param.dtype());
            work.push(Work { slot, key, param, twins: Vec::new(), grad, state: Vec::new(), done: false });
        });
        result.map(|()| work)
    }

    /// That gradient and states are like the parameter.
    fn fits(&self, slot: usize, param: &Param, grad: &Tensor) -> Result<()> {
        let same_place = |a: &Tensor| a.place() == param.place() || a.device() == param.device();
        let Slot { path, state, .. } = &self.slots[slot];
        if grad.shape() != param.shape() || grad.dtype() != param.dtype() || !same_place(grad) {
            return Err(Error::shape(
                self.rule_name(),
                format!(
                    "a gradient must be like its parameter: {path} {}, gradient {}",
                    described(param),
                    described(grad)
                ),
            ));
        }
        match state
            .iter()
            .find(|s| s.shape() != param.shape() || s.dtype() != param.dtype().compute() || !same_place(s))
        {
            None => Ok(()),
            Some(state) => Err(Error::device(
                self.rule_name(),
                format!(
                    "what is kept for a parameter must be like it: {path} {}, kept {}; move it with optimizer.to(&device), or set up a new optimizer",
                    described(param),
                    described(state)
                ),
            )),
        }
    }

    fn clip_number(&self, work: &[Work<'_>]) -> Result<Option<(Clip, f64)>> {
        let Some(clip) = self.clip else { return Ok(None) };
        let named: Vec<_> = work.iter().map(|work| (|| self.slots[work.slot].path.clone(), work.grad)).collect();
        Ok(Some((clip, clip.number(&named)?)))
    }

    /// One call of the backend for all parameters with the same rule, step and dtype: usually for all.
    fn apply(&mut self, work: &mut [Work<'_>], clip: Option<(Clip, f64)>) -> Result<()> {
        let level = |tensor: &Tensor| tensor.place().backend().level();
        let tensors = work.iter().flat_map(|work| [work.param.value(), work.grad]);
        let Some(place) = tensors.max_by_key(|tensor| level(tensor)).map(|tensor| tensor.place().clone()) else {
            return Ok(());
        };
        while let Some(next) = work.iter().find(|work| !work.done) {
            let key @ (group, step, dtype) = next.key;
            let Group { rule, formulas, .. } = &mut self.groups[group];
            let rule = update_rule(&**rule, formulas, dtype, step, clip);
            let members = work.iter_mut().filter(|work| work.key == key);
            let mut targets: Vec<Target<'_>> = members
                .map(|work| Target { param: work.param.value_mut(), grad: work.grad, state: &mut work.state })
                .collect();
            place.update(&rule, &mut targets)?;
            work.iter_mut().filter(|work| work.key == key).for_each(|work| work.done = true);
        }
        Ok(())
    }
}

fn described(x: &Tensor) -> String {
    format!("{} {} on {}", x.shape(), x.dtype(), x.device())
}

impl fmt::Debug for Optimizer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rules: Vec<_> = self.groups.iter().map(|group| &group.rule).collect();
        f.debug_struct("Optimizer")
            .field("rules", &rules)
            .field("n_parameters", &self.slots.len())
            .finish_non_exhaustive()
    }
}
