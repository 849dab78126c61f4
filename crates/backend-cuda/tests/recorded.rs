//! What is read from device memory so that launches are the same from step to step: the place in the random stream and an
//! optimizer's numbers. Random numbers have the bits of the CPU whatever the order in which streams are drawn from.
#![cfg(feature = "emulator")]

use std::sync::{Arc, Barrier};

use backend_cuda::{Emulated, on_driver};
use nn::{Forward, chain, with_gradient};
use tensor_core::expr::build;
use tensor_core::random::{self, Stream};
use tensor_core::{DType, Device, HostData, Result, Target, Tensor, UpdateRule};

#[path = "seam/recorded.rs"]
mod recorded;

use recorded::{Made, Recorded};

/// An emulated device, and what is launched there.
fn device(pooling: bool) -> (Device, Arc<Recorded>) {
    let driver = Recorded::new(Emulated { pooling, ..Emulated::default() }.driver());
    (on_driver(driver.clone(), 0, pooling), driver)
}

fn cpu() -> Device {
    backend_cpu::device()
}

fn kernels(made: &[Made]) -> Vec<&str> {
    made.iter().map(|made| &*made.kernel).collect()
}

/// Draws of every kind, some of a length that does not fill its blocks and one of none; normal numbers, which agree to
/// rounding alone, only move the stream on.
fn draws(device: &Device) -> Result<Vec<HostData>> {
    let mut all = vec![Tensor::rand([7], device)?, Tensor::uniform(-1.0, 3.0, [5], (device, DType::F64))?];
    drop(Tensor::randn([6], device)?);
    all.push(Tensor::rand([0], device)?);
    all.push(Tensor::randint(-5, 9, [3, 3], device)?);
    all.push(Tensor::randint(0, 200, [9], (device, DType::U8))?);
    all.push(Tensor::bernoulli(0.3, [33], (device, DType::Bool))?);
    all.push(nn::Dropout::new(0.5).forward(&Tensor::ones([4, 10], device)?)?);
    all.iter().map(Tensor::to_host).collect()
}

#[test]
fn draws_have_the_bits_of_the_cpu_wherever_streams_go() -> Result<()> {
    let program = |device: &Device| -> Result<Vec<Vec<HostData>>> {
        random::seed(5);
        let mut all = vec![draws(device)?, draws(device)?];
        let kept = random::state();
        let fork = random::fork();
        // Streams of their own, one in the other, and back.
        let inner = random::with_stream(fork.clone(), || {
            let before = draws(device)?;
            let other = random::with_stream(Stream::at((9, u64::MAX - 20)), || draws(device))?;
            Ok([before, other, draws(device)?])
        })?;
        all.extend(inner);
        all.push(draws(device)?);
        all.push(random::with_stream(fork, || draws(device))?);
        random::restore(kept);
        all.push(draws(device)?);
        // The same places of another seed, then of the same one.
        random::seed(6);
        all.push(draws(device)?);
        random::seed(5);
        all.push(draws(device)?);
        Ok(all)
    };
    let want = program(&cpu())?;
    assert_eq!(program(&device(false).0)?, want);
    assert_eq!(program(&device(true).0)?, want);
    assert!(want[0] == want[9] && want[2] == want[6] && want[0] != want[8], "seeds and forks replay");
    Ok(())
}

#[test]
fn two_devices_may_share_a_stream() -> Result<()> {
    let (a, b) = (device(true).0, device(true).0);
    let alternating = |devices: [&Device; 2]| {
        random::with_stream(Stream::new(1), || (0..6).map(|i| draws(devices[i % 2])).collect::<Result<Vec<_>>>())
    };
    assert_eq!(alternating([&a, &b])?, alternating([&cpu(), &cpu()])?);
    Ok(())
}

#[test]
fn threads_draw_side_by_side() -> Result<()> {
    let program = |device: &Device, seed| {
        random::with_stream(Stream::new(seed), || (0..30).map(|_| draws(device)).collect::<Result<Vec<_>>>())
    };
    let (device, _) = device(true);
    let start = Barrier::new(4);
    let thread = &|seed| {
        start.wait();
        program(&device, seed)
    };
    let drawn: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|seed| scope.spawn(move || thread(seed))).collect();
        threads.into_iter().map(|thread| thread.join().expect("no thread panics")).collect()
    });
    for (seed, drawn) in (0..).zip(drawn) {
        assert_eq!(drawn?, program(&cpu(), seed)?, "seed {seed}");
    }
    Ok(())
}

/// A place that no address or number has by chance.
const PLACE: u64 = 0x0123_4567_89ab_cdef;

#[test]
fn the_counter_is_set_once_and_then_moves_on_by_itself() -> Result<()> {
    let (device, driver) = device(true);
    random::with_stream(Stream::at((3, PLACE)), || {
        drop(Tensor::rand([10], &device)?);
        let first = driver.take();
        assert_eq!(kernels(&first), ["counter", "rand", "counter"]);
        for _ in 0..4 {
            drop(Tensor::rand([10], &device)?);
            let next = driver.take();
            // Byte for byte: the place is in none of them.
            assert_eq!(next, first[1..]);
        }
        let is_near = |word: &u64| (PLACE..PLACE + 100).contains(word);
        assert!(first[0].words().iter().any(is_near), "{first:?}");
        assert!(!first[1..].iter().flat_map(Made::words).any(|word| is_near(&word)), "{first:?}");

        // Draws of another kind and length go on from there; an empty one launches nothing and leaves a gap.
        drop((Tensor::randint(0, 3, [7], &device)?, Tensor::bernoulli(0.5, [1], &device)?));
        assert_eq!(kernels(&driver.take()), ["randint", "counter", "bernoulli", "counter"]);
        drop((Tensor::rand([0], &device)?, Tensor::rand([4], &device)?));
        assert_eq!(kernels(&driver.take()), ["counter", "rand", "counter"]);
        let _ = random::fork();
        drop((Tensor::rand([4], &device)?, Tensor::rand([4], &device)?));
        assert_eq!(kernels(&driver.take()), ["counter", "rand", "counter", "rand", "counter"]);
        Ok(())
    })?;
    assert_eq!(driver.n_waits(), 0);
    Ok(())
}

