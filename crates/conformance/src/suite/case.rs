//! A case: one call of one function of the tensor surface, with inputs, on every device the same.

use std::fmt;
use std::str::FromStr;

use tensor_core::op::{Contract, Edge, Tolerance};
use tensor_core::{DType, Device, Op, Result, Tensor};

use super::draw::Draw;
use super::input::{Fill, Input, Layout, Prepared, Source};
use super::probe;
use crate::reference;

/// A function of the tensor surface that the suite calls.
pub struct Subject {
    /// Its name, as the method is spelt.
    pub name: &'static str,
    /// How it is called: `softmax(axis)`.
    pub signature: String,
    /// Makes a call from choices, for data of a dtype.
    pub draw: Box<dyn Fn(&mut Draw<'_>, DType) -> Call + Send + Sync>,
}

/// A device and the dtype of a case's data, for functions that create tensors.
pub type Place<'a> = (&'a Device, DType);

/// What runs on every device.
pub type Run = Box<dyn Fn(Place<'_>, &[Tensor]) -> Result<Vec<Tensor>> + Send + Sync>;

/// One call: inputs, and what is done with them.
pub struct Call {
    /// The arguments in words: `axis 1`.
    pub arguments: String,
    /// The inputs.
    pub inputs: Vec<Input>,
    /// The call; the outputs that it gives are judged.
    pub run: Run,
    /// Whether gradients are judged, too: where some inputs and outputs are floats.
    pub has_gradient: bool,
}

impl Call {
    /// A call with one output.
    pub fn new(
        arguments: impl Into<String>,
        inputs: Vec<Input>,
        run: impl Fn(&[Tensor]) -> Result<Tensor> + Send + Sync + 'static,
    ) -> Self {
        Self::many(arguments, inputs, move |_, x| Ok(vec![run(x)?]))
    }

    /// A call with any number of outputs, or one that creates tensors.
    pub fn many(
        arguments: impl Into<String>,
        inputs: Vec<Input>,
        run: impl Fn(Place<'_>, &[Tensor]) -> Result<Vec<Tensor>> + Send + Sync + 'static,
    ) -> Self {
        Self { arguments: arguments.into(), inputs, run: Box::new(run), has_gradient: true }
    }

    /// Gradients are not judged: where a slope is one of rounding.
    pub fn without_gradient(self) -> Self {
        Self { has_gradient: false, ..self }
    }
}

/// A case by its coordinates, which is how it is written down: `softmax f32 transposed 3.1.0.7`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    /// The subject's name.
    pub subject: String,
    /// The dtype of the data.
    pub dtype: DType,
    /// The layout of the first input; those of the others are drawn.
    pub layout: Layout,
    /// Everything else.
    pub choices: Vec<u16>,
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let used = self.choices.iter().rposition(|&c| c != 0).map_or(0, |last| last + 1);
        let choices: Vec<String> = self.choices[..used].iter().map(u16::to_string).collect();
        let choices = if choices.is_empty() { "0".to_string() } else { choices.join(".") };
        write!(f, "{} {} {} {choices}", self.subject, self.dtype, self.layout)
    }
}

impl FromStr for Case {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let wrong = || format!("not a case: {text:?}; write it as `softmax f32 transposed 3.1.0.7`");
        let [subject, dtype, layout, choices] = text.split_whitespace().collect::<Vec<_>>()[..] else {
            return Err(wrong());
        };
        let dtype = DType::ALL.into_iter().find(|d| d.name() == dtype).ok_or_else(wrong)?;
        let layout = Layout::ALL.into_iter().find(|l| l.name() == layout).ok_or_else(wrong)?;
        let choices = choices.split('.').map(str::parse).collect::<std::result::Result<_, _>>().map_err(|_| wrong())?;
        Ok(Self { subject: subject.to_string(), dtype, layout, choices })
    }
}

/// A case with its inputs' values, ready to run on a device and on the reference.
pub struct Trial {
    /// What is called.
    pub call: Call,
    /// The dtype of the data.
    pub dtype: DType,
    /// The inputs' values.
    pub inputs: Vec<Prepared>,
    /// The ops that the call executes.
    pub ops: Vec<Op>,
    /// Which numbers the inputs and cotangents hold.
    pub source: Source,
    /// How many of the case's choices mattered.
    pub n_choices: usize,
}

