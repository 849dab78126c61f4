//! Ops without inputs, and the copy.

use super::{Contract, Meta, Metas, NUMBERS, Record, Tolerance, exactly, one};
use crate::random::Key;
use crate::{DType, Error, Number, Result, Shape};

/// One value everywhere.
#[derive(Clone, Debug)]
pub struct Fill {
    /// The value; a float needs a float dtype.
    pub value: Number,
    /// The result's shape and dtype.
    pub meta: Meta,
}

impl Record for Fill {
    fn name(&self) -> &str {
        "full"
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Metas> {
        let [] = exactly(inputs, "full")?;
        number_fits("full", self.value, self.meta.dtype)?;
        one(self.meta.shape.clone(), self.meta.dtype)
    }

    fn contract(&self) -> Contract {
        Contract::exact()
    }
}

fn number_fits(op: &'static str, number: Number, dtype: DType) -> Result<()> {
    if number.fits(dtype) {
        return Ok(());
    }
    Err(Error::dtype(op, format!("a float number needs a float dtype: number {number}, dtype {dtype}")))
}

/// start, start + step, start + 2·step, …, `len` of them: computed as start + i·step in f64 (floats) or wrapping i64.
#[derive(Clone, Debug)]
pub struct Iota {
    /// The first.
    pub start: Number,
    /// From one to the next.
    pub step: Number,
    /// How many.
    pub len: usize,
    /// The element type; not bool.
    pub dtype: DType,
}

impl Record for Iota {
    fn name(&self) -> &str {
        "arange"
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Metas> {
        let [] = exactly(inputs, "arange")?;
        super::not_bool("arange", "result", self.dtype)?;
        number_fits("arange", self.start, self.dtype)?;
        number_fits("arange", self.step, self.dtype)?;
        one(Shape::new(&[self.len]), self.dtype)
    }

    fn contract(&self) -> Contract {
        Contract { dtypes: NUMBERS, tolerance: Tolerance::Ulps(1.0), ..Contract::exact() }
    }
}

/// How random numbers are distributed; see [`crate::random`] for the exact bits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Distribution {
    /// Uniform in [low, high); floats.
    Uniform {
        /// Inclusive.
        low: f64,
        /// Exclusive.
        high: f64,
    },
    /// Normal; floats.
    Normal {
        /// The mean.
        mean: f64,
        /// The standard deviation.
        std: f64,
    },
    /// Uniform integers in [low, high); integers.
    Integer {
        /// Inclusive.
        low: i64,
        /// Exclusive.
        high: i64,
    },
    /// 1 with probability p, else 0; any dtype.
    Bernoulli {
        /// In [0, 1].
        p: f64,
    },
}

/// Counter-based random numbers: element i is a function of the key and i alone.
#[derive(Clone, Debug)]
pub struct Random {
    /// The distribution.
    pub distribution: Distribution,
    /// Seed and position in the stream.
    pub key: Key,
    /// The result's shape and dtype.
    pub meta: Meta,
}

impl Record for Random {
    fn name(&self) -> &str {
        match self.distribution {
            Distribution::Uniform { .. } => "rand",
            Distribution::Normal { .. } => "randn",
            Distribution::Integer { .. } => "randint",
            Distribution::Bernoulli { .. } => "bernoulli",
        }
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Metas> {
        let name = self.name().to_string();
        let [] = exactly(inputs, &name)?;
        let dtype = self.meta.dtype;
        let (fits, needs) = match self.distribution {
            Distribution::Uniform { .. } | Distribution::Normal { .. } => (dtype.is_float(), "a float dtype"),
            Distribution::Integer { .. } => (dtype.is_int(), "an integer dtype"),
            Distribution::Bernoulli { .. } => (true, ""),
        };
        if !fits {
            return Err(Error::dtype(name, format!("needs {needs}: dtype {dtype}")));
        }
        let bad = match self.distribution {
            Distribution::Uniform { low, high } if !(low <= high && (high - low).is_finite()) => {
                Some(format!("low must not exceed high: low {low:?}, high {high:?}"))
            }
            Distribution::Normal { std, .. } if std.is_nan() || std < 0.0 => {
                Some(format!("the standard deviation must not be negative: std {std:?}"))
            }
            Distribution::Integer { low, high } if low >= high => {
                Some(format!("low must be less than high: low {low}, high {high}"))
            }
            Distribution::Bernoulli { p } if !(0.0..=1.0).contains(&p) => {
                Some(format!("the probability must be in [0, 1]: p {p:?}"))
            }
            _ => None,
        };
        match bad {
            Some(text) => Err(Error::value(name, text)),
            None => one(self.meta.shape.clone(), dtype),
        }
    }

    fn contract(&self) -> Contract {
        let (dtypes, tolerance): (&[DType], _) = match self.distribution {
            Distribution::Uniform { low: 0.0, high: 1.0 } => (&DType::FLOATS, Tolerance::Exact),
            Distribution::Uniform { .. } => (&DType::FLOATS, Tolerance::Ulps(1.0)),
            // Radius at most 7: ln, √, cos and two products, a few ulps each.
            Distribution::Normal { mean, std } => {
                (&DType::FLOATS, Tolerance::Absolute { epsilons: mean.abs() + 40.0 * std })
            }
            Distribution::Integer { .. } => (&[DType::I64, DType::I32, DType::U8], Tolerance::Exact),
            Distribution::Bernoulli { .. } => (&DType::ALL, Tolerance::Exact),
        };
        Contract { dtypes, tolerance, ..Contract::exact() }
    }
}

/// The record of [`super::Op::Copy`], which has no parameters.
pub(super) struct CopyRecord;

impl Record for CopyRecord {
    fn name(&self) -> &str {
        "copy"
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Metas> {
        let [x] = exactly(inputs, "copy")?;
        one(x.shape.clone(), x.dtype)
    }

    fn contract(&self) -> Contract {
        Contract::exact()
    }
}
