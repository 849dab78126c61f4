//! What the tests share: tensors of known numbers, and the check of a gradient against differences.

use nn::{gradient, numerical_gradient};
use tensor_core::{DType, Device, IntoShape, Result, Tensor};

pub(crate) fn device() -> Device {
    backend_cpu::device()
}

/// An f64 tensor.
pub(crate) fn tensor(values: &[f64], shape: impl IntoShape) -> Tensor {
    Tensor::from_slice(values, shape, &device()).unwrap()
}

pub(crate) fn indices(values: &[i64], shape: impl IntoShape) -> Tensor {
    Tensor::from_slice(values, shape, &device()).unwrap()
}

pub(crate) fn values(x: &Tensor) -> Vec<f64> {
    x.cast(DType::F64).unwrap().to_vec().unwrap()
}

/// Numbers spread over an interval without pattern; the same for the same seed.
pub(crate) fn spread(shape: &[usize], low: f64, high: f64, seed: u64) -> Tensor {
    let n: usize = shape.iter().product();
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let values: Vec<f64> = (0..n)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            low + (high - low) * ((state >> 11) as f64 / (1u64 << 53) as f64)
        })
        .collect();
    tensor(&values, shape)
}

#[track_caller]
pub(crate) fn assert_close(name: &str, got: &Tensor, expected: &Tensor, tolerance: f64) {
    assert_eq!(got.shape(), expected.shape(), "{name}: shape");
    for (i, (g, e)) in values(got).into_iter().zip(values(expected)).enumerate() {
        let is_close = (g - e).abs() <= tolerance * (1.0 + e.abs()) || (g.is_nan() && e.is_nan());
        assert!(is_close, "{name}: element {i}: got {g}, expected {e}");
    }
}

#[track_caller]
pub(crate) fn assert_values(name: &str, got: &Tensor, expected: &[f64]) {
    assert_close(name, got, &tensor(expected, got.shape()), 1e-9);
}

/// A function of tensors, and where it is differentiated.
pub(crate) struct Case {
    pub name: &'static str,
    pub inputs: Vec<Tensor>,
    pub f: Box<dyn Fn(&[Tensor]) -> Result<Tensor>>,
}

/// Checks first and second derivatives by every input against differences.
///
/// The loss weighs every element of the result differently, so that a gradient in the wrong place shows.
#[track_caller]
pub(crate) fn check(case: &Case) {
    for i in 0..case.inputs.len() {
        let at = |x: &Tensor| {
            let mut inputs = case.inputs.clone();
            inputs[i] = x.clone();
            inputs
        };
        let loss = |x: &Tensor| -> Result<Tensor> {
            let y = (case.f)(&at(x))?;
            y.mul(&spread(y.dims(), 0.5, 1.5, 7))?.sum(..)
        };
        let x = &case.inputs[i];
        let name = format!("{} by input {i}", case.name);
        let first = gradient(loss, x).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert_close(&name, &first, &numerical_gradient(loss, x).unwrap(), 2e-7);

        // Every input takes part in the second derivatives, the mixed ones too.
        let slope = |inputs: &[Tensor]| -> Result<Tensor> {
            let loss = |x: &Tensor| -> Result<Tensor> {
                let mut inputs = inputs.to_vec();
                inputs[i] = x.clone();
                let y = (case.f)(&inputs)?;
                y.mul(&spread(y.dims(), 0.5, 1.5, 7))?.sum(..)
            };
            let g = gradient(loss, &inputs[i])?;
            g.mul(&spread(g.dims(), -1.0, 1.0, 11))?.sum(..)
        };
        for j in 0..case.inputs.len() {
            let along = |x: &Tensor| {
                let mut inputs = case.inputs.clone();
                inputs[j] = x.clone();
                slope(&inputs)
            };
            let name = format!("{name}, then by input {j}");
            let second = gradient(along, &case.inputs[j]).unwrap_or_else(|e| panic!("{name}: {e}"));
            assert_close(&name, &second, &numerical_gradient(along, &case.inputs[j]).unwrap(), 1e-6);
        }
    }
}
