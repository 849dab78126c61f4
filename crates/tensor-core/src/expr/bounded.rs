//! Running error bounds: a value together with how far a backend's result may be from it.
//!
//! The value is computed in f64, as if exactly; the error follows from each primitive's own bound ([`math::BOUNDS`])
//! and from how the primitive magnifies the errors of its operands. Fused and random expressions are judged by the
//! same rules as named ops.

use super::{Algebra, Binary, Reals, Unary};
use crate::{DType, math};

/// How accurate a backend's primitives are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Accuracy {
    /// Products and sums may be contracted or regrouped, division is good to 2.5 ulp: what WGSL promises. IEEE else.
    pub loose: bool,
    /// Subnormal numbers may count as 0.
    pub flushes_subnormals: bool,
    /// Factors of f32 matrix products and convolutions may lose all but 10 bits after the leading one: TF32.
    pub tf32: bool,
}

/// A value and a bound on the distance of the computed one; an infinite bound allows anything.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bounded {
    /// The value in f64.
    pub value: f64,
    /// The largest distance.
    pub error: f64,
}

/// The algebra of [`Bounded`] numbers.
#[derive(Clone, Copy, Debug, Default)]
pub struct Bounds {
    /// The backend's accuracy.
    pub accuracy: Accuracy,
}

/// Bits of the significand after the leading one, and the exponents of the smallest normal and the largest number.
const fn format(dtype: DType) -> (i32, i32, i32) {
    match dtype {
        DType::F32 => (23, -126, 127),
        DType::F16 => (10, -14, 15),
        DType::BF16 => (7, -126, 127),
        _ => (52, -1022, 1023),
    }
}

fn exponent(v: f64) -> i32 {
    ((v.to_bits() >> 52 & 0x7ff) as i32 - 1023).max(-1022)
}

/// The distance from |v| to the next larger number of a float type.
pub fn ulp(v: f64, dtype: DType) -> f64 {
    let (bits, lowest, highest) = format(dtype);
    power_of_two(exponent(v).clamp(lowest, highest) - bits)
}

/// 2ᵏ, k from −1074 to 1023; [`f64::powi`] flushes subnormal ones.
fn power_of_two(k: i32) -> f64 {
    f64::from_bits(if k < -1022 { 1 << (k + 1074) } else { ((k + 1023) as u64) << 52 })
}

/// The largest finite number of a float type.
pub fn largest(dtype: DType) -> f64 {
    let (bits, _, highest) = format(dtype);
    (2.0 - power_of_two(-bits)) * power_of_two(highest)
}

/// The smallest normal number of a float type.
pub fn smallest_normal(dtype: DType) -> f64 {
    power_of_two(format(dtype).1)
}

/// The quotient from which on a remainder is only in range.
fn largest_quotient(dtype: DType) -> f64 {
    if dtype == DType::F64 { 2f64.powi(51) } else { 2f64.powi(22) }
}

/// Products in which 0 wins over infinity: no error is magnified into none.
fn magnified(factor: f64, error: f64) -> f64 {
    if error == 0.0 || factor == 0.0 { 0.0 } else { factor.abs() * error }
}

impl Bounds {
    /// An exact value.
    pub fn exact(value: f64) -> Bounded {
        Bounded { value, error: 0.0 }
    }

    fn ulps(&self, name: &str, dtype: DType) -> f64 {
        let Some(bound) = math::bound(name) else {
            // Sums and products.
            return 0.5;
        };
        match (dtype, self.accuracy.loose) {
            (DType::F64, _) => bound.f64_ulps,
            (_, false) => bound.f32_ulps,
            (_, true) => bound.f32_loose_ulps,
        }
    }