#[test]
fn launches_that_are_made_again_draw_the_next_numbers() -> Result<()> {
    let (device, driver) = device(true);
    let want = random::with_stream(Stream::new(4), || {
        (0..4).map(|_| Tensor::rand([10], &cpu())?.to_vec::<f32>()).collect::<Result<Vec<_>>>()
    })?;
    let x = random::with_stream(Stream::new(4), || Tensor::rand([10], &device))?;
    let made = driver.take();
    let mut got = vec![x.to_vec::<f32>()?];
    for _ in 0..3 {
        driver.replay(&made[1..])?;
        got.push(x.to_vec()?);
    }
    assert_eq!(got, want);
    Ok(())
}

#[test]
fn after_a_launch_that_fails_the_numbers_are_right() -> Result<()> {
    let draw = |device: &Device| Tensor::rand([10], device)?.to_vec::<f32>();
    // Draws of 5 blocks each: one that may fail, and then the next one, the same one, or one where the stream was before.
    let program = |device: &Device, refuse: &dyn Fn(usize)| -> Result<(Vec<Vec<f32>>, usize)> {
        let (mut all, mut n_failed, mut place) = (Vec::new(), 0, 0);
        // A jump launches three kernels, a draw that follows one two.
        for (n_before, k) in [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1)] {
            for then in 0..3 {
                let start = 1000 * n_before + 100 * (k as u64 + 1) + 20 * then;
                random::with_stream(Stream::at((8, start)), || -> Result<()> {
                    (0..n_before).try_for_each(|_| draw(device).map(drop))?;
                    refuse(k);
                    n_failed += usize::from(draw(device).is_err());
                    Ok(())
                })?;
                let failed = start + 5 * n_before;
                place = [failed + 5, failed, place][then as usize];
                all.push(random::with_stream(Stream::at((8, place)), || draw(device))?);
                place += 5;
            }
        }
        Ok((all, n_failed))
    };
    let (want, _) = program(&cpu(), &|_| ())?;
    let (device, driver) = device(true);
    assert_eq!(program(&device, &|k| driver.fail_after(k))?, (want, 15));
    Ok(())
}

/// Kernels and their parameters, addresses aside: a pool hands those out anew.
fn numbers(driver: &Recorded, made: &[Made]) -> Vec<(String, Vec<u64>)> {
    let numbers = |made: &Made| made.words().into_iter().filter(|&word| !driver.is_address(word)).collect();
    made.iter().map(|made| (made.kernel.clone(), numbers(made))).collect()
}

#[test]
fn a_training_step_launches_the_same_each_time() -> Result<()> {
    let (device, driver) = device(true);
    let x = Tensor::from_vec((0..32).map(|i| i as f32 / 32.0).collect(), [4, 8], &device)?;
    let y = Tensor::from_vec(vec![0i64, 1, 2, 1], [4], &device)?;
    random::with_stream(Stream::new(2), || {
        let mut model =
            chain![nn::Linear::new(8, 6, &device)?, nn::Relu, nn::Dropout::new(0.5), nn::Linear::new(6, 3, &device)?];
        let mut optimizer = nn::optim::Adam::new(1e-2).setup(&model)?;
        let mut steps = Vec::new();
        for _ in 0..4 {
            driver.take();
            // Adam's bias correction differs from step to step.
            let (_, gradients) = with_gradient(&model, |m| nn::loss::cross_entropy(&m.forward(&x)?, &y))?;
            optimizer.update(&mut model, &gradients)?;
            steps.push(numbers(&driver, &driver.take()));
        }
        for kernel in ["bernoulli", "counter", "update"] {
            assert_eq!(steps[3].iter().filter(|(name, _)| name == kernel).count(), 1, "{kernel}");
        }
        assert_eq!(steps[3], steps[2]);
        Ok(())
    })?;
    assert_eq!(driver.n_waits(), 0);
    Ok(())
}

#[test]
fn an_optimizers_numbers_are_in_no_launch_whatever_the_gradients_layout() -> Result<()> {
    let (device, driver) = device(true);
    let mut param = Tensor::ones([3, 2], &device)?;
    let grad = Tensor::from_vec(vec![0.0f32, 1.0, 2.0, 3.0, 4.0, 5.0], [2, 3], &device)?;
    let one = Tensor::ones([1, 1], &device)?;
    let mut want = [1.0f32; 6];
    for (grad, values) in [(grad.t()?, [0.0, 3.0, 1.0, 4.0, 2.0, 5.0]), (one.expand([3, 2])?, [1.0; 6])] {
        let mut launches = Vec::new();
        for rate in [0.5, 0.25] {
            driver.take();
            let rule = UpdateRule { outputs: [build(|[param, grad]| param - grad * rate)].into_iter().collect() };
            let target = Target { param: &mut param, grad: &grad, state: &mut [] };
            device.backend().update(&rule, &mut [target])?;
            launches.push(numbers(&driver, &driver.take()));
            (0..6).for_each(|i| want[i] -= values[i] * rate as f32);
            assert_eq!(param.to_vec::<f32>()?, want);
        }
        assert_eq!(launches[0], launches[1]);
    }
    Ok(())
}
