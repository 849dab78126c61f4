//! Bad input to every op of the oracle: it is computed or refused with a well-formed error, and never a panic.

use std::panic::{AssertUnwindSafe, catch_unwind};

use consort::nn::gradient;
use consort::prelude::*;
use integration::oracle::{Args, Case, Layout, call, cases};

/// What the error's text breaks of `{op}: {rule}: {operand} {value}[; {remedy}]`.
fn fault(text: &str) -> Option<&'static str> {
    let first = text.chars().next();
    match () {
        () if !first.is_some_and(|c| c.is_ascii_lowercase()) => Some("does not start in lower case"),
        () if !text.contains(": ") => Some("names no op"),
        () if text.ends_with('.') => Some("ends with a dot"),
        () if text.contains("invariant") || text.contains("unreachable") => Some("speaks of the inside"),
        () if text.contains('\n') || text.contains("  ") => Some("is not one clean line"),
        () => None,
    }
}

/// Runs an attempt on a case and notes what is wrong with how it ends.
struct Attempts {
    device: Device,
    n_refused: usize,
    n_computed: usize,
    wrong: Vec<String>,
}

impl Attempts {
    fn new() -> Self {
        std::panic::set_hook(Box::new(|_| {}));
        Self { device: consort::device::cpu(), n_refused: 0, n_computed: 0, wrong: Vec::new() }
    }

    /// The case's inputs in the first dtype that it is for.
    fn inputs(&self, case: &Case) -> (Vec<Tensor>, DType) {
        let fits = |dtype: &&DType| case.inputs.iter().all(|x| x.is_exact(**dtype));
        let dtype = *case.dtypes.iter().find(fits).expect("some dtype holds the inputs");
        let make = |x: &integration::oracle::Input| x.tensor(dtype, Layout::RowMajor, &self.device).expect("an input");
        (case.inputs.iter().map(make).collect(), dtype)
    }

    /// Calls the op on these inputs, and takes its gradient by the float ones; true if it was computed.
    fn call(&mut self, what: &str, case: &Case, args: &Args, inputs: &[Tensor], dtype: DType) -> bool {
        let attempt = || -> Result<()> {
            let run = |inputs: &[&Tensor]| call(&case.op, args, inputs, (&self.device, dtype));
            let all: Vec<&Tensor> = inputs.iter().collect();
            let outputs = run(&all)?;
            for y in &outputs {
                y.to_host()?;
            }
            for i in (0..all.len()).filter(|&i| all[i].dtype().is_float() && outputs[0].dtype().is_float()) {
                let slope = gradient(
                    |x| {
                        let mut all = all.clone();
                        all[i] = x;
                        run(&all)?[0].sum(..)
                    },
                    all[i],
                )?;
                assert_eq!(slope.dims(), all[i].dims(), "the gradient's shape");
                slope.to_host()?;
            }
            Ok(())
        };
        match catch_unwind(AssertUnwindSafe(attempt)) {
            Ok(Ok(())) => {
                self.n_computed += 1;
                return true;
            }
            Ok(Err(error)) => {
                self.n_refused += 1;
                let text = error.to_string();
                self.wrong.extend(fault(&text).map(|fault| format!("{} {what}: {fault}: {text}", case.key())));
            }
            Err(panic) => {
                let text = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
                self.wrong.push(format!("{} {what}: panic: {}", case.key(), text.unwrap_or("of another type")));
            }
        }
        false
    }

    fn finish(self) {
        drop(std::panic::take_hook());
        let n = self.n_computed + self.n_refused;
        assert!(self.wrong.is_empty(), "{} of {n} attempts end badly:\n{}", self.wrong.len(), self.wrong.join("\n"));
        assert!(self.n_refused > 0, "nothing was refused in {n} attempts");
    }
}

/// The inputs with one of them replaced.
fn replaced(inputs: &[Tensor], i: usize, x: Tensor) -> Vec<Tensor> {
    let mut inputs = inputs.to_vec();
    inputs[i] = x;
    inputs
}

