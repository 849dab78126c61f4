//! Whole training runs: ten losses of an MLP, a CNN and a tiny transformer from one seed, in f64 on the reference, which a
//! device follows.
//!
//! How far it may be off is derived, step by step, from the reference's running bounds and from how much the run makes of
//! them. From the exact parameters of a step the reference gives, in the device's dtype, the bound of its loss and of each
//! parameter that the step writes. Runs in f64 whose parameters are moved by those whole bounds after each step, up or down
//! at random, show what such roundings become in later losses. Allowed is the loss's own bound and the largest departure of
//! these runs so far, so that it grows with the steps. (Bounds carried through all steps would hold always and soon say
//! nothing: every step multiplies them by the sum of all slopes' magnitudes, where in truth signs differ.)

use nn::optim::Sgd;
use nn::{Module, with_gradient};
use tensor_core::expr::Value;
use tensor_core::{DType, Device, Result, Tensor};

use super::input::mixed;
use crate::reference;

mod models;
#[cfg(test)]
mod tests;

/// The steps of a run.
const N_STEPS: usize = 10;
/// The runs whose parameters are moved.
const N_MOVED: u64 = 3;
/// The learning rate.
const RATE: f64 = 0.05;

/// A device's run beside the reference's.
#[derive(Clone, Debug, PartialEq)]
pub struct Golden {
    /// `training/mlp`.
    pub name: String,
    /// The dtype of the parameters and of the data.
    pub dtype: DType,
    /// The losses, in order.
    pub steps: Vec<Step>,
}

/// A loss.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// The device's.
    pub got: f64,
    /// The reference's.
    pub want: f64,
    /// How far they may be apart.
    pub allowed: f64,
}

impl Golden {
    /// The first loss that is too far off, in words.
    pub fn breach(&self) -> Option<String> {
        // A loss that is no number is near to nothing.
        let is_off = |step: &Step| !((step.got - step.want).abs() <= step.allowed);
        let i = self.steps.iter().position(is_off)?;
        let Step { got, want, allowed } = self.steps[i];
        Some(format!("loss {i} is {got:?}, not {want:?} (off by {:.1e}, allowed {allowed:.1e})", (got - want).abs()))
    }

    /// The largest part of what is allowed that was used.
    pub fn max_used(&self) -> f64 {
        self.steps.iter().map(|step| (step.got - step.want).abs() / step.allowed).fold(0.0, f64::max)
    }
}

/// Trains the models on a device, in f64 and in f32, beside the reference. A dtype that the device has not is left out.
///
/// # Errors
/// What the device reports.
pub fn run(device: &Device) -> Result<Vec<Golden>> {
    let mut found = Vec::new();
    for dtype in [DType::F64, DType::F32] {
        for run in [models::mlp, models::cnn, models::transformer] {
            match run(device, dtype) {
                Ok(golden) => found.push(golden),
                Err(error) if error.is_unsupported() && dtype == DType::F64 => {}
                Err(error) => return Err(error),
            }
        }
    }
    Ok(found)
}

/// A model, data, and the loss that is trained.
struct Training<M> {
    name: &'static str,
    /// On the reference, in f32: what every dtype and device starts from.
    model: M,
    data: Vec<Tensor>,
    loss: fn(&M, &[Tensor]) -> Result<Tensor>,
}

/// Tensors in a dtype on a device; integers as they are.
fn placed(data: &[Tensor], device: &Device, dtype: DType) -> Result<Vec<Tensor>> {
    let place = |x: &Tensor| if x.dtype().is_float() { x.cast(dtype)?.to(device) } else { x.to(device) };
    data.iter().map(place).collect()
}

impl<M: Module + Clone> Training<M> {
    fn step(&self, model: &mut M, data: &[Tensor]) -> Result<Tensor> {
        let mut optimizer = Sgd::new(RATE).setup(model)?;
        let (loss, gradients) = with_gradient(model, |model| (self.loss)(model, data))?;
        optimizer.update(model, &gradients)?;
        Ok(loss)
    }

    fn beside(&self, device: &Device, dtype: DType) -> Result<Golden> {
        let data = placed(&self.data, device, dtype)?;
        let mut model = self.model.cast(dtype)?.to(device)?;
        let mut steps = self.course(&self.data[0].device(), dtype)?;
        for step in &mut steps {
            let loss = self.step(&mut model, &data)?;
            step.got = if dtype == DType::F32 { loss.item::<f32>()?.into() } else { loss.item()? };
        }
        Ok(Golden { name: format!("training/{}", self.name), dtype, steps })
    }

    /// The reference's losses and what is allowed of each.
    fn course(&self, reference: &Device, dtype: DType) -> Result<Vec<Step>> {
        let exact = placed(&self.data, reference, DType::F64)?;
        let rounded = placed(&self.data, reference, dtype)?;
        let mut model = self.model.cast(DType::F64)?;
        let mut moved: Vec<M> = (0..N_MOVED).map(|_| model.clone().fork()).collect();
        let mut steps: Vec<Step> = Vec::new();
        for i in 0..N_STEPS {
            // In the device's dtype from the exact parameters: what one step may be off by.
            let mut one = exactly(&model)?.cast(dtype)?;
            let own = bounds(&self.step(&mut one, &rounded)?)[0];
            let written: Vec<(String, Vec<f64>)> =
                one.named_parameters().into_iter().map(|(path, p)| (path, bounds(p.value()))).collect();
            let want: f64 = self.step(&mut model, &exact)?.item()?;
            let mut departed = steps.last().map_or(0.0, |step| step.allowed - step.got);
            for (run, other) in (0..).zip(&mut moved) {
                let loss: f64 = self.step(other, &exact)?.item()?;
                departed = f64::max(departed, (loss - want).abs());
                shift(other, &written, mixed(run, i as u64))?;
            }
            // Until the device has run `got` holds the loss's own bound.
            steps.push(Step { got: own, want, allowed: own + departed });
        }
        Ok(steps)
    }
}

/// The bounds of a tensor of the reference.
fn bounds(x: &Tensor) -> Vec<f64> {
    let error = |cell: &reference::Cell| if let Value::Real(v) = cell { v.error } else { 0.0 };
    reference::cells(x).iter().map(error).collect()
}

/// The tensor with the same values, in its dtype, none of which is in doubt.
fn settled(x: &Tensor) -> Result<Tensor> {
    Tensor::from_host(x.to_host()?.as_slice(), x.dims(), (&x.device(), x.dtype()))
}

/// The model with the same values, in their dtype, none of which is in doubt.
fn exactly<M: Module + Clone>(model: &M) -> Result<M> {
    let mut model = model.clone().fork();
    let state = model.state_dict().into_iter().map(|(path, x)| Ok((path, settled(&x)?)));
    let state: Vec<(String, Tensor)> = state.collect::<Result<_>>()?;
    model.load_state_dict(&state)?;
    Ok(model)
}

/// Moves every parameter by its whole bound, up or down.
fn shift<M: Module>(model: &mut M, bounds: &[(String, Vec<f64>)], seed: u64) -> Result<()> {
    let mut state = model.state_dict();
    let mut n = 0;
    for (path, x) in &mut state {
        let Some((_, bounds)) = bounds.iter().find(|(of, _)| of == path) else { continue };
        let moved = x.to_vec::<f64>()?.into_iter().zip(bounds).map(|(v, bound)| {
            n += 1;
            if mixed(seed, n) & 1 == 0 { v + bound } else { v - bound }
        });
        *x = Tensor::from_vec(moved.collect::<Vec<f64>>(), x.dims(), (&x.device(), DType::F64))?;
    }
    model.load_state_dict(&state)
}
