//! Holds `math` to its bounds: single precision against double, double precision against MPFR (`math_f64.txt`).
//!
//! `MATH_ULP_STRIDE=1 cargo test --release -p tensor-core --test math_ulp -- --nocapture` tries every `f32` and prints
//! the largest error of each function.

mod special;
mod targets;

use std::collections::BTreeMap;
use std::thread;

use tensor_core::math;

/// A function of one argument in both precisions.
#[derive(Clone, Copy)]
struct Unary {
    name: &'static str,
    single: fn(f32) -> f32,
    double: fn(f64) -> f64,
    /// No result lies beyond ±1.
    is_within_one: bool,
}

macro_rules! unary {
    ($name:ident) => {
        unary!($name, false)
    };
    ($name:ident, $is_within_one:expr) => {
        Unary { name: stringify!($name), single: math::$name, double: math::$name, is_within_one: $is_within_one }
    };
}

const UNARY: [Unary; 12] = [
    unary!(exp),
    unary!(exp_m1),
    unary!(ln),
    unary!(ln_1p),
    unary!(sin, true),
    unary!(cos, true),
    unary!(tan),
    unary!(tanh, true),
    unary!(erf, true),
    unary!(recip),
    unary!(rsqrt),
    unary!(sqrt),
];

/// The largest error seen, and where.
#[derive(Clone, Copy, Default)]
struct Worst {
    ulps: f64,
    x: f64,
    y: f64,
}

impl Worst {
    fn see(&mut self, ulps: f64, x: f64, y: f64) {
        if ulps > self.ulps {
            *self = Worst { ulps, x, y };
        }
    }

    fn check(self, name: &str, precision: &str, bound: f64) {
        println!("{precision} {name:8} {:.4} of {bound} ulp, at {:e} {:e}", self.ulps, self.x, self.y);
        assert!(self.ulps <= bound, "{precision} {name}({:e}, {:e}) is off by {} ulp", self.x, self.y, self.ulps);
    }
}

/// The distance of `got` from `truth` in units of the last place of `truth` as an `f32`.
///
/// Infinite where `got` differs in kind or in the sign of zero. The infinity of an overflow counts as 2^128.
fn ulps(got: f32, truth: f64) -> f64 {
    let agrees = (got.is_nan() && truth.is_nan()) || f64::from(got).to_bits() == truth.to_bits();
    if agrees {
        return 0.0;
    }
    let differs_in_kind = got.is_nan() || truth.is_nan() || truth.is_infinite() || truth == 0.0;
    if differs_in_kind || got.is_sign_negative() != truth.is_sign_negative() {
        return f64::INFINITY;
    }
    const OVERFLOW: f64 = (1_u128 << 127) as f64 * 2.0;
    let got = f64::from(got).clamp(-OVERFLOW, OVERFLOW);
    let truth = truth.clamp(-OVERFLOW, OVERFLOW);
    let exponent = ((truth.abs().to_bits() >> 52) as i32 - 1023).max(-126);
    (got - truth).abs() * 2f64.powi(23 - exponent)
}

/// Runs `part` for each of as many parts as there are cores; `part` gets its number and their count.
fn in_parallel<T: Send>(part: impl Fn(u64, u64) -> T + Sync) -> Vec<T> {
    let n_parts = thread::available_parallelism().map_or(1, |n| n.get() as u64);
    let part = &part;
    thread::scope(|scope| {
        let threads: Vec<_> = (0..n_parts).map(|i| scope.spawn(move || part(i, n_parts))).collect();
        threads.into_iter().map(|thread| thread.join().expect("a part panicked")).collect()
    })
}

fn bound(name: &str) -> math::Bound {
    math::bound(name).unwrap_or_else(|| panic!("{name} has no bound"))
}

#[test]
fn f32_functions_keep_their_bounds_over_all_numbers() {
    let stride: u64 = std::env::var("MATH_ULP_STRIDE").map_or(1009, |stride| stride.parse().expect("a stride"));
    for function in UNARY {
        let worst = in_parallel(|i, n_parts| {
            let mut worst = Worst::default();
            for bits in (i * stride..1 << 32).step_by((n_parts * stride) as usize) {
                let x = f32::from_bits(bits as u32);
                let got = (function.single)(x);
                worst.see(ulps(got, (function.double)(f64::from(x))), f64::from(x), 0.0);
                assert!(
                    !function.is_within_one || got.is_nan() || got.abs() <= 1.0,
                    "{}({x:e}) = {got:e}",
                    function.name
                );
            }
            worst
        });
        let worst = worst.into_iter().max_by(|a, b| a.ulps.total_cmp(&b.ulps)).expect("a part");
        worst.check(function.name, "f32", bound(function.name).f32_ulps);
    }
}

