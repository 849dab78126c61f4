//! Derivatives on the device against those of the reference: ∂⟨outputs, cotangents⟩ by every float input, and the
//! derivative of ⟨gradients, directions⟩ once more.

use nn::{Param, with_gradient};
use tensor_core::{Device, Error, Result, Tensor};

use super::{Verdict, judge};
use crate::suite::case::Trial;
use crate::suite::input::{Content, Fill, Input, Layout, Prepared, Source};
use crate::suite::probe;

pub(super) fn first(trial: &Trial, device: &Device) -> Verdict {
    check(trial, device, vjp)
}

pub(super) fn second(trial: &Trial, device: &Device) -> Verdict {
    // Special values have been judged once; what is left is the rule, on which size has no bearing.
    let n: usize = trial.call.inputs.iter().map(|input| input.dims.iter().product::<usize>()).sum();
    if trial.source.fill == Fill::Edges || n > 256 {
        return Verdict::Inapplicable;
    }
    check(trial, device, vjp_of_vjp)
}

type Derivative = fn(&Trial, &Device) -> Result<Vec<Tensor>>;

fn check(trial: &Trial, device: &Device, derivative: Derivative) -> Verdict {
    if !trial.call.has_gradient || !trial.dtype.is_float() {
        return Verdict::Inapplicable;
    }
    let (values, ops) = probe::device();
    match derivative(trial, &values) {
        Err(error) if is_without_gradient(&error) => return Verdict::Inapplicable,
        _ => {}
    }
    let ops = std::mem::take(&mut *ops.lock().unwrap_or_else(std::sync::PoisonError::into_inner));
    let want = derivative(trial, &Trial::reference(device));
    judge(device, (derivative(trial, device), want), &ops, false)
}

fn is_without_gradient(error: &Error) -> bool {
    error.is_gradient()
}

/// The inputs that are differentiated, as parameters.
fn parameters(trial: &Trial, inputs: &[Tensor]) -> Vec<Option<Param>> {
    let is_data = |input: &Input| matches!(input.content, Content::Data | Content::Within(..));
    let inputs = trial.call.inputs.iter().zip(inputs);
    inputs.map(|(input, x)| is_data(input).then(|| Param::new(x.clone()))).collect()
}

/// ⟨outputs, cotangents⟩ over the float outputs, with cotangents from stream `stream` on.
fn pairing(trial: &Trial, device: &Device, outputs: &[Tensor], stream: u64) -> Result<Tensor> {
    let source = Source { domain: (-2.0, 2.0), edges: &[], ..trial.source };
    let mut sum: Option<Tensor> = None;
    for (i, y) in outputs.iter().enumerate().filter(|(_, y)| y.dtype().is_float()) {
        let cotangent =
            Prepared::new(&Input::data(y.dims()), y.dtype(), Layout::Contiguous, &source, stream + i as u64);
        // Sums in a type that all outputs have: only their slopes matter.
        let term = y.mul(&cotangent.on(device)?)?.sum(..)?.cast(trial.dtype)?;
        sum = Some(match sum {
            Some(sum) => sum.add(&term)?,
            None => term,
        });
    }
    sum.ok_or_else(|| Error::gradient("pairing", "no output is a float"))
}

fn vjp(trial: &Trial, device: &Device) -> Result<Vec<Tensor>> {
    let inputs = trial.inputs_on(device)?;
    gradients(trial, device, &inputs, &parameters(trial, &inputs))
}

/// The gradients of ⟨outputs, cotangents⟩; zero where an input does not reach the outputs.
fn gradients(
    trial: &Trial,
    device: &Device,
    inputs: &[Tensor],
    parameters: &Vec<Option<Param>>,
) -> Result<Vec<Tensor>> {
    let (_, gradients) = with_gradient(parameters, |parameters| {
        let lifted = parameters.iter().zip(inputs);
        let lifted: Vec<Tensor> =
            lifted.map(|(p, x)| p.as_ref().map_or_else(|| x.clone(), |p| (**p).clone())).collect();
        pairing(trial, device, &trial.run(device, &lifted)?, 1 << 8)
    })?;
    let of = |p: &Param| gradients.of(p).map_or_else(|| p.zeros_like(), |g| Ok(g.clone()));
    parameters.iter().flatten().map(of).collect()
}

fn vjp_of_vjp(trial: &Trial, device: &Device) -> Result<Vec<Tensor>> {
    let inputs = trial.inputs_on(device)?;
    let parameters = parameters(trial, &inputs);
    let (_, second) = with_gradient(&parameters, |parameters| {
        pairing(trial, device, &gradients(trial, device, &inputs, parameters)?, 1 << 9)
    })?;
    let of = |p: &Param| second.of(p).map_or_else(|| p.zeros_like(), |g| Ok(g.clone()));
    parameters.iter().flatten().map(of).collect()
}
