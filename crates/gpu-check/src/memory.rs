//! Running out of memory and going on, and memory that does not grow.

use nn::{Forward, chain, with_gradient};
use serde_json::Value;
use tensor_core::{DType, MemoryStatus, Result, Tensor};

use crate::device::Subject;
use crate::record::Record;

pub(crate) fn run(subject: &Subject, record: &mut Record) -> Result<()> {
    leaks(subject, record)?;
    out_of_memory(subject, record)
}

/// Takes memory until there is none, gives half back, and computes with what it gets again.
fn out_of_memory(subject: &Subject, record: &mut Record) -> Result<()> {
    let device = &subject.device;
    let total = subject.driver.properties().total_bytes as usize;
    let bytes = |n: usize| Tensor::zeros([n], (device, DType::U8));
    // Three of these together are less than the elements that one kernel reaches.
    let part = (total / 16).min(512 << 20);
    let mut held = Vec::new();
    let error = loop {
        match bytes(part) {
            Ok(x) => held.push(x),
            Err(error) => break error,
        }
        if held.len() * part > total {
            record.fail(format!("of {total} bytes {} were given out", held.len() * part));
            return Ok(());
        }
    };
    record.note(format!("with {} taken: {error}", MemoryStatus::in_units(held.len() * part)));
    if !error.is_out_of_memory() {
        record.fail("the error is not that of a full device");
    }
    if !error.to_string().contains("; use a smaller batch") {
        record.fail("the error names no remedy");
    }
    // What is kept for reuse has the wrong size and must be given back to the driver first.
    let n_kept = held.len() / 2;
    held.truncate(n_kept);
    let x = bytes(part * 3)?;
    let ends = [x.narrow(0, 0, 2)?.to_vec::<u8>()?, x.narrow(0, x.len() - 2, 2)?.to_vec::<u8>()?];
    if ends != [[0, 0], [0, 0]] {
        record.fail(format!("memory that was given out again reads {ends:?}, not zeros"));
    }
    drop((x, held));
    device.release_cached()?;
    let status = device.memory()?;
    if status.reserved_bytes != status.used_bytes {
        record.fail(format!("after giving all back {} stay reserved", status.reserved_bytes - status.used_bytes));
    }
    let y = Tensor::ones([1000], device)?.mul(2.0)?.sum(..)?.item::<f32>()?;
    if y != 2000.0 {
        record.fail(format!("afterwards a sum of 1000 twos is {y}"));
    }
    Ok(())
}

/// Fifty epochs: memory is what it was after the second.
fn leaks(subject: &Subject, record: &mut Record) -> Result<()> {
    let device = &subject.device;
    let (n_epochs, n_batches) = (50, subject.size(20, 1));
    let (n_rows, n_pixels, n_hidden) = subject.size((64, 784, 256), (4, 16, 8));
    let mut model =
        chain![nn::Linear::new(n_pixels, n_hidden, device)?, nn::Relu, nn::Linear::new(n_hidden, 10, device)?];
    let mut optimizer = nn::optim::Adam::new(1e-3).setup(&model)?;
    let n_all = n_rows * n_batches;
    let (x, y) = (Tensor::rand([n_all, n_pixels], device)?, Tensor::randint(0, 10, [n_all], device)?);
    let mut seen: Vec<(MemoryStatus, u64)> = Vec::new();
    for _ in 0..n_epochs {
        for batch in 0..n_batches {
            let (x, y) = (x.narrow(0, batch * n_rows, n_rows)?, y.narrow(0, batch * n_rows, n_rows)?);
            let (_, gradients) = with_gradient(&model, |m| nn::loss::cross_entropy(&m.forward(&x)?, &y))?;
            optimizer.update(&mut model, &gradients)?;
        }
        device.synchronize()?;
        seen.push((device.memory()?, subject.driver.free_bytes()?));
    }
    record.table("Memory after epochs", &["epoch", "used", "reserved", "free on the device"]);
    for epoch in [1, 2, 10, n_epochs] {
        let (status, free) = &seen[epoch - 1];
        record.row([epoch, status.used_bytes, status.reserved_bytes, *free as usize].map(Value::from).to_vec());
    }
    let (second, last) = (&seen[1].0, &seen[n_epochs - 1].0);
    for (what, before, after) in
        [("used", second.used_bytes, last.used_bytes), ("reserved", second.reserved_bytes, last.reserved_bytes)]
    {
        if before != after {
            record.fail(format!("{what} memory was {before} bytes after epoch 2 and {after} after epoch {n_epochs}"));
        }
    }
    Ok(())
}
