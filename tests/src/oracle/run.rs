//! A case run on a device and compared with the table.

use consort::nn::gradient_n;
use consort::{DType, Device, Result, Tensor};

use super::{Case, Expected, Layout, call, host};
use crate::values;

/// One case in one dtype with its inputs in one layout.
pub struct Run<'a> {
    case: &'a Case,
    device: &'a Device,
    dtype: DType,
    /// The inputs as tensors; they may be replaced.
    pub inputs: Vec<Tensor>,
}

impl<'a> Run<'a> {
    /// Makes the inputs.
    ///
    /// # Errors
    /// What the device reports.
    pub fn new(case: &'a Case, device: &'a Device, dtype: DType, layout: Layout) -> Result<Self> {
        let inputs = case.inputs.iter().map(|x| x.tensor(dtype, layout, device)).collect::<Result<_>>()?;
        Ok(Self { case, device, dtype, inputs })
    }

    fn upload(&self, values: &[f64], dims: &[usize]) -> Result<Tensor> {
        Tensor::from_host(host(values, self.dtype).as_slice(), dims, self.device)
    }

    /// The outputs; `leaves` stand for the float inputs.
    fn outputs(&self, leaves: &[&Tensor]) -> Result<Vec<Tensor>> {
        let mut leaves = leaves.iter();
        let inputs: Vec<&Tensor> = self
            .inputs
            .iter()
            .zip(&self.case.inputs)
            .map(|(x, input)| if input.kind == 'f' { *leaves.next().expect("a leaf per float input") } else { x })
            .collect();
        call(&self.case.op, &self.case.args, &inputs, (self.device, self.dtype))
    }

    fn leaves(&self) -> Vec<&Tensor> {
        self.inputs.iter().zip(&self.case.inputs).filter(|(_, input)| input.kind == 'f').map(|(x, _)| x).collect()
    }

    /// ⟨first output, cotangent⟩.
    fn loss(&self, leaves: &[&Tensor]) -> Result<Tensor> {
        let y = self.outputs(leaves)?.remove(0);
        y.mul(&self.upload(&self.case.cotangent(), &self.case.outputs[0].dims)?)?.sum(..)
    }

    fn gradients<const N: usize>(&self) -> Result<Vec<Tensor>> {
        let leaves: [&Tensor; N] = self.leaves().try_into().expect("so many float inputs");
        Ok(gradient_n(|leaves| self.loss(&leaves), leaves)?.into())
    }

    /// The gradients of ⟨gradients, directions⟩.
    fn second<const N: usize>(&self) -> Result<Vec<Tensor>> {
        let leaves: [&Tensor; N] = self.leaves().try_into().expect("so many float inputs");
        let slope = |leaves: [&Tensor; N]| {
            let first = gradient_n(|leaves| self.loss(&leaves), leaves)?;
            let mut sum = Tensor::zeros((), (self.device, self.dtype))?;
            for (g, v) in first.iter().zip(self.case.directions()) {
                sum = sum.add(&g.mul(&self.upload(&v, g.dims())?)?.sum(..)?)?;
            }
            Ok(sum)
        };
        Ok(gradient_n(slope, leaves)?.into())
    }

    /// The outputs, then the gradients by the float inputs where the table has them.
    ///
    /// # Errors
    /// What the op reports.
    pub fn outputs_and_gradients(&self) -> Result<Vec<Tensor>> {
        let mut results = self.outputs(&self.leaves())?;
        results.extend(self.derivatives()?.0);
        Ok(results)
    }

    /// What is wrong with outputs and gradients, in words.
    ///
    /// # Errors
    /// What the op reports.
    pub fn check(&self) -> Result<Vec<String>> {
        let case = self.case;
        let mut wrong = Vec::new();
        let mut compare = |what: &str, got: &[Tensor], want: &[Expected], order: u32| {
            for (i, (got, want)) in got.iter().zip(want).enumerate() {
                let found = if got.dims() != want.dims || got.dtype() != want.dtype(self.dtype) {
                    Some(format!(
                        "got {:?} {}, want {:?} {}",
                        got.dims(),
                        got.dtype(),
                        want.dims,
                        want.dtype(self.dtype)
                    ))
                } else {
                    // Each derivative takes about as many operations more.
                    want.mistake(&values(got), self.dtype, case.terms << order)
                };
                wrong.extend(found.map(|text| format!("{what} {i}: {text}")));
            }
        };
        let outputs = self.outputs(&self.leaves())?;
        assert_eq!(outputs.len(), case.outputs.len(), "outputs");
        compare("output", &outputs, &case.outputs, 0);
        let (first, second) = self.derivatives()?;
        compare("gradient", &first, &case.gradients, 1);
        compare("second gradient", &second, &case.second, 2);
        Ok(wrong)
    }

    /// The gradients of first and second order that the table has.
    fn derivatives(&self) -> Result<(Vec<Tensor>, Vec<Tensor>)> {
        let n = self.leaves().len();
        let first = match n {
            _ if self.case.gradients.is_empty() => Vec::new(),
            1 => self.gradients::<1>()?,
            2 => self.gradients::<2>()?,
            _ => self.gradients::<3>()?,
        };
        let second = match n {
            _ if self.case.second.is_empty() => Vec::new(),
            1 => self.second::<1>()?,
            2 => self.second::<2>()?,
            _ => self.second::<3>()?,
        };
        Ok((first, second))
    }
}
