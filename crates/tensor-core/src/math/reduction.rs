//! The reduction of an angle by multiples of π/2, right for every finite argument (Payne and Hanek).

use super::coefficients::by_width;
use super::{Bits, Format, Real};

/// The bits of 2/π in words, after `mantissa_bits + 3` zeros.
const TWO_OVER_PI_32: [i64; 8] =
    [0x00000028, 0xbe60db93, 0x91054a7f, 0x09d5f47d, 0x4d377036, 0xd8a5664f, 0x10e4107f, 0x9458eaf7];
/// As [`TWO_OVER_PI_32`], for double precision.
const TWO_OVER_PI_64: [u64; 20] = [
    0x0000000000000145,
    0xf306dc9c882a53f8,
    0x4eafa3ea69bb81b6,
    0xc52b3278872083fc,
    0xa2c757bd778ac36e,
    0x48dc74849ba5c00c,
    0x925dd413a32439fc,
    0x3bd63962534e7dd1,
    0x046bea5d768909d3,
    0x38e04d68befc8273,
    0x23ac7306a673e939,
    0x08bf177bf250763f,
    0xf12fffbc0b301fde,
    0x5e2316b414da3eda,
    0x6cfd9e4f96136e9e,
    0x8c7ecd3cbfd45aea,
    0x4f758fd7cbe2f67a,
    0x0e73ef14a525d4d7,
    0xf6bf623f1aba10ac,
    0x06608df8f6d757e1,
];

/// An angle `n·π/2 + high + low` with |high| ≤ π/4.
pub(super) struct Angle<F: Real> {
    /// The quadrant, modulo 4.
    pub(super) n: F::Bits,
    pub(super) high: F,
    pub(super) low: F,
}

/// Reduces the non-negative `x`; any angle for inf and NaN.
///
/// With `x = M·2ᵉ` and `M` an integer, only bits of 2/π from 2^(1−e) on matter to `x·2/π` modulo 4: three words of them
/// are shifted out of the table, and `M` times those words gives the quadrant and two words of fraction.
#[inline(always)]
pub(super) fn reduce<F: Real>(x: F) -> Angle<F> {
    let int = F::Bits::constant;
    let width = F::FORMAT.width();
    let mantissa_bits = F::FORMAT.mantissa_bits();

    let bits = x.to_bits();
    let hidden = int(1).shl(mantissa_bits);
    let mantissa = (bits & hidden.sub(int(1))) | hidden;
    let start = bits.shr(mantissa_bits).sub(int(F::FORMAT.exponent_bias() - 1));
    let [first, second, third] = window::<F>(start);

    // The product modulo 2^(2·width): the fraction of x/(2π), as its two top words.
    let middle = mantissa.mul(second);
    let low = middle.add(mantissa.mul_high(third));
    let carry = F::Bits::select(low.lt_unsigned(middle), int(1), int(0));
    let high = mantissa.mul(first).add(mantissa.mul_high(second)).add(carry);

    // The nearest quadrant; what remains is a signed fraction of π/2 with width − 2 bits in the high word.
    let n = high.add(int(1).shl(width - 3)).shr_logical(width - 2);
    let high = high.sub(n.shl(width - 2));

    // Into floats by three pieces that convert exactly, in units of the middle one's last bit; then times π/2.
    let (top_shift, low_shift) = match F::FORMAT {
        Format::Single => (8, 16),
        Format::Double => (13, 26),
    };
    let power = |exponent: u32| 2f64.powi(exponent as i32);
    let middle_bits = top_shift + width - low_shift;
    let unit = 1.0 / power(2 * width - 2 - low_shift);
    let top = F::from_int(high.shr(top_shift));
    let below = high & int((1 << top_shift) - 1);
    let middle = F::from_int(below.shl(width - low_shift) | low.shr_logical(low_shift));
    let bottom = F::from_int(low & int((1 << low_shift) - 1));
    let fraction = top.fma(F::constant(power(middle_bits)), middle).keep();
    let error = middle - top.fma(F::constant(-power(middle_bits)), fraction).keep();
    let fraction_low = bottom.fma(F::constant(1.0 / power(low_shift)), error);

    let half_pi = by_width::<F>(unit * 1.570_796_370_506_286_6, unit * std::f64::consts::FRAC_PI_2);
    let half_pi_low = by_width::<F>(unit * -4.371_138_828_673_793e-8, unit * 6.123_233_995_736_766e-17);
    let high = (fraction * half_pi).keep();
    let error = fraction.mul_error(half_pi, high);
    let low = fraction.fma(half_pi_low, fraction_low.fma(half_pi, error));

    // Below π/4 the argument is its own remainder, bit for bit.
    let reduced = x.lt(F::constant(std::f64::consts::FRAC_PI_4));
    Angle {
        n: F::Bits::select(reduced, int(0), n),
        high: F::select(reduced, x, high),
        low: F::select(reduced, F::constant(0.0), low),
    }
}

/// Three words of the table's bits from the bit `start` on.
#[inline(always)]
fn window<F: Real>(start: F::Bits) -> [F::Bits; 3] {
    let int = F::Bits::constant;
    let width = F::FORMAT.width();
    let (n_words, top_step) = match F::FORMAT {
        Format::Single => (TWO_OVER_PI_32.len(), 4),
        Format::Double => (TWO_OVER_PI_64.len(), 16),
    };
    let mut words: [F::Bits; 20] = std::array::from_fn(|i| {
        let i = i.min(n_words - 1);
        int(match F::FORMAT {
            Format::Single => TWO_OVER_PI_32[i],
            Format::Double => TWO_OVER_PI_64[i] as i64,
        })
    });

    // A shift by whole words, one bit of the word index at a time. The top bit comes alone.
    let index = start.shr(width.ilog2());
    let mut step = top_step;
    let mut n_needed = 4;
    while step > 0 {
        let is_clear = (index & int(step as i64)).eq(int(0));
        for i in 0..n_needed {
            words[i] = F::Bits::select(is_clear, words[i], words[i + step]);
        }
        step /= 2;
        n_needed = 4 + step.saturating_sub(1);
    }

    // And by the bits within a word.
    let offset = start & int(width as i64 - 1);
    let complement = offset ^ int(width as i64 - 1);
    std::array::from_fn(|i| words[i].shl_by(offset) | words[i + 1].shr_logical(1).shr_logical_by(complement))
}
