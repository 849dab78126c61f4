//! Derivative rules on the reference, in f64, against differences of values: Φ(x) = ⟨outputs, cotangents⟩ along a direction
//! v, whose slope is ⟨∂Φ, v⟩; and the same for Ψ(x) = ⟨∂Φ, directions⟩, whose slope is that of second order.

use nn::{Param, with_gradient};
use tensor_core::expr::{Accuracy, Bounded, Value};
use tensor_core::{DType, Device, Result, Tensor};

use super::{failure, trials};
use crate::reference;
use crate::suite::case::Trial;
use crate::suite::input::{Content, Fill, Input, Layout, Prepared, Source};
use crate::suite::report::Failure;
use crate::suite::subjects;

/// Calls tried per subject, and judged.
const TRIED: u64 = 40;
const JUDGED: usize = 3;

pub(super) fn run(seed: u64) -> Vec<Failure> {
    let device = reference::device(Accuracy::default());
    let mut failures = Vec::new();
    // What is stopped is a constant to derivatives alone.
    for subject in subjects().iter().filter(|subject| subject.name != "stop_gradient") {
        for order in [1, 2] {
            let mut n_judged = 0;
            for (case, trial) in trials(subject, seed, TRIED) {
                if n_judged == JUDGED || !trial.call.has_gradient {
                    break;
                }
                let n: usize = trial.call.inputs.iter().map(|input| input.dims.iter().product::<usize>()).sum();
                if n > 48 {
                    continue;
                }
                match judge(&trial, &device, order) {
                    Verdict::Right => n_judged += 1,
                    Verdict::Wrong(message) => {
                        let about = format!("{case}: {}", trial.described());
                        failures.push(failure(subject.name, &format!("slope of order {order}"), about, message));
                        break;
                    }
                    Verdict::Open => {}
                }
            }
        }
    }
    failures
}

/// What a comparison shows.
enum Verdict {
    Right,
    Wrong(String),
    /// The function has no such slope, or is not smooth enough here for differences to tell.
    Open,
}

fn judge(trial: &Trial, device: &Device, order: usize) -> Verdict {
    let Ok(inputs) = trial.inputs_on(device) else { return Verdict::Open };
    let along = |t: f64| -> Result<Bounded> {
        let moved: Result<Vec<Tensor>> = (inputs.iter().enumerate())
            .map(|(i, x)| {
                if is_data(&trial.call.inputs[i]) {
                    x.add(&direction(trial, x, i, device)?.mul(t)?)
                } else {
                    Ok(x.clone())
                }
            })
            .collect();
        Ok(real(reference::cells(&scalar(trial, device, &moved?, order - 1)?)[0]))
    };
    let slope = || -> Result<f64> {
        let gradients = gradients(trial, device, &inputs, &parameters(trial, &inputs), order - 1)?;
        let directions = inputs.iter().enumerate().filter(|(i, _)| is_data(&trial.call.inputs[*i]));
        let terms = directions
            .zip(&gradients)
            .map(|((i, x), g)| g.mul(&direction(trial, x, i, device)?)?.sum(..)?.item::<f64>());
        terms.sum::<Result<f64>>()
    };
    let Ok(value) = along(0.0) else { return Verdict::Open };
    let got = match slope() {
        Ok(got) => got,
        Err(error) if error.is_gradient() => return Verdict::Open,
        Err(error) => return Verdict::Wrong(format!("the gradient fails: {error}")),
    };
    // The slope and how much of it may be rounding: where terms cancel, more than the value tells.
    let difference = |h: f64| -> Result<(f64, f64)> {
        let (right, left) = (along(h)?, along(-h)?);
        Ok(((right.value - left.value) / (2.0 * h), (right.error + left.error) / (2.0 * h)))
    };
    let h = 1e-3;
    let (Ok((wide, _)), Ok((narrow, noise))) = (difference(h), difference(h / 2.0)) else {
        return Verdict::Open;
    };
    // Richardson: what is left is of fourth order, which is judged by what was of second.
    let want = (4.0 * narrow - wide) / 3.0;
    let scale = want.abs().max(got.abs()) + 1e-3 * value.value.abs();
    let rounding = 2.0 * noise + 1e4 * f64::EPSILON * (scale + value.value.abs()) / h;
    let allowed = 0.1 * (narrow - wide).abs() + rounding + 1e-9 * scale;
    if !got.is_finite() || !want.is_finite() || allowed > 1e-3 * scale.max(1e-9) {
        return Verdict::Open;
    }
    if (got - want).abs() <= allowed {
        return Verdict::Right;
    }
    Verdict::Wrong(format!("the slope is {got:?}, differences have {want:?} (allowed {allowed:.1e})"))
}

