//! Devices that fail: out of memory at any allocation, lost, and back again. Nothing is half done afterwards.

use backend_cpu::test_device;
use backend_cpu::test_device::Control;
use consort::prelude::*;
use consort::{device, nn, random};

fn text<T>(result: Result<T>) -> String {
    result.err().map_or_else(|| "no error".to_string(), |e| e.to_string())
}

#[test]
fn out_of_memory_names_the_request_and_leaves_the_device_usable() -> Result<()> {
    let (device, _) = test_device("small", 0);
    device.set_memory_limit(Some(1 << 20))?;
    let request = |n: usize| Tensor::zeros([n << 8], &device);
    let error = request(4096).expect_err("over the limit");
    assert!(error.is_out_of_memory());
    let advice = "use a smaller batch, a smaller model or a lower precision";
    assert_eq!(
        error.to_string(),
        format!("small:0: out of memory: request 4.0 MiB, free 1.0 MiB, limit 1.0 MiB; {advice}")
    );
    let held = request(512)?;
    let error = request(768).expect_err("the rest is too small");
    assert_eq!(
        error.to_string(),
        format!("small:0: out of memory: request 768.0 KiB, free 512.0 KiB, limit 1.0 MiB; {advice}")
    );
    // An upload and an op's output are refused alike.
    assert!(Tensor::from_vec(vec![0f32; 768 << 8], 768 << 8, &device).is_err_and(|e| e.is_out_of_memory()));
    assert!(held.repeat(2).is_err_and(|e| e.is_out_of_memory()));
    assert_eq!(held.narrow(0, 0, 4)?.add(1.0)?.to_vec::<f32>()?, [1.0; 4], "the device still works");
    drop(held);
    let retried = request(768)?;
    assert_eq!(retried.len(), 768 << 8, "freeing and retrying works");
    device.set_memory_limit(None)?;
    request(4096)?;
    Ok(())
}

/// A request that no machine can serve is an error, not an abort.
#[test]
fn an_absurd_request_is_an_error() {
    for device in [device::cpu(), test_device("small", 1).0] {
        let error = Tensor::zeros([1usize << 44], &device).expect_err("16 TiB of f32 are too many");
        assert!(error.is_out_of_memory(), "{error}");
        assert!(error.to_string().contains("request 64.0 TiB"), "{error}");
    }
}

type Model = nn::Chain<(nn::Linear, nn::BatchNorm1d, nn::Relu, nn::Linear)>;

/// A training step that draws no random numbers.
struct Training {
    model: Model,
    optimizer: nn::optim::Optimizer,
    x: Tensor,
}

impl Training {
    fn new(device: &Device) -> Result<Self> {
        random::with_stream(random::Stream::new(3), || {
            let model = chain![
                nn::Linear::new(4, 8, device)?,
                nn::BatchNorm1d::new(8, device)?,
                nn::Relu,
                nn::Linear::new(8, 2, device)?
            ];
            let optimizer = nn::optim::Adam::new(1e-2).setup(&model)?;
            Ok(Self { model, optimizer, x: Tensor::rand([6, 4], device)? })
        })
    }

    fn step(&mut self) -> Result<f32> {
        let (loss, gradients) = with_gradient(&self.model, |m| m.forward(&self.x)?.square()?.mean(..))?;
        self.optimizer.update(&mut self.model, &gradients)?;
        loss.item()
    }

    /// All parameters, bit for bit.
    fn state(&self) -> Result<Vec<u32>> {
        let mut bits = Vec::new();
        for (_, param) in self.model.named_parameters() {
            bits.extend(param.to_vec::<f32>()?.into_iter().map(f32::to_bits));
        }
        Ok(bits)
    }
}

#[test]
fn a_step_that_runs_out_of_memory_changes_nothing() -> Result<()> {
    let (device, control) = test_device("small", 2);
    let mut undisturbed = Training::new(&device)?;
    let (mut losses, mut states) = (Vec::new(), Vec::new());
    for _ in 0..3 {
        losses.push(undisturbed.step()?);
        states.push(undisturbed.state()?);
    }
    let mut training = Training::new(&device)?;
    assert_eq!(training.step()?, losses[0]);
    let mut n_failed = 0;
    for n in 0.. {
        control.fail_allocation_after(n);
        match training.step() {
            Ok(loss) => {
                assert_eq!(loss, losses[1], "after {n} failed attempts");
                break;
            }
            Err(error) => {
                n_failed += 1;
                assert!(error.is_out_of_memory(), "{error}");
                assert_eq!(training.state()?, states[0], "attempt {n}");
            }
        }
    }
    // The last attempt's fault is still to come.
    control.fail_allocation_after(u64::MAX - 1);
    assert!(n_failed > 10, "a step allocates more than {n_failed} times");
    assert_eq!(training.state()?, states[1]);
    assert_eq!((training.step()?, training.state()?), (losses[2], states[2].clone()));
    Ok(())
}

fn lose(control: &Control, is_lost: bool) {
    control.set_lost(is_lost);
}

#[test]
fn a_lost_device_says_so_everywhere_and_can_come_back() -> Result<()> {
    let (device, control) = test_device("fragile", 0);
    let x = Tensor::ones([2, 2], &device)?;
    lose(&control, true);
    let lost =
        "fragile:0: the device stopped working: move the model to another device and go on from the last checkpoint";
    for result in [
        x.add(1.0).map(drop),
        x.to_vec::<f32>().map(drop),
        x.item::<f32>().map(drop).or_else(|_| x.to_vec::<f32>().map(drop)),
        x.to(&device::cpu()).map(drop),
        Tensor::ones([2], &device).map(drop),
        Tensor::from_slice(&[1.0f32], [1], &device).map(drop),
        device.synchronize(),
        device.memory().map(drop),
        nn::gradient(|x| x.square()?.sum(..), &x).map(drop),
    ] {
        assert!(result.as_ref().is_err_and(|e| e.is_device_lost()));
        assert_eq!(text(result), lost);
    }
    assert_eq!(x.to_string(), format!("({lost})\n[2, 2] f32 fragile:0"), "printing never panics");
    assert_eq!(x.reshape(4)?.dims(), [4], "views need no device");
    lose(&control, false);
    assert_eq!(x.add(1.0)?.to_vec::<f32>()?, [2.0; 4]);
    Ok(())
}
