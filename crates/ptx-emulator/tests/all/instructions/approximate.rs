//! Approximate instructions: exact by default, within the documented bound when perturbed.

use super::{check, check_with, f32_of};
use ptx_emulator::{Approximation, Options};

type Function = fn(f64) -> f64;

/// The instruction, its function, and the largest error as (absolute, relative, units in the last place).
const TABLE: &[(&str, Function, f64, f64, f64)] = &[
    ("ex2.approx.f32", f64::exp2, 0.0, 0.0, 2.0),
    ("rcp.approx.f32", |x| 1.0 / x, 0.0, 0.0, 1.0),
    ("sqrt.approx.f32", f64::sqrt, 0.0, 1.2e-7, 0.0),
    ("rsqrt.approx.f32", |x| 1.0 / x.sqrt(), 0.0, 1.28e-7, 0.0),
    ("lg2.approx.f32", f64::log2, 2.4e-7, 2.4e-7, 0.0),
    ("tanh.approx.f32", f64::tanh, 0.0, 4.9e-4, 0.0),
    ("sin.approx.f32", f64::sin, 3.8e-5, 0.0, 0.0),
    ("cos.approx.f32", f64::cos, 3.8e-5, 0.0, 0.0),
];

fn unit(x: f64) -> f64 {
    let near = (x.abs() as f32).max(f32::MIN_POSITIVE);
    f64::from(near.next_up()) - f64::from(near)
}

#[test]
fn exact_by_default() {
    for (name, f, ..) in TABLE {
        check(&format!("{name} %r0, %r1;"), 4, &[4], |x| super::bits(f(f64::from(f32_of(x[0]))) as f32));
    }
    check("div.full.f32 %r0, %r1, %r2;", 4, &[4, 4], |x| {
        super::bits((f64::from(f32_of(x[0])) / f64::from(f32_of(x[1]))) as f32)
    });
}

#[test]
fn perturbed_within_the_bound_and_not_equal() {
    for (name, f, absolute, relative, ulps) in TABLE {
        let moved = std::cell::Cell::new(0);
        let options = Options { approximation: Approximation::Perturbed(11), ..Options::default() };
        check_with(&format!("{name} %r0, %r1;"), 4, &[4], options, |x, found| {
            let (x, found) = (f64::from(f32_of(x[0])), f64::from(f32_of(found)));
            let exact = f(x);
            if !exact.is_finite() || exact as f32 == 0.0 || (exact as f32).is_infinite() {
                // What is tabled stays: infinities, zeros, no number.
                let same = found == f64::from(exact as f32)
                    || found.is_nan() && exact.is_nan()
                    || found.abs() < 1e-44
                    || exact.is_finite();
                return (!same).then(|| format!("expected {exact}"));
            }
            moved.set(moved.get() + u32::from(found != f64::from(exact as f32)));
            let room = absolute.max(relative * exact.abs()).max(ulps * unit(exact));
            ((found - exact).abs() > room * 1.01).then(|| format!("{found:e} is beyond {room:e} of {exact:e}"))
        });
        assert!(moved.get() > 20 || name.starts_with("sqrt"), "{name} moved {} results", moved.get());
    }
}

#[test]
fn division_by_huge_numbers_gives_zero() {
    check("div.approx.f32 %r0, %r1, 0f7F000000;", 4, &[4], |x| {
        let a = f32_of(x[0]);
        if a.is_finite() { (x[0] & 0x8000_0000) as u32 as u64 } else { 0x7fff_ffff }
    });
}

#[test]
fn halves() {
    use half::f16;
    for (name, f) in [("tanh.approx.f16", f64::tanh as Function), ("ex2.approx.f16", f64::exp2)] {
        check_with(&format!("{name} %h0, %h1;"), 2, &[2], Options::default(), |x, found| {
            let x = f16::from_bits(x[0] as u16).to_f64();
            let expected = f16::from_f64(f(x));
            (found != u64::from(expected.to_bits()) && !expected.is_nan()).then(|| format!("expected {expected}"))
        });
    }
}
