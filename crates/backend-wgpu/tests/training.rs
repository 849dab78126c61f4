//! What a training run asks of an adapter.

mod adapter;

use std::sync::{Mutex, MutexGuard, PoisonError};

use adapter::first;
use backend_wgpu::{Counts, counts, devices, modest};
use nn::{Forward, chain, with_gradient};
use tensor_core::{DType, Device, Result, Tensor, random};

/// Counters and memory are the process's: one test at a time.
fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn between(before: Counts) -> Counts {
    let now = counts();
    Counts {
        dispatches: now.dispatches - before.dispatches,
        submissions: now.submissions - before.submissions,
        kernels: now.kernels - before.kernels,
    }
}

/// Steps of the digits' MLP with Adam; `after` each step's update it is told the step, before anything is read.
fn train(device: &Device, n_steps: usize, mut after: impl FnMut(usize)) -> Result<Vec<f32>> {
    random::with_stream(random::Stream::new(3), || {
        let x = Tensor::rand([64, 64], device)?;
        let y = Tensor::randint(0, 10, [64], device)?;
        let mut model = chain![
            nn::Linear::new(64, 256, device)?,
            nn::Relu,
            nn::Linear::new(256, 256, device)?,
            nn::Relu,
            nn::Linear::new(256, 10, device)?
        ];
        let mut optimizer = nn::optim::Adam::new(1e-3).setup(&model)?;
        let step = |i| {
            let (loss, gradients) = with_gradient(&model, |m| nn::loss::cross_entropy(&m.forward(&x)?, &y))?;
            optimizer.update(&mut model, &gradients)?;
            after(i);
            loss.item::<f32>()
        };
        (0..n_steps).map(step).collect()
    })
}

#[test]
fn a_step_is_one_submission_of_few_dispatches_and_settles() -> Result<()> {
    let _alone = alone();
    for device in [first(devices()), first(modest())].into_iter().flatten() {
        let mut before = counts();
        let mut seen = Vec::new();
        let losses = train(&device, 5, |i| {
            let own = between(before);
            if i > 1 {
                assert_eq!((own.submissions, own.kernels), (1, 0), "{device}: step {i}: {own:?}");
                assert!(own.dispatches <= 30, "{device}: step {i}: {own:?}");
                seen.push(device.memory().map_or(0, |memory| memory.used_bytes));
            }
            // The loss is read after this, which submits its copy.
            before = counts();
            before.submissions += 1;
        })?;
        assert!(losses[4] < losses[0], "{device}: {losses:?}");
        assert!(seen.windows(2).all(|pair| pair[0] == pair[1]), "{device}: memory grows: {seen:?}");
    }
    Ok(())
}

#[test]
fn fifty_epochs_with_a_threaded_loader_end_with_the_memory_of_the_second() -> Result<()> {
    let _alone = alone();
    let Some(device) = first(devices()) else { return Ok(()) };
    let features = Tensor::rand([96, 16], &device)?.to_vec::<f32>()?;
    let model = chain![nn::Linear::new(16, 8, &device)?, nn::Relu, nn::Linear::new(8, 1, &device)?];
    let mut model = model;
    let mut optimizer = nn::optim::Adam::new(1e-3).setup(&model)?;
    let mut reserved = Vec::new();
    for _ in 0..50 {
        let (sender, batches) = std::sync::mpsc::sync_channel(2);
        std::thread::scope(|scope| -> Result<()> {
            // The loader: it uploads batches ahead of the steps, from a thread of its own.
            let (features, device) = (&features, &device);
            scope.spawn(move || {
                for batch in features.chunks(32 * 16) {
                    let x = Tensor::from_slice(batch, [32, 16], device);
                    if sender.send(x).is_err() {
                        return;
                    }
                }
            });
            for x in batches {
                let x = x?;
                let (_, gradients) = with_gradient(&model, |m| m.forward(&x)?.square()?.mean(..))?;
                optimizer.update(&mut model, &gradients)?;
            }
            Ok(())
        })?;
        device.synchronize()?;
        let memory = device.memory()?;
        reserved.push((memory.used_bytes, memory.reserved_bytes));
    }
    assert_eq!(reserved[49].0, reserved[1].0, "used: {reserved:?}");
    // How far ahead the loader is differs from run to run: by two batches at most.
    assert!(reserved[49].1 <= reserved[1].1 + 3 * 4 * 32 * 16, "reserved: {reserved:?}");
    Ok(())
}

