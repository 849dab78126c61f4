//! Constants, sequences and random numbers.

use std::f64::consts::TAU;

use tensor_core::expr::{Algebra, Bounded, Bounds, Reals, Value};
use tensor_core::op::{Distribution, Fill, Iota, Random};
use tensor_core::{DType, Meta, Number, random};

use super::array::{Array, Cell};
use super::exact;

/// A number as an element.
pub(super) fn number(v: Number, dtype: DType) -> Cell {
    if dtype.is_int() {
        Value::Int(tensor_core::expr::wrap(v.to_i64(), dtype))
    } else {
        exact(Reals.cast(v.to_f64(), dtype))
    }
}

/// One value everywhere.
pub(super) fn fill(op: &Fill, meta: &Meta) -> Array {
    Array::from_fn(&meta.shape, meta.dtype, |_| number(op.value, meta.dtype))
}

/// start + i·step, in f64 or wrapping i64, rounded once.
pub(super) fn iota(_: &Bounds, op: &Iota, meta: &Meta) -> Array {
    Array::from_fn(&meta.shape, meta.dtype, |index| {
        let i = index[0] as i64;
        if meta.dtype.is_int() {
            let v = op.start.to_i64().wrapping_add(i.wrapping_mul(op.step.to_i64()));
            Value::Int(tensor_core::expr::wrap(v, meta.dtype))
        } else {
            exact(Reals.cast(op.start.to_f64() + i as f64 * op.step.to_f64(), meta.dtype))
        }
    })
}

/// The numbers that the key gives, exactly; normal ones to the rounding of their transform.
pub(super) fn random(_: &Bounds, op: &Random, meta: &Meta) -> Array {
    let per_block = random::per_block(op.distribution, meta.dtype);
    let dims = meta.shape.to_vec();
    let cells = (0..meta.shape.len())
        .map(|i| {
            let block = random::philox(op.key, (i / per_block) as u64);
            element(op.distribution, &block, i % per_block, meta.dtype)
        })
        .collect();
    Array { dims, dtype: meta.dtype, cells }
}

/// The `i`-th number of a block.
fn element(distribution: Distribution, block: &[u32; 4], i: usize, dtype: DType) -> Cell {
    let pair = [block[i % 2 * 2], block[i % 2 * 2 + 1]];
    match distribution {
        Distribution::Uniform { low, high } => {
            let below = random::largest_below(low, high, dtype);
            let v = if dtype == DType::F64 {
                random::uniform_f64(pair) * (high - low) + low
            } else {
                f64::from(random::uniform_f32(block[i]) * (high - low) as f32 + low as f32)
            };
            exact(Reals.cast(v.min(below), dtype))
        }
        Distribution::Normal { mean, std } => Value::Real(normal(block, i, mean, std, dtype)),
        Distribution::Integer { low, high } => {
            Value::Int(tensor_core::expr::wrap(random::integer(pair, low, high), dtype))
        }
        Distribution::Bernoulli { p } => {
            let truth = i64::from(random::bernoulli(block[i], p));
            if dtype.is_int() { Value::Int(truth) } else { exact(truth as f64) }
        }
    }
}

/// Box and Muller in f64, with what ln, sin and cos, the angle's rounding and the two multiplications may lose.
fn normal(block: &[u32; 4], i: usize, mean: f64, std: f64, dtype: DType) -> Bounded {
    let (u, turn) = if dtype == DType::F64 {
        (random::uniform_f64([block[0], block[1]]), random::uniform_f64([block[2], block[3]]))
    } else {
        let words = [block[i / 2 * 2], block[i / 2 * 2 + 1]];
        (f64::from(random::uniform_f32(words[0])), f64::from(random::uniform_f32(words[1])))
    };
    let (radius, angle) = ((-2.0 * (1.0 - u).ln()).sqrt(), turn * TAU);
    let z = radius * if i.is_multiple_of(2) { angle.cos() } else { angle.sin() };
    let epsilon = dtype.compute().epsilon();
    // The angle is rounded (up to 2π·ε), the radius and the product lose a few ε.
    let error = std.abs() * radius * epsilon * (TAU + 4.0) + epsilon * (z * std + mean).abs() + epsilon * mean.abs();
    Bounded { value: z * std + mean, error }
}
