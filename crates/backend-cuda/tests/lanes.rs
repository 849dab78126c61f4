//! Uploads on the copy lane: who waits for whom, and that nobody else does.
#![cfg(feature = "emulator")]

use std::sync::Arc;

use backend_cuda::driver::Driver;
use backend_cuda::{Emulated, on_driver};
use nn::{Forward, chain, with_gradient};
use tensor_core::{Device, Result, Tensor, random};

#[path = "seam/ordered.rs"]
mod ordered;
#[path = "seam/watched.rs"]
mod watched;

use ordered::Ordered;
use watched::Watched;

/// Elements of a batch: more bytes than go on the compute lane.
const LARGE: usize = 20_000;

fn emulator(pooling: bool) -> Arc<dyn Driver> {
    Emulated { pooling, ..Emulated::default() }.driver()
}

fn batch(i: usize, n: usize, device: &Device) -> Result<Tensor> {
    Tensor::from_vec((0..n).map(|k| (k % 1000 + i) as f32).collect::<Vec<_>>(), [n], device)
}

/// Whether the sum of a batch is what it must be.
fn is_right(x: &Tensor, i: usize) -> Result<bool> {
    let right: f64 = (0..x.len()).map(|k| (k % 1000 + i) as f64).sum();
    Ok(x.sum(0)?.item::<f32>()? as f64 == right)
}

/// The emulator's copy lane does nothing before it is waited for.
#[test]
fn whoever_reads_an_upload_waits_for_it() -> Result<()> {
    for pooling in [false, true] {
        let device = on_driver(emulator(pooling), 0, pooling);
        for i in 0..6 {
            let (x, next) = (batch(i, LARGE, &device)?, batch(i + 1, LARGE, &device)?);
            assert!(is_right(&x, i)? && is_right(&next, i + 1)?, "batch {i}, pooling {pooling}");
            assert_eq!(x.narrow(0, 7, 2)?.to_vec::<f32>()?, [(7 + i) as f32, (8 + i) as f32]);
        }
        // One that nobody read may be dropped.
        drop(batch(0, LARGE, &device)?);
        device.release_cached()?;
        device.synchronize()?;
    }
    Ok(())
}

/// The test above would see a wait that is left out.
#[test]
fn without_the_wait_an_upload_is_not_there() -> Result<()> {
    let device = on_driver(Ordered::new(emulator(true), false), 0, true);
    let x = batch(1, LARGE, &device)?;
    assert!(!is_right(&x, 1).unwrap_or(false));
    Ok(())
}

#[test]
fn buffers_are_used_again_once_they_are_copied() -> Result<()> {
    let driver = Watched::new(emulator(true));
    let device = on_driver(driver.clone(), 0, true);
    // Nobody has read the first four: the fifth goes on the compute lane.
    let unread = (0..5).map(|i| batch(i, LARGE, &device)).collect::<Result<Vec<_>>>()?;
    let calls = driver.take();
    assert_eq!(["pinned", "stage", "upload"].map(|call| calls.of(call)), [4, 4, 1], "{calls:?}");
    for (i, x) in unread.iter().enumerate() {
        assert!(is_right(x, i)?, "batch {i}");
    }
    driver.take();
    // Larger ones take the place of buffers that are too small.
    for i in 0..6 {
        assert!(is_right(&batch(i, 3 * LARGE, &device)?, i)?, "large batch {i}");
    }
    let calls = driver.take();
    assert_eq!(["pinned", "free_pinned", "stage"].map(|call| calls.of(call)), [1, 1, 6], "{calls:?}");
    Ok(())
}

#[test]
fn the_copy_lane_waits_for_who_had_the_memory_and_not_for_what_is_computed_now() -> Result<()> {
    let driver = Ordered::new(emulator(true), true);
    let device = on_driver(driver.clone(), 0, true);
    let mut x = batch(0, LARGE, &device)?;
    for i in 1..8 {
        // As a loader does: the next batch goes up while this one is worked on.
        let y = x.mul(2.0)?;
        let next = batch(i, LARGE, &device)?;
        let y = y.add(&x)?.exp()?;
        drop((y, std::mem::replace(&mut x, next)));
    }
    let found = driver.found();
    assert_eq!((found.staged, found.too_early), (8, 0), "{found:?}");
    // All but the first ones, whose memory is new.
    assert!(found.beside_computing >= 5, "{found:?}");
    Ok(())
}

#[test]
fn a_step_with_a_large_batch_waits_for_nothing_and_settles() -> Result<()> {
    let driver = Watched::new(emulator(true));
    let device = on_driver(driver.clone(), 0, true);
    random::with_stream(random::Stream::new(3), || {
        let mut model = chain![nn::Linear::new(400, 8, &device)?, nn::Relu, nn::Linear::new(8, 10, &device)?];
        let mut optimizer = nn::optim::Adam::new(1e-2).setup(&model)?;
        for i in 0..6 {
            let x = batch(i, LARGE, &device)?.mul(1e-3)?.reshape([LARGE / 400, 400])?;
            let y = Tensor::zeros([LARGE / 400], (&device, tensor_core::DType::I64))?;
            let (loss, gradients) = with_gradient(&model, |m| nn::loss::cross_entropy(&m.forward(&x)?, &y))?;
            optimizer.update(&mut model, &gradients)?;
            let calls = driver.take();
            assert_eq!((calls.of("download"), calls.of("synchronize")), (0, 0), "step {i}: {calls:?}");
            // The copy lane for its memory, the compute lane for the batch.
            assert_eq!((calls.of("stage"), calls.of("wait")), (1, 2), "step {i}: {calls:?}");
            if i > 2 {
                let settled = ["load", "alloc", "free", "pinned", "free_pinned"].map(|call| calls.of(call));
                assert_eq!(settled, [0; 5], "step {i}: {calls:?}");
            }
            drop(loss);
        }
        Ok(())
    })
}
