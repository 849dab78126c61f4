//! Inputs on which other frameworks gave wrong results: kept for good, whatever the cases draw. Each names the report.

use tensor_core::expr::{Bounded, Value, ulp};
use tensor_core::{DType, Device, HostData, Result, Shape, Tensor};

use super::case::{Call, Trial};
use super::check::{CHECKS, Verdict, judge};
use super::input::{Fill, Input, Prepared, Source, floats, integers};
use super::probe;
use super::report::Failure;
use crate::compare::compare;

mod convolution;
mod elementwise;
mod fused;
mod index;
mod product;
mod reduce;

/// A case from a public report.
pub struct PublicBug {
    /// The case.
    pub name: &'static str,
    /// Where it was reported, as `project#number`.
    pub report: &'static str,
    /// The inputs.
    inputs: fn() -> Vec<Given>,
    /// What is called.
    run: Form,
    /// What is right.
    expect: Expect,
}

type Form = fn(&[Tensor]) -> Result<Vec<Tensor>>;

/// Values of an input, written out or by a rule.
struct Given {
    dims: Vec<usize>,
    dtype: DType,
    values: Vec<f64>,
}

/// What a case's outputs are held against.
enum Expect {
    /// The reference, forward and in its gradients.
    Reference,
    /// The same, whose outputs are these values.
    Values(&'static [&'static [f64]]),
    /// The reference's outputs for the same written out in simpler functions.
    Definition(Form),
    /// Sums of so many products that the reference would take too long for: each with the sum of its terms' sizes.
    Sums(usize, fn() -> Vec<(f64, f64)>),
}

/// Every case.
pub fn public_bugs() -> impl Iterator<Item = &'static PublicBug> {
    let families = [product::BUGS, reduce::BUGS, elementwise::BUGS, index::BUGS, convolution::BUGS, fused::BUGS];
    families.into_iter().flatten()
}

impl Given {
    /// Values in row-major order.
    fn new(dims: &[usize], dtype: DType, values: impl IntoIterator<Item = f64>) -> Self {
        Self { dims: dims.to_vec(), dtype, values: values.into_iter().collect() }
    }

    /// f(0), f(1), … in f32.
    fn by(dims: &[usize], f: impl Fn(f64) -> f64) -> Self {
        Self::new(dims, DType::F32, (0..dims.iter().product()).map(|i: usize| f(i as f64)))
    }

    fn host(&self) -> HostData {
        let values = self.values.iter().copied();
        if self.dtype.is_float() { floats(self.dtype, values) } else { integers(self.dtype, values.map(|v| v as i64)) }
    }
}

impl PublicBug {
    /// The dtype of its floats, or of its integers when it has none.
    pub fn dtype(&self) -> DType {
        (self.inputs)().iter().map(|x| x.dtype).find(|dtype| dtype.is_float()).unwrap_or(DType::I64)
    }

    /// Runs the case on a device.
    ///
    /// # Errors
    /// What is wrong there.
    pub fn run(&self, device: &Device) -> std::result::Result<(), Failure> {
        let (given, dtype) = ((self.inputs)(), self.dtype());
        let fail = |check: &str, message: String| Failure {
            op: format!("public bug {}", self.name),
            dtype: dtype.name().to_string(),
            check: check.to_string(),
            arguments: self.report.to_string(),
            message,
            case: String::new(),
        };
        let trial = self.trial(given, dtype).map_err(|error| fail("forward", format!("fails: {error}")))?;
        match &self.expect {
            Expect::Reference => checked(&trial, device, &fail),
            Expect::Values(values) => {
                checked(&trial, device, &fail)?;
                equal(&trial, device, values).map_err(|message| fail("values", message))
            }
            Expect::Definition(form) => {
                let reference = Trial::reference(device);
                let on = |device: &Device, form: Form| trial.inputs_on(device).and_then(|inputs| form(&inputs));
                passed(judge(device, (on(device, self.run), on(&reference, *form)), &trial.ops, false))
                    .map_err(|message| fail("forward", message))
            }
            Expect::Sums(n_terms, of) => {
                sums(&trial, device, *n_terms, &of()).map_err(|message| fail("forward", message))
            }
        }
    }

