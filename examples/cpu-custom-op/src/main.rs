//! An op of one's own, twice: as a Rust closure with a derivative written by hand, and as a formula.
//!
//! The op is the length of a vector (a, b), h = √(a² + b²). As a formula it is one line, runs on every device and is
//! differentiated for you; prefer that wherever the op is elementwise. A closure can do anything that Rust can, here
//! `f64::hypot`, which does not overflow where a² would, and its derivative can be chosen at the one point where the
//! formula has none: (0, 0).
//!
//! Run it with `cargo run -p cpu-custom-op`.
#![forbid(unsafe_code)]

use std::sync::Arc;

use consort::op::{CustomKernel, HostArray, Meta, Metas};
use consort::prelude::*;
use consort::{CustomOp, HostData, Kind, device, nn};

/// h = √(a² + b²) of two tensors of one shape, in f64 or f32.
///
/// dh/da = a/h and dh/db = b/h; 0 where h is 0.
#[derive(Debug)]
struct Hypot;

impl CustomOp for Hypot {
    fn name(&self) -> &str {
        "hypot"
    }

    // Shapes and dtypes are settled before a kernel runs: what is let through here is all that it will see.
    fn infer(&self, inputs: &[Meta]) -> Result<Metas> {
        match inputs {
            [a, b] if a == b && matches!(a.dtype, DType::F64 | DType::F32) => Ok([a.clone()].into_iter().collect()),
            _ => Err(Error::shape("hypot", format!("takes two f64 or f32 tensors of one shape: inputs {inputs:?}"))),
        }
    }

    // One kernel per kind of device; this op has none for GPUs, and says so there.
    fn kernel(&self, kind: Kind) -> Option<CustomKernel> {
        (kind == Kind::Cpu).then(|| CustomKernel::Rust(Arc::new(lengths)))
    }

    // Written with tensor ops: it runs wherever they do, and can be differentiated again.
    fn derivative(&self, inputs: &[&Tensor], outputs: &[Tensor], grads: &[Tensor]) -> Result<Vec<Option<Tensor>>> {
        let (h, grad) = (&outputs[0], &grads[0]);
        let safe = h.eq(0)?.select(1, h)?;
        inputs.iter().map(|x| Ok(Some(x.div(&safe)?.mul(grad)?))).collect()
    }
}

/// The kernel: values in, values out, row-major.
fn lengths(inputs: &[HostArray], _outputs: &[Meta]) -> Result<Vec<HostData>> {
    let lengths = match (&inputs[0].data, &inputs[1].data) {
        (HostData::F64(a), HostData::F64(b)) => HostData::F64(a.iter().zip(b).map(|(a, b)| a.hypot(*b)).collect()),
        (HostData::F32(a), HostData::F32(b)) => HostData::F32(a.iter().zip(b).map(|(a, b)| a.hypot(*b)).collect()),
        _ => return Err(Error::dtype("hypot", "there is a kernel for f64 and f32 only")),
    };
    Ok(vec![lengths])
}

/// The op as a closure.
fn hypot(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    Ok(consort::custom(Arc::new(Hypot), &[a, b])?.remove(0))
}

/// The op as a formula.
fn hypot_formula(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    consort::zip(a, b, |a, b| (a * a + b * b).sqrt())
}

fn main() -> Result<()> {
    let device = device::cpu();
    let a = Tensor::from_vec(vec![3.0f64, -5.0, 0.5, 1e-3], [4], &device)?;
    let b = Tensor::from_vec(vec![4.0f64, 12.0, -0.5, 2.0], [4], &device)?;

    // Any loss will do; this one makes the incoming gradient differ from element to element.
    let loss = |h: Tensor| h.square()?.mul(&h)?.sum(..);
    let by_closure = nn::gradient(|a| loss(hypot(a, &b)?), &a)?;
    let by_formula = nn::gradient(|a| loss(hypot_formula(a, &b)?), &a)?;
    let by_differences = nn::numerical_gradient(|a| loss(hypot(a, &b)?), &a)?;

    println!("       a        b        h  d(Σh³)/da: closure      formula  differences");
    let columns = [&a, &b, &hypot(&a, &b)?, &by_closure, &by_formula, &by_differences];
    let columns = columns.map(|column| column.to_vec::<f64>());
    let [a_, b_, h, closure, formula, differences] = columns;
    let (a_, b_, h, closure, formula, differences) = (a_?, b_?, h?, closure?, formula?, differences?);
    for i in 0..a.len() {
        println!(
            "{:8.3} {:8.3} {:8.3} {:18.6} {:12.6} {:12.6}",
            a_[i], b_[i], h[i], closure[i], formula[i], differences[i]
        );
    }
    agree("closure and formula", &by_closure, &by_formula, 1e-12)?;
    agree("closure and differences", &by_closure, &by_differences, 1e-7)?;

    // The closure's derivative is made of tensor ops, so the second derivative is there too.
    let second = nn::gradient(|a| nn::gradient(|a| hypot(a, &b)?.sum(..), a)?.sum(..), &a)?;
    let second_formula = nn::gradient(|a| nn::gradient(|a| hypot_formula(a, &b)?.sum(..), a)?.sum(..), &a)?;
    agree("second derivatives", &second, &second_formula, 1e-12)?;

    // Where the two differ: numbers whose squares overflow, and the point without a derivative.
    let huge = Tensor::full([1], 1e200, (&device, DType::F64))?;
    let zero = Tensor::zeros([1], (&device, DType::F64))?;
    println!(
        "hypot(1e200, 1e200): closure {:e}, formula {:e}",
        value(&hypot(&huge, &huge)?)?,
        value(&hypot_formula(&huge, &huge)?)?
    );
    let slope = |f: fn(&Tensor, &Tensor) -> Result<Tensor>| value(&nn::gradient(|a| f(a, &zero)?.sum(..), &zero)?);
    println!("dh/da at (0, 0): closure {}, formula {}", slope(hypot)?, slope(hypot_formula)?);
    Ok(())
}

fn value(x: &Tensor) -> Result<f64> {
    x.item()
}

/// Says that two tensors agree, or fails.
fn agree(what: &str, a: &Tensor, b: &Tensor, tolerance: f64) -> Result<()> {
    if !a.allclose(b, tolerance, tolerance)? {
        return Err(Error::value("agree", format!("{what} differ: {a} and {b}")));
    }
    println!("{what} agree to {tolerance:e}");
    Ok(())
}
