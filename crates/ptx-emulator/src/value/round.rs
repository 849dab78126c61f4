//! Rounding: the directed modes, and every format narrower than f64.
//!
//! A sum, product, quotient or root of f32 or narrower is first rounded to odd in f64, which keeps enough to round
//! once more in any mode without a second error.

/// How to round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Round {
    /// To nearest, ties to even.
    Nearest,
    /// To nearest, ties away from zero.
    Away,
    Zero,
    Down,
    Up,
}

/// A binary floating format.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Format {
    /// Bits of the significand, the hidden one counted.
    pub(crate) precision: u32,
    /// The exponent of the smallest normal number.
    pub(crate) min_exponent: i32,
    /// The largest finite number.
    pub(crate) max: f64,
    pub(crate) has_infinity: bool,
}

pub(crate) const F32: Format = Format { precision: 24, min_exponent: -126, max: f32::MAX as f64, has_infinity: true };
pub(crate) const F16: Format = Format { precision: 11, min_exponent: -14, max: 65504.0, has_infinity: true };
pub(crate) const BF16: Format =
    Format { precision: 8, min_exponent: -126, max: 3.3895313892515355e38, has_infinity: true };
pub(crate) const TF32: Format =
    Format { precision: 11, min_exponent: -126, max: 3.4011621342146535e38, has_infinity: true };
pub(crate) const E4M3: Format = Format { precision: 4, min_exponent: -6, max: 448.0, has_infinity: false };
pub(crate) const E5M2: Format = Format { precision: 3, min_exponent: -14, max: 57344.0, has_infinity: true };

/// 2 to the power, for exponents of f64's normal numbers.
fn power(exponent: i32) -> f64 {
    f64::from_bits(((exponent + 1023).clamp(1, 2046) as u64) << 52)
}

/// The floor of the binary logarithm.
pub(crate) fn exponent(x: f64) -> i32 {
    let bits = x.to_bits() & !(1 << 63);
    match (bits >> 52) as i32 {
        0 => -1011 - bits.leading_zeros() as i32,
        biased => biased - 1023,
    }
}

/// The number of the format nearest in that mode, as an f64.
pub(crate) fn round_to(x: f64, format: Format, mode: Round) -> f64 {
    if x == 0.0 || !x.is_finite() {
        return x;
    }
    let magnitude = x.abs();
    let quantum = exponent(x).max(format.min_exponent) - (format.precision as i32 - 1);
    // In two steps, since 2^-quantum alone may be no f64.
    let half = -quantum / 2;
    let scaled = magnitude * power(half) * power(-quantum - half);
    let whole = scaled.floor();
    let rest = scaled - whole;
    let up = match mode {
        Round::Nearest => rest > 0.5 || (rest == 0.5 && whole % 2.0 == 1.0),
        Round::Away => rest >= 0.5,
        Round::Zero => false,
        Round::Down => rest > 0.0 && x < 0.0,
        Round::Up => rest > 0.0 && x > 0.0,
    };
    let rounded = (whole + f64::from(u8::from(up))) * power(-half) * power(quantum + half);
    let rounded = if rounded > format.max {
        let stays = match mode {
            Round::Zero => true,
            Round::Down => x > 0.0,
            Round::Up => x < 0.0,
            Round::Nearest | Round::Away => false,
        };
        if stays { format.max } else { f64::INFINITY }
    } else {
        rounded
    };
    rounded.copysign(x)
}

/// The bits of an f16 that is the value exactly.
pub(crate) fn f16_bits(x: f64) -> u32 {
    if x.is_nan() { 0x7fff } else { half::f16::from_f64(x).to_bits().into() }
}

/// The bits of a bf16 that is the value exactly.
pub(crate) fn bf16_bits(x: f64) -> u32 {
    if x.is_nan() { 0x7fff } else { (x as f32).to_bits() >> 16 }
}

