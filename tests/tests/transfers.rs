//! What crosses between host and devices, and what the host waits for. The counters are the process's: these tests take
//! turns.

use std::sync::{Mutex, MutexGuard, PoisonError};

use backend_cpu::test_device;
use consort::prelude::*;
use consort::{device, nn};

static TURN: Mutex<()> = Mutex::new(());

/// The counters from here on.
struct Counted {
    start: device::TransferStats,
    _turn: MutexGuard<'static, ()>,
}

impl Counted {
    fn start() -> Self {
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        Self { start: device::stats(), _turn: turn }
    }

    /// (calls, bytes) to devices, to the host, across, and waits, since the last time it was asked.
    fn lap(&mut self) -> [(u64, u64); 4] {
        let (now, then) = (device::stats(), self.start);
        self.start = now;
        let between = |a: device::Transfers, b: device::Transfers| (a.calls - b.calls, a.bytes - b.bytes);
        [
            between(now.host_to_device, then.host_to_device),
            between(now.device_to_host, then.device_to_host),
            between(now.device_to_device, then.device_to_device),
            (now.waits - then.waits, 0),
        ]
    }
}

const NONE: (u64, u64) = (0, 0);

#[test]
fn every_crossing_is_counted() -> Result<()> {
    let (there, _) = test_device("there", 0);
    let here = device::cpu();
    let mut counted = Counted::start();
    let x = Tensor::from_slice(&[1.0f32, 2.0, 3.0], [3], &here)?;
    assert_eq!(counted.lap(), [(1, 12), NONE, NONE, NONE], "an upload");
    let y = Tensor::ones([3], &here)?;
    let z = x.add(&y)?.exp()?.sum(..)?;
    assert_eq!(counted.lap(), [NONE; 4], "work on the device");
    z.item::<f32>()?;
    assert_eq!(counted.lap(), [NONE, (1, 4), NONE, (1, 0)], "a read");
    x.slice(0, .., 2)?.to_vec::<f32>()?;
    assert_eq!(counted.lap(), [NONE, (1, 8), NONE, (1, 0)], "a read of a view");
    x.to(&here)?;
    assert_eq!(counted.lap(), [NONE; 4], "a move to where it is");
    x.copy_to(&here)?;
    assert_eq!(counted.lap(), [NONE, NONE, (1, 12), NONE], "a copy on one device");
    here.synchronize()?;
    assert_eq!(counted.lap(), [NONE, NONE, NONE, (1, 0)], "synchronize");
    x.to(&there)?;
    let [_, _, across, _] = counted.lap();
    assert_eq!(across, (1, 12), "from one device to another");
    Ok(())
}

#[test]
fn printing_downloads_what_it_shows() -> Result<()> {
    let mut counted = Counted::start();
    let device = device::cpu();
    let x = Tensor::zeros([1000, 1000], &device)?;
    let text = x.to_string();
    let [up, down, _, waits] = counted.lap();
    assert_eq!((up, waits), (NONE, (1, 0)));
    assert!(down.0 == 1 && down.1 <= 6 * 6 * 4, "{down:?}");
    assert_eq!(text.lines().filter(|line| line.contains("0.0")).count(), 6, "{text}");
    assert!(text.ends_with("[1000, 1000] f32 cpu"), "{text}");
    let _ = format!("{x:?}");
    assert_eq!(counted.lap(), [NONE; 4], "Debug shows no values");
    Ok(())
}

#[test]
fn a_loss_can_be_added_up_on_the_device_and_read_once() -> Result<()> {
    let device = device::cpu();
    let mut model = chain![nn::Linear::new(4, 8, &device)?, nn::Relu, nn::Linear::new(8, 1, &device)?];
    let mut optimizer = nn::optim::Adam::new(1e-3).setup(&model)?;
    let x = Tensor::rand([16, 4], &device)?;
    let mut counted = Counted::start();
    let mut total = Tensor::zeros((), &device)?;
    for _ in 0..5 {
        let (loss, gradients) = with_gradient(&model, |m| m.forward(&x)?.square()?.mean(..))?;
        optimizer.update(&mut model, &gradients)?;
        total = total.add(&loss)?;
    }
    assert_eq!(counted.lap(), [NONE; 4], "training crosses nothing");
    assert!(total.item::<f32>()?.is_finite());
    assert_eq!(counted.lap(), [NONE, (1, 4), NONE, (1, 0)]);
    Ok(())
}
