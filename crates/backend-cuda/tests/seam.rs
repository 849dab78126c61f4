//! What the backend asks of a driver, and what it makes of the answers.
#![cfg(feature = "emulator")]

use backend_cuda::{Emulated, emulated, on_driver};
use nn::{Forward, chain, with_gradient};
use tensor_core::{DType, Device, Result, Tensor, random};

#[path = "seam/broken.rs"]
mod broken;
#[path = "seam/watched.rs"]
mod watched;

use broken::{NOT_ASCII, OUT_OF_BOUNDS, UNDECLARED, broken};
use watched::Watched;

const KIB: usize = 1 << 10;

/// Bytes on a device: a tensor of u8.
fn bytes(n: usize, device: &Device) -> Result<Tensor> {
    Tensor::zeros([n], (device, DType::U8))
}

fn text<T>(result: Result<T>) -> String {
    result.map_or_else(|e| e.to_string(), |_| "no error".into())
}

#[test]
fn out_of_memory_gives_back_what_is_kept_and_leaves_the_device_usable() -> Result<()> {
    let settings = Emulated { memory_bytes: 1 << 20, pooling: true, ..Emulated::default() };
    let driver = Watched::new(settings.driver());
    let device = on_driver(driver.clone(), 0, true);
    drop(bytes(600 * KIB, &device)?);
    assert_eq!(device.memory()?.reserved_bytes - device.memory()?.used_bytes, 600 * KIB, "kept for reuse");
    driver.take();
    let x = bytes(700 * KIB, &device)?;
    let calls = driver.take();
    assert_eq!((calls.of("alloc"), calls.of("free")), (2, 1), "refused, given back, tried again: {calls:?}");

    let error = bytes(800 * KIB, &device).expect_err("there is no room");
    assert!(error.is_out_of_memory(), "{error}");
    let said = error.to_string();
    for part in ["cuda-emulated:0: out of memory: request 800.0 KiB, free ", "use a smaller batch"] {
        assert!(said.contains(part), "{said}");
    }
    assert_eq!(device.memory()?.used_bytes, 700 * KIB);
    // More than there is at all.
    assert!(bytes(2 << 20, &device).is_err_and(|e| e.is_out_of_memory()));
    drop(x);
    assert_eq!(bytes(800 * KIB, &device)?.narrow(0, 0, 2)?.to_vec::<u8>()?, [0, 0]);
    Ok(())
}

#[test]
fn a_limit_holds_until_it_is_taken_away() -> Result<()> {
    let device = emulated(&Emulated { pooling: true, ..Emulated::default() });
    device.set_memory_limit(Some(64 * KIB))?;
    drop(bytes(40 * KIB, &device)?);
    let x = bytes(50 * KIB, &device)?;
    let said = text(bytes(20 * KIB, &device));
    assert!(said.contains("out of memory: request 20.0 KiB, free 14.0 KiB, limit 64.0 KiB; "), "{said}");
    assert_eq!(x.narrow(0, 0, 1)?.to_vec::<u8>()?, [0]);
    device.set_memory_limit(None)?;
    bytes(20 * KIB, &device)?;
    Ok(())
}

