//! Tests of the expression graph, one file per property.

use super::{Algebra, Binary, Reals, Unary};
use crate::{DType, math};

mod bounded;
mod derivative;
mod lower;
mod reference;
mod symbol;
mod types;

/// f32 through the math library: what a backend computes.
struct Singles;

impl Algebra for Singles {
    type Value = f32;

    fn constant(&self, v: f64, _: DType) -> f32 {
        v as f32
    }

    fn plain(&self, x: f32) -> f64 {
        x.into()
    }

    fn unary(&self, op: Unary, x: f32, dtype: DType) -> f32 {
        match op {
            Unary::Exp => math::exp(x),
            Unary::ExpM1 => math::exp_m1(x),
            Unary::Ln => math::ln(x),
            Unary::Ln1p => math::ln_1p(x),
            Unary::Rsqrt => math::rsqrt(x),
            Unary::Recip => math::recip(x),
            Unary::Sin => math::sin(x),
            Unary::Cos => math::cos(x),
            Unary::Tanh => math::tanh(x),
            Unary::Erf => math::erf(x),
            Unary::Sqrt => math::sqrt(x),
            // Exact in f64.
            Unary::Neg | Unary::Abs | Unary::Sign | Unary::Floor | Unary::Ceil | Unary::Round | Unary::Not => {
                Reals.unary(op, x.into(), dtype) as f32
            }
        }
    }

    fn binary(&self, op: Binary, x: f32, y: f32, dtype: DType) -> f32 {
        match op {
            Binary::Add => x + y,
            Binary::Sub => x - y,
            Binary::Mul => x * y,
            Binary::Div => x / y,
            Binary::Rem => math::rem(x, y),
            Binary::Pow => math::pow(x, y),
            Binary::Min
            | Binary::Max
            | Binary::Eq
            | Binary::Ne
            | Binary::Lt
            | Binary::Le
            | Binary::And
            | Binary::Or => Reals.binary(op, x.into(), y.into(), dtype) as f32,
        }
    }

    fn cast(&self, x: f32, dtype: DType) -> f32 {
        Reals.cast(x.into(), dtype) as f32
    }
}

/// A small deterministic source of numbers in [0, 1).
struct Draws(u64);

impl Draws {
    fn next(&mut self) -> f64 {
        self.0 += 1;
        let block = crate::random::philox(crate::random::Key { seed: 17, offset: 0 }, self.0);
        crate::random::uniform_f64([block[0], block[1]])
    }

    fn within(&mut self, (low, high): (f64, f64)) -> f64 {
        low + (high - low) * self.next()
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() * n as f64) as usize
    }
}
