//! Values against the reference; the same bits again, whatever memory held before; inputs as they were.

use tensor_core::{Device, Result, Tensor};

use super::{Verdict, all_bits, judge};
use crate::suite::case::Trial;

pub(super) fn check(trial: &Trial, device: &Device) -> Verdict {
    let reference = Trial::reference(device);
    let inputs = match trial.inputs_on(device) {
        Ok(inputs) => inputs,
        Err(error) if error.is_unsupported() => return Verdict::Unsupported(error.to_string()),
        Err(error) => return Verdict::Failed(format!("the inputs cannot be put on the device: {error}")),
    };
    let want = trial.inputs_on(&reference).and_then(|inputs| trial.run(&reference, &inputs));
    // A call that fails is judged by its error.
    if let Ok(Some(failure)) = again(trial, device, &inputs) {
        return Verdict::Failed(failure);
    }
    judge(device, (trial.run(device, &inputs), want), &trial.ops, trial.is_integral())
}

/// What differs between two runs, between which memory is filled with something else; or in the inputs after them.
fn again(trial: &Trial, device: &Device, inputs: &[Tensor]) -> Result<Option<String>> {
    let before = all_bits(inputs)?;
    let outputs = trial.run(device, inputs)?;
    let first = all_bits(&outputs)?;
    let sentinels = [-77.0, 33.0].map(|value| {
        outputs.iter().map(move |y| Tensor::full(y.shape(), value, (device, y.dtype()))).collect::<Result<Vec<_>>>()
    });
    // The buffers go back to the device, which may hand them out again as they are.
    drop(sentinels);
    drop(outputs);
    let second = all_bits(&trial.run(device, inputs)?)?;
    if let Some(i) = (0..first.len()).find(|&i| first[i] != second[i]) {
        let element = first[i].iter().zip(&second[i]).position(|(a, b)| a != b).unwrap_or(0);
        return Ok(Some(format!("output {i}: element {element} has other bits in a second run")));
    }
    let after = all_bits(inputs)?;
    Ok((0..before.len()).find(|&i| before[i] != after[i]).map(|i| format!("input {i} is changed by the call")))
}