    /// A result of a type, once it has been rounded within `ulps`.
    pub fn rounded(&self, x: Bounded, ulps: f64, dtype: DType) -> Bounded {
        let Bounded { value, mut error } = x;
        if value.is_nan() || value.is_infinite() || error.is_nan() {
            return Bounded { value, error: if error > 0.0 || error.is_nan() { f64::INFINITY } else { 0.0 } };
        }
        if ulps > 0.0 {
            // The value itself is a rounded f64: the same one where arithmetic starts from exact operands.
            let own = match dtype {
                DType::F64 if ulps > 0.5 => 1.0,
                DType::F64 if error > 0.0 => 0.5,
                _ => 0.0,
            };
            // Half a unit of the smallest f64 numbers would vanish.
            error += ((ulps + own) * ulp(value.abs() + error, dtype)).max(power_of_two(-1074));
        }
        if self.accuracy.flushes_subnormals && value.abs() - error < smallest_normal(dtype) {
            error += smallest_normal(dtype);
        }
        // What lies half a unit above the largest number is infinite; near there it may or may not be.
        let limit = largest(dtype) + 0.5 * ulp(largest(dtype), dtype);
        if value.abs() - error >= limit {
            return Bounded { value: value.signum() * f64::INFINITY, error: 0.0 };
        }
        if value.abs() + error >= limit {
            error = f64::INFINITY;
        }
        Bounded { value, error }
    }

    /// A factor of a matrix product or a convolution, as its units take it.
    pub fn factor(&self, x: Bounded, dtype: DType) -> Bounded {
        // 13 bits fewer than an f32 has.
        let coarse = |v: f64| ulp(v, DType::F32) * f64::from(1 << 13);
        let is_kept = !self.accuracy.tf32 || dtype != DType::F32 || !x.value.is_finite();
        if is_kept || x.error == 0.0 && x.value % coarse(x.value) == 0.0 {
            return x;
        }
        let error = x.error + 0.5 * coarse(x.value.abs() + x.error);
        let largest = largest(dtype);
        // Within half a unit of the largest number it may become infinite.
        let is_small = x.value.abs() + error < largest + 0.5 * ulp(largest, dtype);
        Bounded { value: x.value, error: if is_small { error } else { f64::INFINITY } }
    }

    /// A result as it is stored.
    pub fn stored(&self, x: Bounded, dtype: DType) -> Bounded {
        let is_stored_exactly = x.error == 0.0 && Reals.cast(x.value, dtype) == x.value;
        if !dtype.is_float() || dtype.compute() == dtype || is_stored_exactly { x } else { self.rounded(x, 0.5, dtype) }
    }

    /// A value between the parts of an op, which a backend that runs them one by one stores.
    pub fn perhaps_stored(&self, x: Bounded, dtype: DType) -> Bounded {
        let Bounded { value, error } = self.stored(x, dtype);
        if value == x.value || x.value.is_nan() {
            Bounded { value, error }
        } else {
            Bounded { error: f64::INFINITY, ..x }
        }
    }

    /// How far f(x ± error) is from f(x), for an f that is monotonic there.
    fn spread(x: Bounded, f: impl Fn(f64) -> f64) -> f64 {
        if x.error == 0.0 {
            return 0.0;
        }
        let y = f(x.value);
        let spread = (f(x.value + x.error) - y).abs().max((f(x.value - x.error) - y).abs());
        if spread.is_nan() || x.error.is_infinite() { f64::INFINITY } else { spread }
    }
}

/// Whether `x` is infinite beyond doubt, and `y` finite.
fn is_infinite_for_sure(x: Bounded, y: Bounded) -> bool {
    x.value.is_infinite() && x.error == 0.0 && y.value.is_finite() && y.error.is_finite()
}

impl Algebra for Bounds {
    type Value = Bounded;

    fn constant(&self, v: f64, dtype: DType) -> Bounded {
        // Backends round numbers to the type they compute in.
        Self::exact(if dtype.is_float() { Reals.cast(v, dtype.compute()) } else { Reals.constant(v, dtype) })
    }

    fn plain(&self, x: Bounded) -> f64 {
        x.value
    }

    fn unary(&self, op: Unary, x: Bounded, dtype: DType) -> Bounded {
        let value = Reals.unary(op, x.value, dtype);
        let spread = Self::spread(x, |v| Reals.unary(op, v, dtype));
        let error = match op {
            Unary::Sin | Unary::Cos => x.error.min(2.0),
            Unary::Abs => x.error,
            Unary::Recip | Unary::Rsqrt if x.error >= x.value.abs() && x.error > 0.0 => f64::INFINITY,
            _ => spread,
        };
        if op == Unary::Not {
            return Bounded { value, error: x.error };
        }
        let ulps = if op == Unary::Neg { 0.0 } else { self.ulps(op.name(), dtype.compute()) };
        self.rounded(Bounded { value, error }, ulps, dtype.compute())
    }