    fn trial(&self, given: Vec<Given>, dtype: DType) -> Result<Trial> {
        let inputs = given.iter().map(|x| match x.dtype {
            DType::Bool => Input::mask(&x.dims),
            index if !index.is_float() && dtype.is_float() => Input::index(&x.dims, 1, index),
            _ => Input::data(&x.dims),
        });
        let run = self.run;
        let call = Call::many(self.name, inputs.collect(), move |_, x| run(x));
        let ops = match self.expect {
            // Too large for more than one run.
            Expect::Sums(..) => Vec::new(),
            _ => probe::ops(&call, dtype)?,
        };
        let source = Source { fill: Fill::Domain, seed: 7, domain: (-2.0, 2.0), edges: &[] };
        let inputs = given.iter().map(|x| Prepared::given(x.host(), &x.dims)).collect();
        Ok(Trial { call, dtype, inputs, ops, source, n_choices: 0 })
    }
}

/// Every check of the suite.
fn checked(trial: &Trial, device: &Device, fail: &dyn Fn(&str, String) -> Failure) -> std::result::Result<(), Failure> {
    CHECKS.iter().try_for_each(|check| passed((check.run)(trial, device)).map_err(|message| fail(check.name, message)))
}

fn passed(verdict: Verdict) -> std::result::Result<(), String> {
    match verdict {
        Verdict::Passed(_) | Verdict::Inapplicable => Ok(()),
        Verdict::Unsupported(message) | Verdict::Failed(message) => Err(message),
    }
}

/// That the reference says the same as the report.
fn equal(trial: &Trial, device: &Device, values: &[&[f64]]) -> std::result::Result<(), String> {
    let reference = Trial::reference(device);
    let outputs = trial.inputs_on(&reference).and_then(|inputs| trial.run(&reference, &inputs));
    let outputs = outputs.map_err(|error| format!("the reference fails: {error}"))?;
    for (i, want) in values.iter().enumerate() {
        let got = outputs.get(i).ok_or_else(|| format!("output {i} is missing"))?;
        let got = got.to_host().map_err(|error| error.to_string())?.to_f64();
        let is_same = |(a, b): (&f64, &f64)| a == b || a.is_nan() && b.is_nan();
        if got.len() != want.len() || !got.iter().zip(*want).all(is_same) {
            return Err(format!("output {i}: the reference has {got:?}, the report {want:?}"));
        }
    }
    Ok(())
}

/// That the only output holds these sums, each off by at most K·ε·Σ|terms|.
fn sums(trial: &Trial, device: &Device, n_terms: usize, want: &[(f64, f64)]) -> std::result::Result<(), String> {
    let output = trial.inputs_on(device).and_then(|inputs| trial.run(device, &inputs));
    let output = output.map_err(|error| error.to_string())?.remove(0);
    let dtype = output.dtype();
    let cell = |&(value, magnitude): &(f64, f64)| {
        let error = n_terms as f64 * dtype.epsilon() * magnitude + 0.5 * ulp(value, dtype);
        Value::Real(Bounded { value, error })
    };
    let cells: Vec<_> = want.iter().map(cell).collect();
    let values = output.to_host().map_err(|error| error.to_string())?;
    compare(&values, &Shape::new(output.dims()), &cells, false).map(drop).map_err(|breach| breach.to_string())
}

/// Both ∂⟨form, weights⟩ and ⟨form, weights⟩ of the first input, the weights being the second.
fn slope(x: &[Tensor], form: impl Fn(&Tensor) -> Result<Tensor>) -> Result<Tensor> {
    nn::gradient(|x0| form(x0)?.mul(&x[1])?.sum(..), &x[0])
}