#[test]
fn a_limit_is_kept_and_leaves_the_device_usable() -> Result<()> {
    let _alone = alone();
    let Some(device) = first(devices()) else { return Ok(()) };
    let used = device.memory()?.used_bytes;
    device.release_cached()?;
    device.set_memory_limit(Some(used + (64 << 10)))?;
    let x = Tensor::zeros([40 << 10], (&device, DType::U8))?;
    let error = Tensor::zeros([30 << 10], (&device, DType::U8)).expect_err("there is no room");
    device.set_memory_limit(None)?;
    assert!(error.is_out_of_memory(), "{error}");
    assert!(error.to_string().contains("request 30.0 KiB, free 24.0 KiB, limit "), "{error}");
    assert_eq!(x.sum(..)?.item::<u8>()?, 0);
    Ok(())
}

#[test]
fn a_tensor_beyond_the_adapter_is_refused_by_name() -> Result<()> {
    let _alone = alone();
    let Some(device) = first(devices()) else { return Ok(()) };
    let error = Tensor::zeros([1usize << 40], &device).expect_err("no adapter has 4 TiB");
    assert!(
        error.to_string().contains("larger than a buffer of this adapter can be: request 4.0 TiB, limit "),
        "{error}"
    );
    Ok(())
}

#[test]
fn more_groups_than_one_axis_has_and_long_rows_are_all_computed() -> Result<()> {
    let _alone = alone();
    let Some(device) = first(devices()) else { return Ok(()) };
    // 65,535 groups of 256 are 16,776,960 elements.
    let n = (1 << 24) + 3;
    let x = Tensor::ones([n], (&device, DType::I32))?;
    assert_eq!(x.sum(..)?.item::<i32>()?, n as i32);
    let y = x.add(1)?.narrow(0, n - 2, 2)?;
    assert_eq!(y.to_vec::<i32>()?, [2, 2]);
    let long = Tensor::ones([2, 70_000], &device)?;
    assert_eq!(long.sum(1)?.to_vec::<f32>()?, [70_000.0; 2]);
    assert_eq!(long.sum(0)?.narrow(0, 69_998, 2)?.to_vec::<f32>()?, [2.0; 2]);
    Ok(())
}

#[test]
fn tensors_beyond_a_binding_are_mapped_copied_and_reduced_in_parts() -> Result<()> {
    let _alone = alone();
    let Some(device) = first(modest()) else { return Ok(()) };
    // 36 · 2²⁰ floats: 144 MiB, where a binding has 128.
    let (rows, columns) = (36 << 10, 1 << 10);
    let x = Tensor::ones([rows, columns], &device)?;
    let scale = Tensor::arange(0, columns as i64, 1, (&device, DType::F32))?;
    let y = x.mul(&scale)?;
    let last = y.narrow(0, rows - 1, 1)?.narrow(1, columns - 2, 2)?;
    assert_eq!(last.to_vec::<f32>()?, [columns as f32 - 2.0, columns as f32 - 1.0]);
    let total: usize = (0..columns).sum();
    assert_eq!(y.sum(1)?.narrow(0, rows - 1, 1)?.to_vec::<f32>()?, [total as f32]);
    assert_eq!(x.sum(0)?.narrow(0, 7, 1)?.to_vec::<f32>()?, [rows as f32]);
    assert_eq!(x.max(..)?.item::<f32>()?, 1.0);
    let flipped = y.flip(1)?.contiguous()?;
    assert_eq!(flipped.narrow(0, rows - 1, 1)?.narrow(1, 0, 1)?.to_vec::<f32>()?, [columns as f32 - 1.0]);
    let error = y.t()?.contiguous().expect_err("all of it lies behind each row");
    assert!(error.to_string().contains("larger than a binding of this adapter can be: limit 128.0 MiB"), "{error}");
    let error = x.matmul(&Tensor::ones([columns, 8], &device)?).expect_err("a product reads all of it");
    assert_eq!(
        error.to_string(),
        "matmul: tensor is larger than a binding of this adapter can be: tensor 144.0 MiB, limit 128.0 MiB; \
         split the tensor or use cpu"
    );
    Ok(())
}