    fn binary(&self, op: Binary, x: Bounded, y: Bounded, dtype: DType) -> Bounded {
        let value = Reals.binary(op, x.value, y.value, dtype);
        let is_exact = x.error == 0.0 && y.error == 0.0;
        let error = match op {
            // A large quotient's last bits are beyond the format; the remainder is in range at least (`math::rem`).
            Binary::Rem if value.is_finite() && (x.value / y.value).abs() >= largest_quotient(dtype) => {
                y.value.abs() + y.error
            }
            _ if is_exact => 0.0,
            // However far off the other is: what masks scores.
            Binary::Add | Binary::Sub if is_infinite_for_sure(x, y) || is_infinite_for_sure(y, x) => 0.0,
            Binary::Add | Binary::Sub => x.error + y.error,
            Binary::Mul => magnified(y.value, x.error) + magnified(x.value, y.error) + magnified(x.error, y.error),
            Binary::Div if y.error >= y.value.abs() && y.error > 0.0 => f64::INFINITY,
            Binary::Div => (x.error + magnified(value, y.error)) / (y.value.abs() - y.error),
            Binary::Rem => {
                let quotient = |a: f64, b: f64| (a / b).floor();
                let q = quotient(x.value, y.value);
                let corners = corners(x, y).map(|(a, b)| quotient(a, b) == q);
                if corners == [true; 4] { x.error + magnified(q, y.error) } else { y.value.abs() + y.error }
            }
            Binary::Pow => corners(x, y).map(|(a, b)| (a.powf(b) - value).abs()).into_iter().fold(0.0, nan_max),
            Binary::Min | Binary::Max => x.error.max(y.error),
            Binary::Eq | Binary::Ne | Binary::Lt | Binary::Le => {
                f64::from((x.value - y.value).abs() <= x.error + y.error)
            }
            Binary::And | Binary::Or => x.error.max(y.error),
        };
        match op {
            Binary::Eq | Binary::Ne | Binary::Lt | Binary::Le | Binary::And | Binary::Or => Bounded { value, error },
            Binary::Min | Binary::Max => self.rounded(Bounded { value, error }, 0.0, dtype.compute()),
            _ => {
                let name = if op == Binary::Div { "recip" } else { op.name() };
                self.rounded(Bounded { value, error }, self.ulps(name, dtype.compute()), dtype.compute())
            }
        }
    }

    fn cast(&self, x: Bounded, dtype: DType) -> Bounded {
        match dtype {
            DType::Bool => {
                let uncertain = x.error > 0.0 && x.value.abs() <= x.error;
                Bounded { value: f64::from(x.value != 0.0), error: f64::from(uncertain) }
            }
            // The nearest number of an exact one is one number.
            dtype
                if dtype.is_float() && x.error == 0.0 && !self.accuracy.loose && !self.accuracy.flushes_subnormals =>
            {
                Self::exact(Reals.cast(x.value, dtype))
            }
            dtype if dtype.is_float() => self.rounded(x, 0.5, dtype),
            _ => Bounded { value: Reals.cast(x.value, dtype), error: Self::spread(x, |v| Reals.cast(v, dtype)) },
        }
    }

    /// Where the condition is in doubt, either branch may have been taken.
    fn select(&self, condition: Bounded, a: Bounded, b: Bounded) -> Bounded {
        let (taken, other) = if condition.value != 0.0 { (a, b) } else { (b, a) };
        if condition.error == 0.0 {
            return taken;
        }
        let apart = (taken.value - other.value).abs() + other.error;
        Bounded { value: taken.value, error: nan_max(taken.error, apart) }
    }
}

fn corners(x: Bounded, y: Bounded) -> [(f64, f64); 4] {
    let at = |sx: f64, sy: f64| (x.value + sx * x.error, y.value + sy * y.error);
    [at(1.0, 1.0), at(1.0, -1.0), at(-1.0, 1.0), at(-1.0, -1.0)]
}

/// The larger; NaN counts as infinite.
fn nan_max(a: f64, b: f64) -> f64 {
    if a.is_nan() || b.is_nan() { f64::INFINITY } else { a.max(b) }
}
