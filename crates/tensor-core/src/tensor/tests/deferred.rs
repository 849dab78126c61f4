//! What is put off, what is taken together, and what forces it.

use std::sync::atomic::Ordering;

use super::Bench;
use crate::{DType, Deferral, Tensor, zip_n};

fn bench() -> Bench {
    Bench::deferring("silent", 8)
}

#[test]
fn a_chain_is_one_map_when_it_is_read() -> crate::Result<()> {
    let bench = bench();
    let (x, b) = (bench.f32(&[4, 8]), bench.f32(&[8]));
    let y = x.mul(2.0)?.add(&b)?.relu()?;
    assert!(y.is_pending());
    assert_eq!(bench.asked(), [] as [String; 0]);
    y.to_host()?;
    assert!(!y.is_pending());
    assert_eq!(bench.asked(), ["relu([4, 8], [8]) -> [4, 8]", "download [4, 8] f32"]);
    y.to_host()?;
    assert_eq!(bench.asked(), ["download [4, 8] f32"]);
    Ok(())
}

#[test]
fn ops_that_are_not_elementwise_force_their_inputs() -> crate::Result<()> {
    let bench = bench();
    let x = bench.f32(&[4, 8]);
    let y = x.exp()?;
    y.transpose(0, 1)?.matmul(&x)?;
    assert_eq!(bench.asked(), ["exp([4, 8]) -> [4, 8]", "matmul([8, 4], [4, 8]) -> [8, 8]"]);
    // Under another layout or shape a pending value is not taken in.
    x.exp()?.reshape([8, 4])?.add(1.0)?.force()?;
    x.exp()?.narrow(0, 0, 1)?.add(&x)?.force()?;
    let forced =
        ["exp([4, 8]) -> [4, 8]", "add([8, 4]) -> [8, 4]", "exp([4, 8]) -> [4, 8]", "add([1, 8], [4, 8]) -> [4, 8]"];
    assert_eq!(bench.asked(), forced);
    Ok(())
}

#[test]
fn a_value_with_two_readers_is_computed_once_unless_it_is_as_cheap_as_its_only_input() -> crate::Result<()> {
    let bench = bench();
    let (a, b) = (bench.f32(&[16]), bench.f32(&[16]));
    let sum = a.add(&b)?;
    let (p, q) = (sum.exp()?, sum.sin()?);
    assert_eq!(bench.asked(), ["add([16], [16]) -> [16]"]);
    p.force()?;
    q.force()?;
    assert_eq!(bench.asked(), ["exp([16]) -> [16]", "sin([16]) -> [16]"]);

    let scaled = a.mul(3.0)?;
    let (p, q) = (scaled.exp()?, scaled.sin()?);
    zip_n([&p, &q, &scaled], |[p, q, s]| p * q * s)?.force()?;
    assert_eq!(bench.asked(), ["zip([16]) -> [16]"]);
    assert!(p.is_pending() && scaled.is_pending());
    Ok(())
}

#[test]
fn a_sum_takes_in_what_nothing_else_holds() -> crate::Result<()> {
    let bench = bench();
    let (x, y) = (bench.f32(&[4, 8]), bench.f32(&[4, 8]));
    x.sub(&y)?.square()?.sum(1)?;
    assert_eq!(bench.asked(), ["sum([4, 8], [4, 8]) -> [4]"]);
    let error = x.sub(&y)?;
    error.sum(1)?;
    error.exp()?.max(1)?;
    let held = error.clone();
    assert_eq!(bench.asked(), ["sum([4, 8], [4, 8]) -> [4]", "exp([4, 8], [4, 8]) -> [4, 8]", "max([4, 8]) -> [4]"]);
    held.sum(1)?;
    assert_eq!(bench.asked(), ["sub([4, 8], [4, 8]) -> [4, 8]", "sum([4, 8]) -> [4]"]);
    Ok(())
}

#[test]
fn small_tensors_and_other_devices_run_at_once() -> crate::Result<()> {
    bench().f32(&[7]).exp()?.storage();
    Bench::new("eager").f32(&[4096]).exp()?.storage();
    assert!(!bench().f32(&[0]).exp()?.is_pending());
    Ok(())
}

#[test]
fn a_chain_is_cut_before_it_is_too_long_or_too_wide() -> crate::Result<()> {
    let bench = bench();
    let mut x = bench.f32(&[16]);
    for i in 0..1000 {
        x = x.mul(0.9)?.add(f64::from(i))?;
    }
    let n_runs = bench.asked().len();
    assert!((20..200).contains(&n_runs), "{n_runs} runs for 2000 maps");
    let terms: Vec<Tensor> = (0..20).map(|_| bench.f32(&[16])).collect();
    let mut sum = terms[0].clone();
    for term in &terms[1..] {
        sum = sum.add(term)?;
    }
    sum.force()?;
    let widest = bench.asked().iter().map(|run| run.matches("[16]").count() - 1).max();
    assert!(widest.is_some_and(|n| n > 4 && n <= 7), "{widest:?}");
    Ok(())
}

#[test]
fn errors_about_shapes_come_at_once_and_those_of_the_device_when_it_works() -> crate::Result<()> {
    let bench = bench();
    let x = bench.f32(&[4, 8]);
    assert!(x.exp()?.add(&bench.f32(&[3])).is_err());
    assert!(x.exp()?.add(&bench.tensor(&[4, 8], DType::I32)).is_err());
    let y = x.exp()?.add(1.0)?;
    bench.backend.fails_from.store(1, Ordering::Relaxed);
    let message = y.to_host().expect_err("the device refuses").to_string();
    assert!(message.starts_with("add:"), "{message}");
    bench.backend.fails_from.store(usize::MAX, Ordering::Relaxed);
    bench.asked();
    y.force()?;
    assert_eq!(bench.asked(), ["add([4, 8]) -> [4, 8]"]);
    Ok(())
}

#[test]
fn the_switch_turns_it_off_and_on_for_all_sizes() -> crate::Result<()> {
    let bench = bench();
    Deferral::Never.set();
    assert!(!bench.f32(&[4096]).exp()?.is_pending());
    Deferral::Always.set();
    assert!(bench.f32(&[1]).exp()?.is_pending());
    assert!(!Bench::new("eager").f32(&[1]).exp()?.is_pending());
    Deferral::default().set();
    assert!(!bench.f32(&[1]).exp()?.is_pending());
    Ok(())
}