/// Random bits (xorshift).
struct Random(u64);

impl Random {
    fn bits(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// A number in −1..1.
    fn uniform(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * 2f64.powi(-52) - 1.0
    }

    /// An `f32` of any bits.
    fn any(&mut self) -> f32 {
        f32::from_bits((self.bits() >> 16) as u32)
    }
}

#[test]
fn f32_pow_keeps_its_bound() {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut worst = Worst::default();
    for i in 0..400_000 {
        let x = match i % 4 {
            0 => random.any(),
            1 => (1.0 + random.uniform() * 2f64.powi(-(i / 4 % 20))) as f32,
            _ => (10.0 * random.uniform().abs()) as f32,
        };
        let y = match i % 3 {
            0 => random.any(),
            1 => (random.uniform() * 8.0) as f32,
            // Results over the whole range of exponents.
            _ => (random.uniform() * 152.0 / f64::from(x.abs()).log2().abs()) as f32,
        };
        worst.see(ulps(math::pow(x, y), math::pow(f64::from(x), f64::from(y))), f64::from(x), f64::from(y));
    }
    worst.check("pow", "f32", bound("pow").f32_ulps);
}

#[test]
fn f32_rem_keeps_its_bound_for_moderate_quotients_and_its_range_for_all() {
    let mut random = Random(0x2545_f491_4f6c_dd1d);
    let mut worst = Worst::default();
    for i in 0..400_000 {
        let x = if i % 2 == 0 { random.any() } else { (random.uniform() * 100.0) as f32 };
        let y = match i % 3 {
            0 => random.any(),
            1 => (f64::from(x) * random.uniform()) as f32,
            _ => (f64::from(x) * 2f64.powi(-(i / 3 % 24)) * random.uniform()) as f32,
        };
        if !x.is_finite() || !y.is_finite() || y == 0.0 {
            continue;
        }
        let got = math::rem(x, y);
        assert!(got.abs() <= y.abs() && got.is_sign_negative() == y.is_sign_negative(), "rem({x:e}, {y:e}) = {got:e}");
        if (f64::from(x) / f64::from(y)).abs() < 2f64.powi(22) {
            let truncated = f64::from(x) % f64::from(y);
            let differs = truncated != 0.0 && truncated.is_sign_negative() != y.is_sign_negative();
            let floored = if differs { truncated + f64::from(y) } else { truncated };
            worst.see(ulps(got, floored.abs().copysign(f64::from(y))), f64::from(x), f64::from(y));
        }
    }
    worst.check("rem", "f32", bound("rem").f32_ulps);
}

#[test]
fn f64_functions_keep_their_bounds_against_mpfr() {
    let mut worst: BTreeMap<&str, Worst> = BTreeMap::new();
    for line in include_str!("math_f64.txt").lines() {
        let fields: Vec<&str> = line.split(' ').collect();
        let number = |hex: &str| f64::from_bits(u64::from_str_radix(hex, 16).expect("hexadecimal bits"));
        let name = fields[0];
        let x = number(fields[1]);
        let y = if name == "pow" { number(fields[2]) } else { 0.0 };
        let truth = number(fields[fields.len() - 2]);
        let part: f64 = fields[fields.len() - 1].parse().expect("a number");

        let got = match UNARY.iter().find(|function| function.name == name) {
            Some(function) => (function.double)(x),
            None => math::pow(x, y),
        };
        // The distance of the bits is the distance in ulps, away from zero.
        let steps = (got.to_bits() as i64).wrapping_sub(truth.to_bits() as i64) as f64;
        let outward_part = if truth < 0.0 { -part } else { part };
        worst.entry(name).or_default().see((steps - outward_part / 256.0).abs(), x, y);
    }
    assert_eq!(worst.len(), 11, "functions in the golden file");
    for (name, worst) in worst {
        worst.check(name, "f64", bound(name).f64_ulps);
    }
}
