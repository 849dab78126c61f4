//! Single instructions against plain Rust, for operands that are special and operands that are not.

mod approximate;
mod convert;
mod halves;
mod matrix;
mod memory;
mod scalar;
mod warp;

use crate::support::{Numbers, run_lanes};
use ptx_emulator::Options;

/// Bit patterns of a size in bytes that are worth trying.
fn operands(size: usize, seed: u64) -> Vec<u64> {
    let mut values: Vec<u64> = match size {
        2 => vec![
            0, 1, 0x7fff, 0x8000, 0xffff, 0x3c00, 0xbc00, 0x7c00, 0xfc00, 0x7e00, 0x0400, 0x03ff, 0x3f80, 0x7f80, 0x5,
            16,
        ],
        4 => {
            let floats =
                [0.0_f32, -0.0, 1.0, -1.0, 0.5, 1.5, 2.5, -2.5, 1e-40, 3.4e38, 1e10, -7.25, 65504.0, 0.1, -1e-45];
            let special = [f32::INFINITY, f32::NEG_INFINITY, f32::NAN, f32::MIN_POSITIVE, f32::MAX];
            let bits = floats.iter().chain(&special).map(|x| u64::from(x.to_bits()));
            bits.chain([1, 2, 5, 31, 32, 33, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff, 0xffff, 0x1_0000]).collect()
        }
        _ => {
            let floats = [
                0.0_f64,
                -0.0,
                1.0,
                -1.5,
                2.5,
                1e300,
                5e-324,
                1e-310,
                0.1,
                1e19,
                -3e9,
                f64::INFINITY,
                f64::NAN,
                f64::MAX,
            ];
            let bits = floats.iter().map(|x| x.to_bits());
            bits.chain([1, 2, 63, 64, 65, u64::MAX, 1 << 63, u64::MAX >> 1, 0xffff_ffff, 1 << 32]).collect()
        }
    };
    let mut numbers = Numbers::new(seed);
    let mask = if size == 8 { u64::MAX } else { (1 << (8 * size)) - 1 };
    while values.len() < 96 {
        let bits = numbers.bits();
        // Every third one is a small integer, or a float near one.
        values.push(match values.len() % 3 {
            0 => bits & mask,
            1 => bits & 0xff,
            _ if size == 4 => u64::from((((bits & 0xffff) as f32) / 256.0 - 128.0).to_bits()),
            _ if size == 8 => (((bits & 0xffff) as f64) / 256.0 - 128.0).to_bits(),
            _ => (bits & 0x3fff | 0x3000) & mask,
        });
    }
    values
}

/// Runs an instruction for many operands and compares: each result with that of `f` on the operands.
fn check(body: &str, output: usize, sizes: &[usize], f: impl Fn(&[u64]) -> u64) {
    check_with(body, output, sizes, Options::default(), |x, found| {
        let expected = f(x);
        (found != expected).then(|| format!("expected {expected:#x}"))
    });
}

/// The same with a test that says what is wrong with a result.
fn check_with(
    body: &str,
    output: usize,
    sizes: &[usize],
    options: Options,
    wrong: impl Fn(&[u64], u64) -> Option<String>,
) {
    // Each operand is paired with different ones of the others.
    let mut inputs: Vec<Vec<u64>> = Vec::new();
    for (i, size) in sizes.iter().enumerate() {
        let values = operands(*size, i as u64 + 1);
        let n = values.len();
        inputs.push((0..960).map(|lane| values[(lane + lane / n * [0, 7, 31, 13][i]) % n]).collect());
    }
    let found = run_lanes(body, output, &inputs, sizes, options);
    for (lane, found) in found.into_iter().enumerate() {
        let x: Vec<u64> = inputs.iter().map(|values| values[lane]).collect();
        if let Some(why) = wrong(&x, found) {
            panic!("{body}\noperands {x:#x?}\nfound {found:#x}, {why}");
        }
    }
}

fn f32_of(x: u64) -> f32 {
    f32::from_bits(x as u32)
}

fn f64_of(x: u64) -> f64 {
    f64::from_bits(x)
}

/// An f32 as the unit gives it: one NaN for all.
fn bits(x: f32) -> u64 {
    if x.is_nan() { 0x7fff_ffff } else { x.to_bits().into() }
}

fn bits64(x: f64) -> u64 {
    if x.is_nan() { 0x7fff_ffff_ffff_ffff } else { x.to_bits() }
}