/// The bits of an 8-bit float that is the value exactly, or lies beyond.
pub(crate) fn f8_bits(x: f64, format: Format) -> u32 {
    let sign = if x.is_sign_negative() { 0x80 } else { 0 };
    let fraction_bits = format.precision - 1;
    if x.is_nan() {
        return 0x7f;
    }
    if x == 0.0 {
        return sign;
    }
    let x = x.abs().min(format.max);
    let e = exponent(x).max(format.min_exponent);
    let units = (x / power(e - fraction_bits as i32)) as u32;
    let biased = (e - format.min_exponent + 1) as u32;
    if units < 1 << fraction_bits {
        sign | units
    } else {
        sign | (biased << fraction_bits) + (units - (1 << fraction_bits))
    }
}

/// The value of an 8-bit float.
pub(crate) fn f8_value(bits: u32, format: Format) -> f64 {
    let fraction_bits = format.precision - 1;
    let magnitude = bits & 0x7f;
    let biased = magnitude >> fraction_bits;
    let fraction = magnitude & ((1 << fraction_bits) - 1);
    let top = biased == (0x7f >> fraction_bits);
    let value = if format.has_infinity && top {
        if fraction == 0 { f64::INFINITY } else { f64::NAN }
    } else if !format.has_infinity && magnitude == 0x7f {
        f64::NAN
    } else if biased == 0 {
        f64::from(fraction) * power(format.min_exponent - fraction_bits as i32)
    } else {
        f64::from(fraction + (1 << fraction_bits))
            * power(format.min_exponent - fraction_bits as i32 + biased as i32 - 1)
    };
    if bits & 0x80 != 0 { -value } else { value }
}

/// The sum rounded to odd, and the sign of what nearest rounding left out.
fn to_odd(nearest: f64, error: f64) -> f64 {
    if error == 0.0 || !nearest.is_finite() || !error.is_finite() || nearest.to_bits() & 1 == 1 {
        return nearest;
    }
    if nearest == 0.0 {
        return f64::from_bits(1).copysign(error);
    }
    if (error > 0.0) == (nearest > 0.0) {
        f64::from_bits(nearest.to_bits() + 1)
    } else {
        f64::from_bits(nearest.to_bits() - 1)
    }
}

/// a + b rounded to odd.
pub(crate) fn add_odd(a: f64, b: f64) -> f64 {
    let sum = a + b;
    to_odd(sum, sum_error(a, b, sum))
}

fn sum_error(a: f64, b: f64, sum: f64) -> f64 {
    let virtual_b = sum - a;
    (a - (sum - virtual_b)) + (b - virtual_b)
}

/// a / b rounded to odd, for operands of f32 or narrower.
pub(crate) fn div_odd(a: f64, b: f64) -> f64 {
    let quotient = a / b;
    if quotient == 0.0 || !quotient.is_finite() || b.is_infinite() {
        return quotient;
    }
    let rest = -quotient.mul_add(b, -a);
    to_odd(quotient, if b > 0.0 { rest } else { -rest })
}

/// The square root rounded to odd, for operands of f32 or narrower.
pub(crate) fn sqrt_odd(a: f64) -> f64 {
    let root = a.sqrt();
    if root == 0.0 || !root.is_finite() {
        return root;
    }
    to_odd(root, -root.mul_add(root, -a))
}

/// The nearest f64 moved to the one that a directed mode asks for.
pub(crate) fn directed(nearest: f64, error: f64, mode: Round) -> f64 {
    if nearest.is_nan() || error.is_nan() || error == 0.0 {
        return nearest;
    }
    if nearest.is_infinite() {
        let stays = match mode {
            Round::Zero => true,
            Round::Down => nearest > 0.0,
            Round::Up => nearest < 0.0,
            Round::Nearest | Round::Away => false,
        };
        return if stays { f64::MAX.copysign(nearest) } else { nearest };
    }
    match mode {
        Round::Nearest | Round::Away => nearest,
        Round::Down if error < 0.0 => nearest.next_down(),
        Round::Up if error > 0.0 => nearest.next_up(),
        Round::Zero if nearest != 0.0 && (error > 0.0) != (nearest > 0.0) => {
            if nearest > 0.0 {
                nearest.next_down()
            } else {
                nearest.next_up()
            }
        }
        _ => nearest,
    }
}

