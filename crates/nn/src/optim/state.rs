//! An optimizer's state: to another device, to a file and back.

use std::path::Path;

use tensor_core::{Device, Error, HostData, Result, Tensor};

use super::Optimizer;
use super::optimizer::Slot;
use crate::save::{Contents, Entry, Values, write};

impl Optimizer {
    /// Moves what is kept to `device`, where the model now is.
    ///
    /// # Errors
    /// What a transfer reports; nothing is moved then.
    pub fn to(&mut self, device: &Device) -> Result<()> {
        let moved = |state: &[Tensor]| state.iter().map(|tensor| tensor.to(device)).collect::<Result<Vec<_>>>();
        let states = self.slots.iter().map(|slot| moved(&slot.state)).collect::<Result<Vec<_>>>()?;
        self.slots.iter_mut().zip(states).for_each(|(slot, state)| slot.state = state);
        Ok(())
    }

    /// Writes what is kept for each parameter, under its path, and the learning rate to a safetensors file.
    ///
    /// # Errors
    /// If the file cannot be written; then a file that was there before is unchanged.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        let scalar = |name, value| Entry { name, values: Values::Scalar(value) };
        let mut entries = vec![scalar("learning_rate".to_string(), HostData::F64(vec![self.learning_rate()]))];
        for slot in &self.slots {
            entries.push(scalar(step_name(&slot.path), HostData::I64(vec![slot.step as i64])));
        }
        entries
            .extend(self.named_states().into_iter().map(|(name, state)| Entry { name, values: Values::Device(state) }));
        write("optimizer save", path.as_ref(), entries)
    }

    /// Takes what [`Optimizer::save`] wrote for the same rule and model: the next update is as if there had been no break.
    ///
    /// # Errors
    /// If the file cannot be read or is damaged, or does not fit the rule and the model. Then nothing is changed.
    pub fn load(&mut self, path: impl AsRef<Path>) -> Result<()> {
        let (op, path) = ("optimizer load", path.as_ref());
        let contents = Contents::read(op, path)?;
        let misfit = |problems: String| {
            let remedy = "set up the same rule for the same model";
            Error::format(
                op,
                format!("the file does not fit the optimizer: {problems}: path {}; {remedy}", path.display()),
            )
        };
        let scalars: Vec<String> =
            std::iter::once("learning_rate".to_string()).chain(self.slots.iter().map(|s| step_name(&s.path))).collect();
        let wanted = self.named_states();
        let values = contents.take(&wanted, &scalars).map_err(misfit)?;
        let Some(learning_rate) = contents.scalar::<f64>("learning_rate") else {
            return Err(misfit("missing learning_rate".into()));
        };
        let mut steps = Vec::with_capacity(self.slots.len());
        for slot in &self.slots {
            let step = contents.scalar::<i64>(&step_name(&slot.path)).and_then(|step| u64::try_from(step).ok());
            steps.push(step.ok_or_else(|| misfit(format!("missing {}", step_name(&slot.path))))?);
        }
        let uploaded = values
            .iter()
            .zip(&wanted)
            .map(|((_, values), (_, old))| Tensor::from_host(values.as_slice(), old.shape(), &old.device()));
        let mut uploaded = uploaded.collect::<Result<Vec<_>>>()?.into_iter();
        for (slot, step) in self.slots.iter_mut().zip(steps) {
            slot.step = step;
            slot.state.iter_mut().zip(&mut uploaded).for_each(|(state, value)| *state = value);
        }
        self.set_learning_rate(learning_rate);
        Ok(())
    }

    /// Every state under its name in files.
    fn named_states(&self) -> Vec<(String, Tensor)> {
        let of_slot = |slot| {
            let Slot { path, group, state, .. }: &Slot = slot;
            let names = self.groups[*group].rule.states();
            names.iter().zip(state).map(move |(name, state)| (format!("state.{path}.{name}"), state.clone()))
        };
        self.slots.iter().flat_map(of_slot).collect()
    }
}

fn step_name(path: &str) -> String {
    format!("state.{path}.step")
}