#[test]
fn empty_inputs_are_computed_or_refused() -> Result<()> {
    let mut attempts = Attempts::new();
    for case in cases() {
        let (inputs, dtype) = attempts.inputs(&case);
        for (i, x) in inputs.iter().enumerate() {
            for axis in 0..x.rank() {
                let what = format!("with input {i} empty along {axis}");
                attempts.call(&what, &case, &case.args, &replaced(&inputs, i, x.narrow(axis, 0, 0)?), dtype);
            }
        }
        // All inputs of one shape at once.
        for axis in 0..inputs.first().map_or(0, Tensor::rank) {
            let shape = inputs[0].shape();
            let empty = |x: &Tensor| if x.shape() == shape { x.narrow(axis, 0, 0) } else { Ok(x.clone()) };
            let empty = inputs.iter().map(empty).collect::<Result<Vec<_>>>()?;
            attempts.call(&format!("with all inputs empty along {axis}"), &case, &case.args, &empty, dtype);
        }
    }
    attempts.finish();
    Ok(())
}

#[test]
fn other_shapes_are_computed_or_refused() -> Result<()> {
    let mut attempts = Attempts::new();
    for case in cases() {
        let (inputs, dtype) = attempts.inputs(&case);
        for (i, x) in inputs.iter().enumerate() {
            let mut forms = vec![("with an axis more", x.unsqueeze(0)?), ("flat", x.reshape(-1)?)];
            forms.push(("with an axis more at the end", x.unsqueeze(-1)?));
            for axis in 0..x.rank() {
                forms.push(("shorter", x.narrow(axis, 0, x.dims()[axis].saturating_sub(1))?));
                forms.push(("longer", Tensor::cat(&[x, x], axis)?));
            }
            for (form, other) in forms {
                let what = format!("with input {i} {form}: {}", other.shape());
                attempts.call(&what, &case, &case.args, &replaced(&inputs, i, other), dtype);
            }
        }
    }
    attempts.finish();
    Ok(())
}

#[test]
fn other_dtypes_are_computed_or_refused() -> Result<()> {
    let mut attempts = Attempts::new();
    for case in cases() {
        let (inputs, dtype) = attempts.inputs(&case);
        for (i, x) in inputs.iter().enumerate() {
            for other in DType::ALL {
                let what = format!("with input {i} of {other}");
                attempts.call(&what, &case, &case.args, &replaced(&inputs, i, x.cast(other)?), dtype);
            }
        }
        for other in DType::ALL {
            let all = inputs.iter().map(|x| x.cast(other)).collect::<Result<Vec<_>>>()?;
            attempts.call(&format!("with all inputs of {other}"), &case, &case.args, &all, other);
        }
    }
    attempts.finish();
    Ok(())
}

#[test]
fn other_arguments_are_computed_or_refused() {
    let mut attempts = Attempts::new();
    for case in cases() {
        let (inputs, dtype) = attempts.inputs(&case);
        for (what, args) in case.args.distorted() {
            attempts.call(&format!("with {what}"), &case, &args, &inputs, dtype);
        }
    }
    attempts.finish();
}

/// An operand elsewhere is always refused, by name.
#[test]
fn operands_on_two_devices_are_refused() -> Result<()> {
    let (there, _) = backend_cpu::test_device("there", 0);
    let mut attempts = Attempts::new();
    for case in cases().iter().filter(|case| case.inputs.len() > 1) {
        let (inputs, dtype) = attempts.inputs(case);
        for i in 0..inputs.len() {
            let mixed = replaced(&inputs, i, inputs[i].to(&there)?);
            let mixed: Vec<&Tensor> = mixed.iter().collect();
            let text = match call(&case.op, &case.args, &mixed, (&attempts.device, dtype)) {
                Ok(_) => "no error".to_string(),
                Err(error) => error.to_string(),
            };
            let is_named =
                text.contains("there:0") && text.contains("cpu") && text.ends_with("; move one with .to(&device)");
            // The shape of an operand is not on any device.
            if !is_named && case.op != "expand_as" {
                attempts.wrong.push(format!("{} with input {i} elsewhere: {text}", case.key()));
            }
            attempts.n_refused += 1;
        }
    }
    attempts.finish();
    Ok(())
}