impl Trial {
    /// The case's call with its values.
    ///
    /// # Errors
    /// What core rejects the call for.
    pub fn new(subject: &Subject, case: &Case) -> Result<Self> {
        let mut draw = Draw::new(&case.choices);
        let fill = draw.pick(&[Fill::Integers, Fill::Domain, Fill::Edges, Fill::Domain]);
        let seed = draw.below(1 << 16) as u64;
        let others = draw.below(1 << 12);
        let call = (subject.draw)(&mut draw, case.dtype);
        let ops = probe::ops(&call, case.dtype)?;
        let contracts: Vec<Contract> = ops.iter().map(|op| op.record().contract()).collect();
        let source = Source {
            fill,
            seed,
            domain: contracts.first().map_or((-4.0, 4.0), |c| c.domain),
            edges: edges(&contracts),
        };
        let layout = |i: usize| {
            let first = Layout::ALL.iter().position(|&l| l == case.layout).unwrap_or(0);
            let shift = if i == 0 { 0 } else { others >> (3 * (i - 1) % 12) };
            Layout::ALL[(first + shift) % Layout::ALL.len()]
        };
        let prepare = |(i, input)| Prepared::new(input, case.dtype, layout(i), &source, i as u64);
        let inputs = call.inputs.iter().enumerate().map(prepare).collect();
        Ok(Self { call, dtype: case.dtype, inputs, ops, source, n_choices: draw.used() })
    }

    /// Whether results must be exact because all sums are of small integers.
    pub fn is_integral(&self) -> bool {
        let is_exact = |op: &Op| match op {
            Op::Reduce(op) if !op.producer.is_identity() => false,
            op => matches!(op.record().contract().tolerance, Tolerance::Exact | Tolerance::Sum { .. }),
        };
        // Of several sums the later ones may be of what is no integer any more.
        let is_sum = |op: &&Op| matches!(op.record().contract().tolerance, Tolerance::Sum { .. });
        let n_sums = self.ops.iter().filter(is_sum).count();
        self.source.fill == Fill::Integers && n_sums <= 1 && self.ops.iter().all(is_exact)
    }

    /// The inputs on a device.
    ///
    /// # Errors
    /// What the device reports.
    pub fn inputs_on(&self, device: &Device) -> Result<Vec<Tensor>> {
        self.inputs.iter().map(|input| input.on(device)).collect()
    }

    /// The outputs for inputs on a device.
    ///
    /// # Errors
    /// What the call reports.
    pub fn run(&self, device: &Device, inputs: &[Tensor]) -> Result<Vec<Tensor>> {
        (self.call.run)((device, self.dtype), inputs)
    }

    /// The call in words: `f32 [2, 3], i64 [2], axis 1`.
    pub fn described(&self) -> String {
        let inputs = self.call.inputs.iter().map(|x| format!("{} {:?}", x.dtype(self.dtype), x.dims));
        let arguments = Some(self.call.arguments.clone()).filter(|a| !a.is_empty());
        inputs.chain(arguments).collect::<Vec<_>>().join(", ")
    }

    /// The reference for a device's accuracy.
    pub fn reference(device: &Device) -> Device {
        reference::device(device.info().accuracy)
    }
}

/// The special values of the first contract that no other one excludes.
fn edges(contracts: &[Contract]) -> &'static [Edge] {
    let strictest = contracts.iter().map(|c| c.edges).min_by_key(|edges| edges.len());
    strictest.unwrap_or(&[])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_is_read_back_as_it_is_written() {
        for text in ["softmax f32 transposed 3.1.0.7", "add bool sliced 0"] {
            assert_eq!(text.parse::<Case>().expect("a case").to_string(), text);
        }
        let error = "softmax f33 transposed 0".parse::<Case>().expect_err("no such dtype");
        assert!(error.starts_with("not a case: \"softmax f33 transposed 0\""), "{error}");
    }
}