/// Trains an MLP of the digits' size; `after` is called after each step, before the loss is read.
fn train(device: &Device, n_steps: usize, mut after: impl FnMut(usize)) -> Result<Vec<f32>> {
    random::with_stream(random::Stream::new(3), || {
        let x = Tensor::rand([8, 64], device)?;
        let y = Tensor::randint(0, 10, [8], device)?;
        let mut model = chain![nn::Linear::new(64, 16, device)?, nn::Relu, nn::Linear::new(16, 10, device)?];
        let mut optimizer = nn::optim::Adam::new(1e-2).setup(&model)?;
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
fn a_training_step_waits_for_nothing_and_settles() -> Result<()> {
    let driver = Watched::new(Emulated { pooling: true, ..Emulated::default() }.driver());
    let device = on_driver(driver.clone(), 0, true);
    let mut used = Vec::new();
    let losses = train(&device, 6, |i| {
        let calls = driver.take();
        // The read of the loss falls to the step after it: the loss itself, and whether an index was wrong.
        let reads = if i == 0 { 0 } else { 2 };
        assert_eq!((calls.of("download"), calls.of("synchronize")), (reads, 0), "step {i}: {calls:?}");
        if i > 1 {
            let settled = ["load", "alloc", "free"].map(|call| calls.of(call));
            assert_eq!(settled, [0; 3], "step {i}: {calls:?}");
            used.push(device.memory().map_or(0, |memory| memory.used_bytes));
        }
    })?;
    assert!(losses[5] < losses[0], "{losses:?}");
    assert!(used.windows(2).all(|pair| pair[0] == pair[1]), "memory grows: {used:?}");
    Ok(())
}

/// Fifty epochs of batches that a shuffling loader draws: what is used and what is kept is as after the second.
#[test]
fn fifty_epochs_leave_nothing_behind() -> Result<()> {
    let driver = Watched::new(Emulated { pooling: true, ..Emulated::default() }.driver());
    let device = on_driver(driver.clone(), 0, true);
    let (x, y) = (Tensor::rand([12, 16], &device)?, Tensor::randint(0, 10, [12], &device)?);
    let mut model = chain![nn::Linear::new(16, 8, &device)?, nn::Relu, nn::Linear::new(8, 10, &device)?];
    let mut optimizer = nn::optim::Adam::new(1e-2).setup(&model)?;
    let mut after = Vec::new();
    for epoch in 0..50i64 {
        for batch in 0..3i64 {
            let rows: Vec<i64> = (0..4).map(|i| (5 * (4 * batch + i) + epoch) % 12).collect();
            let rows = Tensor::from_vec(rows, [4], &device)?;
            let (x, y) = (x.index_select(0, &rows)?, y.index_select(0, &rows)?);
            let (loss, gradients) = with_gradient(&model, |m| nn::loss::cross_entropy(&m.forward(&x)?, &y))?;
            optimizer.update(&mut model, &gradients)?;
            loss.item::<f32>()?;
        }
        let memory = device.memory()?;
        after.push((memory.used_bytes, memory.reserved_bytes, memory.free_bytes, driver.take().of("alloc")));
    }
    let (used, reserved, free, _) = after[1];
    assert_eq!(after[49], (used, reserved, free, 0), "{after:?}");
    Ok(())
}

#[test]
fn shapes_and_numbers_compile_nothing() -> Result<()> {
    let driver = Watched::new(Emulated::default().driver());
    let device = on_driver(driver.clone(), 0, false);
    let work = |n: usize, by: f64| {
        let x = Tensor::arange(0, n as i64, 1, (&device, DType::F32))?.reshape([n / 2, 2])?;
        x.mul(by)?.add(1.0)?.exp()?.t()?.sum(0)?.to_vec::<f32>()
    };
    work(8, 0.5)?;
    assert!(driver.take().of("load") > 0);
    for (n, by) in [(10, 0.5), (14, 0.25), (22, -1.5)] {
        work(n, by)?;
        assert_eq!(driver.take().of("load"), 0, "{n} elements");
    }
    Ok(())
}

#[test]
fn a_fault_takes_its_device_and_no_other() -> Result<()> {
    let [first, second] = [0, 1].map(|index| emulated(&Emulated { index, ..Emulated::default() }));
    let x = Tensor::ones([4], &first)?;
    // What goes wrong shows when the program waits.
    let y = broken(OUT_OF_BOUNDS, &x)?;
    for said in [text(y.to_vec::<f32>()), text(x.to_vec::<f32>()), text(first.synchronize())] {
        assert!(said.contains("cuda-emulated:0: a kernel went wrong: "), "{said}");
        assert!(said.contains("; the device's tensors are gone: restart the program, or go on"), "{said}");
    }
    assert!(x.to_vec::<f32>().is_err_and(|e| e.is_device_lost()));
    assert_eq!(Tensor::ones([2], &second)?.add(1.0)?.to_vec::<f32>()?, [2.0, 2.0]);
    Ok(())
}

#[test]
fn a_text_that_is_refused_is_an_error_with_the_log() -> Result<()> {
    let device = emulated(&Emulated::default());
    let x = Tensor::ones([4], &device)?;
    let said = text(broken(UNDECLARED, &x));
    assert!(said.contains("PTX is refused: kernel broken: ") && said.contains("%to"), "{said}");
    let said = text(broken(NOT_ASCII, &x));
    assert!(said.contains("PTX must be ASCII: line 1, text \"// 2 × 3\"; comments count too"), "{said}");
    assert_eq!(x.add(1.0)?.to_vec::<f32>()?, [2.0; 4]);
    Ok(())
}
