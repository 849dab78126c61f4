//! One device judged by another, op by op: for a run that goes wrong on one device and not on another.

use nn::Module;
use tensor_core::Device;

pub use conformance::lockstep::{Finding, Log, Options, Tally, Unjudged};

/// `candidate`, each of its results held to what `reference` gives for the same inputs; the first one that breaks an op's
/// contract is an error that names the op, the element, both values and the inputs, and saves these to a file.
///
/// ```
/// # fn main() -> consort::Result<()> {
/// use consort::{Tensor, device};
///
/// let device = device::lockstep(&device::cpu(), &device::best());
/// let x = Tensor::rand([3, 4], &device)?;
/// assert_eq!(x.matmul(&x.t()?)?.exp()?.dims(), [3, 3]); // each op was run twice
/// # Ok(())
/// # }
/// ```
pub fn device(reference: &Device, candidate: &Device) -> Device {
    conformance::lockstep::device(reference, candidate)
}

/// The same with options (to note breaches and go on, for instance), and what it saw.
pub fn with(reference: &Device, candidate: &Device, options: Options) -> (Device, Log) {
    conformance::lockstep::with(reference, candidate, options)
}

/// Lets breaches call the model's parameters by their paths, from now on and through optimizer steps.
pub fn name_parameters(log: &Log, model: &(impl Module + ?Sized)) {
    model.named_parameters().into_iter().for_each(|(path, parameter)| log.name(path, parameter));
}