/// A float cell.
fn real(cell: reference::Cell) -> Bounded {
    match cell {
        Value::Real(x) => x,
        Value::Int(_) => unreachable!("invariant: a sum of floats"),
    }
}

fn is_data(input: &Input) -> bool {
    matches!(input.content, Content::Data | Content::Within(..))
}

/// Numbers of a tensor's shape, the same in every call.
fn numbers(trial: &Trial, like: &Tensor, stream: u64, device: &Device) -> Result<Tensor> {
    let source = Source { domain: (-1.0, 1.0), edges: &[], fill: Fill::Domain, ..trial.source };
    Prepared::new(&Input::data(like.dims()), DType::F64, Layout::Contiguous, &source, stream).on(device)
}

fn direction(trial: &Trial, x: &Tensor, i: usize, device: &Device) -> Result<Tensor> {
    numbers(trial, x, (1 << 12) + i as u64, device)
}

/// The inputs that are differentiated by.
fn parameters(trial: &Trial, inputs: &[Tensor]) -> Vec<Option<Param>> {
    let inputs = trial.call.inputs.iter().zip(inputs);
    inputs.map(|(input, x)| is_data(input).then(|| Param::new(x.clone()))).collect()
}

/// ⟨values, fixed numbers⟩ over those that are floats.
fn pairing(trial: &Trial, device: &Device, values: &[Tensor], stream: u64) -> Result<Tensor> {
    let mut sum = Tensor::zeros([0usize; 0], (device, DType::F64))?;
    for (i, y) in values.iter().enumerate().filter(|(_, y)| y.dtype().is_float()) {
        let weights = numbers(trial, y, stream + i as u64, device)?;
        sum = sum.add(&y.cast(DType::F64)?.mul(&weights)?.sum(..)?)?;
    }
    Ok(sum)
}

/// Φ for order 0, Ψ for order 1.
fn scalar(trial: &Trial, device: &Device, inputs: &[Tensor], order: usize) -> Result<Tensor> {
    if order == 0 {
        return pairing(trial, device, &trial.run(device, inputs)?, 1 << 8);
    }
    let parameters = parameters(trial, inputs);
    pairing(trial, device, &gradients(trial, device, inputs, &parameters, order - 1)?, 1 << 9)
}

/// The gradients of Φ or Ψ; zero where an input does not reach it.
fn gradients(
    trial: &Trial,
    device: &Device,
    inputs: &[Tensor],
    parameters: &Vec<Option<Param>>,
    order: usize,
) -> Result<Vec<Tensor>> {
    let (_, gradients) = with_gradient(parameters, |parameters| {
        let lifted = parameters.iter().zip(inputs);
        let lifted: Vec<Tensor> =
            lifted.map(|(p, x)| p.as_ref().map_or_else(|| x.clone(), |p| (**p).clone())).collect();
        match order {
            0 => scalar(trial, device, &lifted, 0),
            _ => pairing(trial, device, &self::gradients(trial, device, inputs, parameters, order - 1)?, 1 << 9),
        }
    })?;
    let of = |p: &Param| gradients.of(p).map_or_else(|| p.zeros_like(), |g| Ok(g.clone()));
    parameters.iter().flatten().map(of).collect()
}