/// a + b in f64 in any mode.
pub(crate) fn add64(a: f64, b: f64, mode: Round) -> f64 {
    let sum = a + b;
    if mode == Round::Nearest {
        return sum;
    }
    if sum == 0.0 && a != 0.0 {
        return if mode == Round::Down { -0.0 } else { 0.0 };
    }
    if sum == 0.0 && a.is_sign_positive() != b.is_sign_positive() {
        return if mode == Round::Down { -0.0 } else { 0.0 };
    }
    if sum.is_infinite() && a.is_finite() && b.is_finite() {
        return directed(sum, -sum, mode);
    }
    directed(sum, sum_error(a, b, sum), mode)
}

/// a · b + c in f64 in any mode.
pub(crate) fn fma64(a: f64, b: f64, c: f64, mode: Round) -> f64 {
    let nearest = a.mul_add(b, c);
    if mode == Round::Nearest || nearest.is_nan() || !a.is_finite() || !b.is_finite() || !c.is_finite() {
        return nearest;
    }
    if nearest.is_infinite() {
        return directed(nearest, -nearest, mode);
    }
    // Scaled up where the error of the product would underflow.
    let tiny = nearest.abs() < power(-900) && c.abs() < power(-800) && a.abs() < power(300) && b.abs() < power(300);
    let (x, y, z, r) = if tiny {
        let scale = power(500);
        if a.abs() < b.abs() {
            (a * scale, b, c * scale, nearest * scale)
        } else {
            (a, b * scale, c * scale, nearest * scale)
        }
    } else {
        (a, b, c, nearest)
    };
    // The error of a fused product, as a sum of two (Boldo and Muller).
    let product = x * y;
    let low = x.mul_add(y, -product);
    let sum = product + z;
    let sum_low = sum_error(product, z, sum);
    let difference = sum - r;
    let error = difference + (sum_low + low);
    if nearest == 0.0 && error == 0.0 {
        let exact_zero_signs_agree = (product.is_sign_negative() == z.is_sign_negative()) || product != 0.0 && z == 0.0;
        return if exact_zero_signs_agree {
            nearest
        } else if mode == Round::Down {
            -0.0
        } else {
            0.0
        };
    }
    directed(nearest, error, mode)
}

/// a / b in f64 in any mode.
pub(crate) fn div64(a: f64, b: f64, mode: Round) -> f64 {
    let nearest = a / b;
    if mode == Round::Nearest || !a.is_finite() || !b.is_finite() || a == 0.0 || b == 0.0 {
        return nearest;
    }
    if nearest.is_infinite() {
        return directed(nearest, -nearest, mode);
    }
    if nearest == 0.0 {
        return directed(nearest, if (a > 0.0) == (b > 0.0) { 1.0 } else { -1.0 }, mode);
    }
    let scale = |x: f64| if x.abs() < power(-400) { (x * power(500), 500) } else { (x, 0) };
    let ((a, up_a), (b, up_b)) = (scale(a), scale(b));
    let quotient = nearest * power(up_a - up_b);
    let rest = -quotient.mul_add(b, -a);
    directed(nearest, if b > 0.0 { rest } else { -rest }, mode)
}

/// The square root in f64 in any mode.
pub(crate) fn sqrt64(a: f64, mode: Round) -> f64 {
    let nearest = a.sqrt();
    if mode == Round::Nearest || !nearest.is_finite() || nearest == 0.0 {
        return nearest;
    }
    let (root, a) = if a < power(-500) { (nearest * power(250), a * power(500)) } else { (nearest, a) };
    directed(nearest, -root.mul_add(root, -a), mode)
}
