//! f16, bf16 and their pairs, against arithmetic in f64 rounded by the `half` crate.

use super::check_with;
use half::{bf16, f16};
use ptx_emulator::Options;

/// Rounds once from f64, which holds sums and products of these formats exactly but for extreme distances.
fn expected(ty: &str, op: &str, x: &[u64]) -> Option<u64> {
    let value = |bits: u64| match ty {
        "f16" => f16::from_bits(bits as u16).to_f64(),
        _ => bf16::from_bits(bits as u16).to_f64(),
    };
    let [a, b, c] = [value(x[0]), value(x[1]), value(x[2])];
    let exact = match op {
        "add" => a + b,
        "sub" => a - b,
        "mul" => a * b,
        "fma" => a * b + c,
        "min" => a.min(b),
        "max" => a.max(b),
        "neg" => -a,
        _ => a.abs(),
    };
    // Where f64 has lost something, the result is not checked.
    let lost = match op {
        "add" => a + b - a != b || a + b - b != a,
        "sub" => a - b - a != -b || a - b + b != a,
        "fma" => a * b + c - c != a * b || a * b + c - a * b != c,
        _ => false,
    };
    if exact.is_nan() || (lost && exact.is_finite()) || (matches!(op, "min" | "max") && a == b) {
        return None;
    }
    let near = match ty {
        "f16" => f16::from_f64(exact).to_bits(),
        _ => bf16::from_f64(exact).to_bits(),
    };
    // The crate looks at the upper half of an f64 only: the nearest is this one or a neighbour, even ones first.
    let candidates = [near & !1, near | 1, near.wrapping_sub(1), near.wrapping_add(1)];
    let distance = |bits: u16| {
        let away = (value(bits.into()) - exact).abs();
        if value(bits.into()).is_finite() && bits & 0x8000 == near & 0x8000 {
            (away, bits & 1)
        } else {
            (f64::INFINITY, 2)
        }
    };
    if !value(near.into()).is_finite() {
        return Some(near.into());
    }
    candidates.into_iter().min_by(|a, b| distance(*a).partial_cmp(&distance(*b)).unwrap()).map(u64::from)
}

#[test]
fn single_and_packed() {
    for ty in ["f16", "bf16"] {
        for op in ["add", "sub", "mul", "fma", "min", "max", "neg", "abs"] {
            let (mode, operands) = match op {
                "fma" => (".rn", "%h0, %h1, %h2, %h3"),
                "neg" | "abs" => ("", "%h0, %h1"),
                "add" | "sub" | "mul" => (".rn", "%h0, %h1, %h2"),
                _ => ("", "%h0, %h1, %h2"),
            };
            check_with(&format!("{op}{mode}.{ty} {operands};"), 2, &[2, 2, 2], Options::default(), |x, found| {
                let expected = expected(ty, op, x)?;
                (found != expected).then(|| format!("expected {expected:#x}"))
            });
            let packed = operands.replace("%h", "%r");
            check_with(&format!("{op}{mode}.{ty}x2 {packed};"), 4, &[4, 4, 4], Options::default(), |x, found| {
                let half = |shift: u32| x.iter().map(|x| x >> shift & 0xffff).collect::<Vec<u64>>();
                for shift in [0, 16] {
                    let found = found >> shift & 0xffff;
                    if let Some(expected) = expected(ty, op, &half(shift))
                        && found != expected
                    {
                        return Some(format!("expected {expected:#x} in bits {shift} and up"));
                    }
                }
                None
            });
        }
    }
}

#[test]
fn modifiers() {
    let f = |x: u64| f16::from_bits(x as u16).to_f64();
    check_with("fma.rn.relu.f16 %h0, %h1, %h2, %h3;", 2, &[2, 2, 2], Options::default(), |x, found| {
        let y = f(x[0]) * f(x[1]) + f(x[2]);
        (y < 0.0 && found != 0).then(|| "expected 0".into())
    });
    check_with("add.sat.f16 %h0, %h1, %h2;", 2, &[2, 2], Options::default(), |x, found| {
        let y = f(found);
        let sum = f(x[0]) + f(x[1]);
        let expected = if sum > 0.0 { sum.min(1.0) } else { 0.0 };
        (y != f16::from_f64(expected).to_f64()).then(|| format!("expected {expected}"))
    });
    check_with("max.NaN.bf16 %h0, %h1, %h2;", 2, &[2, 2], Options::default(), |x, found| {
        let nan = x.iter().any(|x| bf16::from_bits(*x as u16).is_nan());
        (nan != bf16::from_bits(found as u16).is_nan()).then(|| "NaN must show".into())
    });
    check_with(
        "setp.lt.f16x2 %p1|%p2, %r1, %r2; selp.b32 %r3, 1, 0, %p1; selp.b32 %r4, 2, 0, %p2; or.b32 %r0, %r3, %r4;",
        4,
        &[4, 4],
        Options::default(),
        |x, found| {
            let lt = |shift: u32| u64::from(f(x[0] >> shift & 0xffff) < f(x[1] >> shift & 0xffff));
            let expected = lt(0) | lt(16) << 1;
            (found != expected).then(|| format!("expected {expected}"))
        },
    );
}
