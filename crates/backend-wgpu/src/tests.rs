//! Every kernel passes the compiler's front end, on a machine without any adapter: wgpu has one that does nothing.

use std::sync::Arc;

use conformance::suite::{Case, Layout, Trial, subjects};
use tensor_core::{DType, Device, Result, Tensor};

use crate::device::{adapters, backend, device};

/// A device that compiles kernels as far as WGSL is checked, and runs nothing.
fn idle(is_modest: bool) -> Device {
    let adapter = adapters(wgpu::Backends::NOOP).pop().expect("wgpu's own adapter that does nothing");
    device(&adapter, 0, is_modest).expect("it takes any features and limits")
}

/// The calls of every function of the tensor surface, in its dtypes: forward and backward.
fn compile_all(device: &Device) -> Vec<String> {
    let mut refused = Vec::new();
    // A kernel of a user's own may be refused.
    for subject in subjects().iter().filter(|subject| subject.name != "custom") {
        for dtype in DType::ALL {
            for (k, layout) in [Layout::Contiguous, Layout::Transposed].into_iter().enumerate() {
                let choices = (0..12).map(|i| (7919 * (i + k as u32 + 1) % 65_521) as u16).collect();
                let case = Case { subject: subject.name.to_string(), dtype, layout, choices };
                let Ok(trial) = Trial::new(subject, &case) else { continue };
                for text in [forward(device, &trial).err(), backward(device, &trial).err()].into_iter().flatten() {
                    if text.to_string().contains("refuses the kernel") {
                        refused.push(format!("{case}: {text}"));
                    }
                }
            }
        }
    }
    refused
}

fn forward(device: &Device, trial: &Trial) -> Result<Vec<Tensor>> {
    trial.run(device, &trial.inputs_on(device)?)
}

/// The gradients by the first input that is a float, where there is one.
fn backward(device: &Device, trial: &Trial) -> Result<Tensor> {
    let inputs = trial.inputs_on(device)?;
    let Some(k) = inputs.iter().position(|x| x.dtype().is_float()) else { return forward(device, trial)?[0].sum(..) };
    nn::gradient(
        |x| {
            let mut inputs = inputs.clone();
            inputs[k] = x.clone();
            trial.run(device, &inputs)?[0].sum(..)
        },
        &inputs[k],
    )
}

#[test]
fn every_kernel_is_valid_wgsl() {
    let refused = compile_all(&idle(false));
    assert!(refused.is_empty(), "{} kernels; the first: {}", refused.len(), refused[0]);
}

#[test]
fn every_kernel_is_valid_wgsl_where_there_is_little() {
    let refused = compile_all(&idle(true));
    assert!(refused.is_empty(), "{} kernels; the first: {}", refused.len(), refused[0]);
}

#[test]
fn a_lost_device_says_so_from_every_thread_and_others_go_on() -> Result<()> {
    let Some(adapter) = adapters(wgpu::Backends::VULKAN | wgpu::Backends::METAL | wgpu::Backends::DX12).pop() else {
        assert!(std::env::var_os("CI").is_none(), "no adapter");
        eprintln!("not run: no adapter");
        return Ok(());
    };
    let other = device(&adapter, 1, false)?;
    let lost = backend(&adapter, 0, false)?;
    let gpu = lost.cx.gpu.clone();
    let lost = Device::new(Arc::new(lost));
    let x = Tensor::ones([300], &lost)?;
    gpu.device.destroy();
    let works: [fn(&Tensor) -> Result<()>; 3] =
        [|x| x.to_vec::<f32>().map(drop), |x| x.place().synchronize(), |x| x.add(1.0)?.to_vec::<f32>().map(drop)];
    for work in works {
        let said = std::thread::scope(|scope| scope.spawn(|| work(&x)).join().expect("no panic"));
        let said = said.expect_err("the device is gone").to_string();
        assert!(said.contains("wgpu:0 failed: device is lost: ") && said.ends_with("other devices go on"), "{said}");
    }
    assert_eq!(Tensor::ones([3], &other)?.add(1.0)?.to_vec::<f32>()?, [2.0; 3]);
    Ok(())
}
