//! Values and gradients of the whole tensor surface against PyTorch's, in every dtype and memory layout.

use std::panic::{AssertUnwindSafe, catch_unwind};

use consort::nn::gradient_n;
use consort::prelude::*;
use integration::oracle::{Case, Expected, Layout, call, cases, host};
use integration::values;

const LAYOUTS: [Layout; 3] = [Layout::RowMajor, Layout::Reversed, Layout::Strided];

/// One case in one dtype with its inputs in one layout.
struct Run<'a> {
    case: &'a Case,
    device: &'a Device,
    dtype: DType,
    inputs: Vec<Tensor>,
}

impl<'a> Run<'a> {
    fn new(case: &'a Case, device: &'a Device, dtype: DType, layout: Layout) -> Result<Self> {
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

    /// What is wrong, in words.
    fn check(&self) -> Result<Vec<String>> {
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
        if matches!(self.dtype, DType::F64 | DType::F32) {
            let (first, second) = match self.leaves().len() {
                0 => (Ok(Vec::new()), Ok(Vec::new())),
                1 => self.both::<1>(),
                2 => self.both::<2>(),
                _ => self.both::<3>(),
            };
            compare("gradient", &first?, &case.gradients, 1);
            compare("second gradient", &second?, &case.second, 2);
        }
        Ok(wrong)
    }

    fn both<const N: usize>(&self) -> (Result<Vec<Tensor>>, Result<Vec<Tensor>>) {
        let first = if self.case.gradients.is_empty() { Ok(Vec::new()) } else { self.gradients::<N>() };
        let second = if self.case.second.is_empty() { Ok(Vec::new()) } else { self.second::<N>() };
        (first, second)
    }
}

/// Runs all checks and fails with what each one that failed says.
fn report<'a>(checks: impl Iterator<Item = (String, Box<dyn FnOnce() -> Result<Vec<String>> + 'a>)>) {
    std::panic::set_hook(Box::new(|_| {}));
    let (mut wrong, mut n) = (Vec::new(), 0);
    for (name, check) in checks {
        n += 1;
        let found = match catch_unwind(AssertUnwindSafe(check)) {
            Ok(Ok(found)) => found,
            Ok(Err(error)) => vec![format!("error: {error}")],
            Err(panic) => {
                let text = panic.downcast_ref::<String>().map(String::as_str);
                vec![format!("panic: {}", text.or(panic.downcast_ref::<&str>().copied()).unwrap_or("of another type"))]
            }
        };
        wrong.extend(found.into_iter().map(|text| format!("{name}: {text}")));
    }
    drop(std::panic::take_hook());
    assert!(wrong.is_empty(), "{} mistakes in {n} runs:\n{}", wrong.len(), wrong.join("\n"));
}

fn check_dtypes(dtypes: &[DType]) {
    let device = consort::device::cpu();
    let cases = cases();
    let runs = cases.iter().flat_map(|case| {
        let device = &device;
        let fits = move |dtype: &&DType| case.dtypes.contains(dtype) && case.inputs.iter().all(|x| x.is_exact(**dtype));
        dtypes.iter().filter(fits).flat_map(move |&dtype| {
            // Layouts differ only where there are axes.
            let n = if case.inputs.iter().all(|x| x.dims.is_empty()) { 1 } else { LAYOUTS.len() };
            LAYOUTS[..n].iter().map(move |&layout| {
                let name = format!("{} {dtype} {layout:?}", case.key());
                let check: Box<dyn FnOnce() -> _> = Box::new(move || Run::new(case, device, dtype, layout)?.check());
                (name, check)
            })
        })
    });
    report(runs);
}

#[test]
fn f64_agrees() {
    check_dtypes(&[DType::F64]);
}

#[test]
fn f32_agrees() {
    check_dtypes(&[DType::F32]);
}

#[test]
fn half_floats_agree() {
    check_dtypes(&[DType::F16, DType::BF16]);
}

#[test]
fn integers_agree() {
    check_dtypes(&[DType::I64, DType::I32, DType::U8]);
}

/// Inputs whose first axis has stride 0 give what their row-major copies give.
#[test]
fn repeated_inputs_agree_with_their_copies() {
    let device = consort::device::cpu();
    let cases = cases();
    let runs = cases.iter().flat_map(|case| {
        let device = &device;
        let fits = |dtype: &&DType| case.dtypes.contains(dtype) && case.inputs.iter().all(|x| x.is_exact(**dtype));
        case.dtypes.iter().find(fits).map(|&dtype| {
            let check: Box<dyn FnOnce() -> _> = Box::new(move || {
                let mut run = Run::new(case, device, dtype, Layout::RowMajor)?;
                for x in &mut run.inputs {
                    if x.rank() > 0 && x.dims()[0] > 0 {
                        *x = x.narrow(0, 0, 1)?.expand(x.shape())?;
                    }
                }
                let got = run.outputs(&run.leaves())?;
                run.inputs = run.inputs.iter().map(|x| x.contiguous()).collect::<Result<_>>()?;
                let want = run.outputs(&run.leaves())?;
                let pairs = got.iter().zip(&want).zip(&case.outputs).enumerate();
                Ok(pairs
                    .filter_map(|(i, ((got, want), expected))| {
                        let scale = values(want)
                            .iter()
                            .map(|v| v.abs())
                            .filter(|v| v.is_finite())
                            .fold(expected.scale, f64::max);
                        let want =
                            Expected { kind: expected.kind, dims: want.dims().to_vec(), values: values(want), scale };
                        let text = want.mistake(&values(got), dtype, case.terms)?;
                        Some(format!("output {i}: {text}"))
                    })
                    .collect())
            });
            (format!("{} {dtype}", case.key()), check)
        })
    });
    report(runs);
}

/// A result that is off by a little more than rounding is found, in every case.
#[test]
fn small_mistakes_are_noticed() {
    let mut missed = Vec::new();
    for case in cases() {
        let results = case.outputs.iter().map(|x| (x, 0));
        let results = results.chain(case.gradients.iter().map(|x| (x, 1))).chain(case.second.iter().map(|x| (x, 2)));
        for (dtype, error) in [(DType::F64, 1e-9), (DType::F32, 1e-2)] {
            for (expected, order) in results.clone().filter(|(x, _)| x.kind == 'f' && !x.values.is_empty()) {
                let is_moved = |v: &f64| v.is_finite() && v.abs() < 1e30;
                let Some(at) = expected.values.iter().rposition(is_moved) else { continue };
                let mut got = expected.values.clone();
                got[at] += error * got[at].abs().max(expected.scale).max(1e-30);
                if expected.mistake(&got, dtype, case.terms << order).is_none() {
                    missed.push(format!("{} {dtype}: order {order}", case.key()));
                }
            }
        }
    }
    assert!(missed.is_empty(), "{} mistakes missed:\n{}", missed.len(), missed.join("\n"));
}
