//! Values and gradients of the whole tensor surface against PyTorch's, in every dtype and memory layout.

use std::panic::{AssertUnwindSafe, catch_unwind};

use consort::prelude::*;
use integration::oracle::{Expected, Layout, Run, cases};
use integration::values;

const LAYOUTS: [Layout; 3] = [Layout::RowMajor, Layout::Reversed, Layout::Strided];

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

fn check_dtypes(device: &Device, dtypes: &[DType]) {
    let cases = cases();
    let runs = cases.iter().flat_map(|case| {
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
    check_dtypes(&consort::device::cpu(), &[DType::F64]);
}

#[test]
fn f32_agrees() {
    check_dtypes(&consort::device::cpu(), &[DType::F32]);
}

#[test]
fn half_floats_agree() {
    check_dtypes(&consort::device::cpu(), &[DType::F16, DType::BF16]);
}

#[test]
fn integers_agree() {
    check_dtypes(&consort::device::cpu(), &[DType::I64, DType::I32, DType::U8]);
}

/// The arbiter of all devices has an arbiter of its own.
#[test]
fn the_reference_agrees() {
    let reference = conformance::reference::device(consort::expr::Accuracy::default());
    check_dtypes(&reference, &[DType::F64, DType::F32, DType::I64, DType::I32, DType::U8]);
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
                let got = run.outputs_and_gradients()?;
                run.inputs = run.inputs.iter().map(|x| x.contiguous()).collect::<Result<_>>()?;
                let want = run.outputs_and_gradients()?;
                let expected = case.outputs.iter().chain(&case.gradients);
                let pairs = got.iter().zip(&want).zip(expected).enumerate();
                Ok(pairs
                    .filter_map(|(i, ((got, want), expected))| {
                        let sizes = values(want).into_iter().map(f64::abs).filter(|v| v.is_finite());
                        let scale = sizes.fold(expected.scale, f64::max);
                        let want =
                            Expected { kind: expected.kind, dims: want.dims().to_vec(), values: values(want), scale };
                        let text = want.mistake(&values(got), dtype, case.terms << 1)?;
                        Some(format!("result {i}: {text}"))
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
