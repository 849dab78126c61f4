//! What the tape holds, and that it lets go.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};

use nn::{Forward, Module, Param, checkpoint, gradient, with_gradient};
use tensor_core::op::{CustomKernel, CustomOp, HostArray};
use tensor_core::{DType, Device, Error, Kind, Meta, Metas, Result, Tensor, custom};

const N: usize = 1 << 16;
const BYTES: usize = N * size_of::<f64>();

/// A device with memory of its own, and a vector on it.
fn fresh() -> (Device, Tensor) {
    let (device, _) = backend_cpu::test_device("memory", 0);
    let x = Tensor::full([N], 0.5, (&device, DType::F64)).unwrap();
    (device, x)
}

/// How many vectors the device holds, to the nearest half.
fn vectors(device: &Device) -> f64 {
    (device.memory().unwrap().used_bytes as f64 / BYTES as f64 * 2.0).round() / 2.0
}

#[derive(Module, Clone, Debug)]
struct Scale(Param);

impl Forward for Scale {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        x.mul(&self.0)
    }
}

#[test]
fn nothing_outlives_the_call() {
    let (device, x) = fresh();
    let model = Scale(Param::new(x.clone()));
    let before = device.memory().unwrap().used_bytes;
    let deep = |m: &Scale| {
        let mut y = x.clone();
        for _ in 0..5 {
            y = m.forward(&y)?.tanh()?;
        }
        y.sum(..)
    };
    for _ in 0..3 {
        drop(with_gradient(&model, deep).unwrap());
        assert_eq!(device.memory().unwrap().used_bytes, before, "after a success");
    }
    with_gradient(&model, |m| deep(m).and(Err::<Tensor, _>(Error::other("test", "fails")))).unwrap_err();
    assert_eq!(device.memory().unwrap().used_bytes, before, "after an error");
    let panics = |m: &Scale| -> Result<Tensor> {
        let _held = deep(m)?;
        panic!("in the closure")
    };
    catch_unwind(AssertUnwindSafe(|| with_gradient(&model, panics))).unwrap_err();
    assert_eq!(device.memory().unwrap().used_bytes, before, "after a panic");
    let held = model.clone();
    let recomputed = |m: &Scale| {
        let m = m.clone();
        checkpoint(move |x| m.forward(x)?.tanh(), &x)?.sum(..)
    };
    drop(with_gradient(&held, recomputed).unwrap());
    assert_eq!(device.memory().unwrap().used_bytes, before, "after a checkpoint");
    drop(gradient(|x| gradient(|x| x.exp()?.sum(..), x)?.sum(..), &x).unwrap());
    assert_eq!(device.memory().unwrap().used_bytes, before, "after a nested gradient");
}

/// A parameter's storage has one owner again, so that an optimizer can update it in place.
#[test]
fn parameters_are_unshared_afterwards() {
    let (device, x) = fresh();
    let mut model = Scale(Param::new(Tensor::ones([N], (&device, DType::F64)).unwrap()));
    let (loss, grads) = with_gradient(&model, |m| m.forward(&x)?.square()?.sum(..)).unwrap();
    assert!(model.0.value_mut().unique_storage().is_some());
    drop((loss, grads));
}

/// The tape keeps what the derivatives read and no more.
#[test]
fn only_what_a_rule_reads_is_kept() {
    let check = |name: &str, f: fn(&Tensor) -> Result<Tensor>, kept: f64| {
        let (device, x) = fresh();
        let held = |x: &Tensor| {
            let before = vectors(&device);
            let y = f(x)?;
            let held = vectors(&device) - before - 1.0;
            assert_eq!(held, kept, "{name}: vectors besides the result");
            y.sum(..)
        };
        gradient(held, &x).unwrap();
    };
    check("sums", |x| x.add(1.0)?.add(x)?.sub(2.0)?.neg(), 0.0);
    check("scaling", |x| x.mul(2.0)?.mul(3.0)?.mul(4.0), 0.0);
    // Each reads its input: the first one's is x itself.
    check("three exponentials", |x| x.exp()?.exp()?.exp(), 2.0);
    // Of a product with a constant the constant is read.
    check("products with constants", |x| x.add(1.0)?.mul(&nn::stop_gradient(x))?.mul(&nn::stop_gradient(x)), 0.0);
    // Moved views share their storage.
    check("movements", |x| x.add(1.0)?.reshape([2, -1])?.t()?.reshape(-1), 0.0);
    check("softmax reads its result", |x| x.add(1.0)?.reshape([1, -1])?.softmax(1)?.reshape(-1), 0.0);
    check("what does not reach a float", |x| x.exp()?.floor()?.add(x), 0.0);
    check("a checkpoint keeps its input", |x| checkpoint(|x| x.exp()?.exp()?.exp()?.exp(), &x.exp()?), 1.0);
}

/// The identity, which notes what the device holds when its gradient is taken.
#[derive(Debug)]
struct Probe {
    device: Device,
    seen: Mutex<f64>,
}

impl CustomOp for Probe {
    fn name(&self) -> &str {
        "probe"
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Metas> {
        Ok(inputs.iter().cloned().collect())
    }

    fn kernel(&self, _: Kind) -> Option<CustomKernel> {
        Some(CustomKernel::Rust(Arc::new(|inputs: &[HostArray], _: &[Meta]| Ok(vec![inputs[0].data.clone()]))))
    }

    fn derivative(&self, _: &[&Tensor], _: &[Tensor], grads: &[Tensor]) -> Result<Vec<Option<Tensor>>> {
        *self.seen.lock().unwrap() = vectors(&self.device);
        Ok(vec![Some(grads[0].clone())])
    }
}

/// When the walk comes to the first step, those after it are gone.
#[test]
fn memory_is_freed_as_the_tape_unwinds() {
    let (device, x) = fresh();
    let probe = Arc::new(Probe { device: device.clone(), seen: Mutex::new(0.0) });
    let n = 16;
    let f = |x: &Tensor| {
        let mut y = custom(probe.clone(), &[x])?.remove(0);
        for _ in 0..n {
            y = y.sin()?;
        }
        y = y.sum(..)?;
        assert_eq!(vectors(&device), f64::from(n + 1), "x and every step but the last, which the sum does not read");
        Ok(y)
    };
    gradient(f, &x).unwrap();
    assert_eq!(*probe.seen.lock().unwrap(), 3.0, "x, the probe's result and the gradient");
}
