//! Random numbers: Philox 4x32-10 (Salmon et al., 2011), counter-based, so that element i of a tensor depends on the
//! key and on i alone, on every device.
//!
//! The streams: a process-wide default, reseeded with [`seed`], and scoped ones ([`fork`], [`with_stream`]) that replay.
//! Here too is how a block's words become numbers ([`uniform_f32`], [`normal_f32`], [`integer`], …), which every backend
//! computes alike: uniform, integer and Bernoulli numbers agree to the bit, normal ones to the rounding of ln, sin and cos.

use std::cell::RefCell;
use std::f64::consts::TAU;
use std::sync::{Mutex, PoisonError};

use half::{bf16, f16};

use crate::op::Distribution;
use crate::{DType, math};

/// Which numbers of which stream: the seed, and the position of the first block of four.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    /// The stream's seed: Philox's key.
    pub seed: u64,
    /// The first counter value; element i uses block offset + ⌊i/k⌋, of which it is the (i mod k)-th number; k is
    /// [`per_block`].
    pub offset: u64,
}

/// A position in a stream of random numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stream {
    seed: u64,
    offset: u64,
}

impl Stream {
    /// The stream of a seed, from its start.
    pub fn new(seed: u64) -> Self {
        Self { seed, offset: 0 }
    }

    /// The stream's seed and position, to be saved.
    pub fn position(&self) -> (u64, u64) {
        (self.seed, self.offset)
    }

    /// The stream of a seed at a position.
    pub fn at((seed, offset): (u64, u64)) -> Self {
        Self { seed, offset }
    }

    /// Takes the key for `n` elements and moves on. Each tensor starts at a block of its own.
    pub fn take(&mut self, n: usize) -> Key {
        let key = Key { seed: self.seed, offset: self.offset };
        self.offset = self.offset.wrapping_add(n_blocks(n));
        key
    }
}

/// How many blocks a stream moves on by for `n` elements: enough for two per block, and at least one.
pub fn n_blocks(n: usize) -> u64 {
    (n as u64).div_ceil(2).max(1)
}

static DEFAULT: Mutex<Stream> = Mutex::new(Stream { seed: 0, offset: 0 });

thread_local! {
    static SCOPED: RefCell<Option<Stream>> = const { RefCell::new(None) };
}

/// Restarts the default stream from a seed: the same program then draws the same numbers on every device.
pub fn seed(seed: u64) {
    *DEFAULT.lock().unwrap_or_else(PoisonError::into_inner) = Stream::new(seed);
}

/// Puts the default stream at a position that [`state`] gave before.
pub fn restore(stream: Stream) {
    *DEFAULT.lock().unwrap_or_else(PoisonError::into_inner) = stream;
}

fn with_current<R>(f: impl FnOnce(&mut Stream) -> R) -> R {
    SCOPED.with_borrow_mut(|scoped| match scoped {
        Some(stream) => f(stream),
        None => f(&mut DEFAULT.lock().unwrap_or_else(PoisonError::into_inner)),
    })
}

/// The key for `n` elements of the current stream.
pub fn take(n: usize) -> Key {
    with_current(|stream| stream.take(n))
}

/// A stream of its own, drawn from the current one.
pub fn fork() -> Stream {
    let key = take(4);
    let block = philox(key, 0);
    Stream::new(u64::from(block[0]) << 32 | u64::from(block[1]))
}

/// Runs `f` on this thread with `stream` as the current one; the same stream replays the same numbers.
pub fn with_stream<R>(stream: Stream, f: impl FnOnce() -> R) -> R {
    struct Restore(Option<Stream>);
    impl Drop for Restore {
        fn drop(&mut self) {
            SCOPED.with_borrow_mut(|scoped| *scoped = self.0.take());
        }
    }
    let _restore = Restore(SCOPED.with_borrow_mut(|scoped| scoped.replace(stream)));
    f()
}

/// The current position of the default stream, to be saved with a checkpoint.
pub fn state() -> Stream {
    DEFAULT.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

const MULTIPLIERS: [u32; 2] = [0xD251_1F53, 0xCD9E_8D57];
const WEYL: [u32; 2] = [0x9E37_79B9, 0xBB67_AE85];

/// Block `block` of a key: four 32-bit words, ten rounds.
#[inline(always)]
pub fn philox(key: Key, block: u64) -> [u32; 4] {
    let counter = key.offset.wrapping_add(block);
    rounds([counter as u32, (counter >> 32) as u32, 0, 0], [key.seed as u32, (key.seed >> 32) as u32])
}

#[inline(always)]
fn rounds(mut c: [u32; 4], mut k: [u32; 2]) -> [u32; 4] {
    for _ in 0..10 {
        let p0 = u64::from(MULTIPLIERS[0]) * u64::from(c[0]);
        let p1 = u64::from(MULTIPLIERS[1]) * u64::from(c[2]);
        c = [(p1 >> 32) as u32 ^ c[1] ^ k[0], p1 as u32, (p0 >> 32) as u32 ^ c[3] ^ k[1], p0 as u32];
        k = [k[0].wrapping_add(WEYL[0]), k[1].wrapping_add(WEYL[1])];
    }
    c
}

/// How many elements a block gives: 2 where one takes 64 bits (f64, and integers of any width), else 4.
pub const fn per_block(distribution: Distribution, dtype: DType) -> usize {
    match distribution {
        Distribution::Integer { .. } => 2,
        Distribution::Bernoulli { .. } => 4,
        Distribution::Uniform { .. } | Distribution::Normal { .. } => {
            if matches!(dtype, DType::F64) {
                2
            } else {
                4
            }
        }
    }
}

/// The word's upper 24 bits as a number in [0, 1).
///
/// Uniform is then `u · (high − low) + low`, the factor taken in f64 and rounded to the type that is computed in, product
/// and sum rounded one by one; what lies above [`largest_below`] becomes that. Normal is `z · std + mean` likewise.
#[inline(always)]
pub fn uniform_f32(word: u32) -> f32 {
    (word >> 8) as f32 * (1.0 / 16_777_216.0)
}

/// The largest number of `dtype` below `high`, so that rounding never gives `high` itself; `low` if there is none from it on.
pub fn largest_below(low: f64, high: f64, dtype: DType) -> f64 {
    // From the nearest number one step down where it is not below.
    let below = match dtype {
        DType::F16 => (0..2)
            .map(|steps| down(f16::from_f64(high), steps, f16::to_bits, f16::from_bits).to_f64())
            .find(|&v| v < high),
        DType::BF16 => (0..2)
            .map(|steps| down(bf16::from_f64(high), steps, bf16::to_bits, bf16::from_bits).to_f64())
            .find(|&v| v < high),
        DType::F32 => Some(f64::from(high as f32)).filter(|&v| v < high).or(Some(f64::from((high as f32).next_down()))),
        _ => Some(high.next_down()),
    };
    below.map_or(low, |below| below.max(low))
}

/// `steps` numbers further down, of 16 bits.
fn down<T: Copy>(from: T, steps: u16, to_bits: fn(T) -> u16, from_bits: fn(u16) -> T) -> T {
    (0..steps).fold(from, |v, _| {
        from_bits(match to_bits(v) {
            0 | 0x8000 => 0x8001,
            bits if bits & 0x8000 == 0 => bits - 1,
            bits => bits + 1,
        })
    })
}

/// The upper 53 bits of two words, the first one above, as a number in [0, 1).
#[inline(always)]
pub fn uniform_f64(words: [u32; 2]) -> f64 {
    (join(words) >> 11) as f64 * (1.0 / 9_007_199_254_740_992.0)
}

/// Two standard normal numbers from two words (Box and Muller, 1958): √(−2 ln(1 − u)) times cos and sin of 2πv.
/// Words 0 and 1 of a block give its elements 0 and 1, words 2 and 3 its elements 2 and 3.
#[inline(always)]
pub fn normal_f32(words: [u32; 2]) -> [f32; 2] {
    let (u, angle) = (1.0 - uniform_f32(words[0]), uniform_f32(words[1]) * TAU as f32);
    let radius = (-2.0 * math::ln(u)).sqrt();
    [radius * math::cos(angle), radius * math::sin(angle)]
}

/// Two standard normal numbers from a block: [`normal_f32`] in f64.
#[inline(always)]
pub fn normal_f64(block: [u32; 4]) -> [f64; 2] {
    let (u, angle) = (1.0 - uniform_f64([block[0], block[1]]), uniform_f64([block[2], block[3]]) * TAU);
    let radius = (-2.0 * math::ln(u)).sqrt();
    [radius * math::cos(angle), radius * math::sin(angle)]
}

/// An integer in [low, high) from two words, the first one above: low + ⌊w · (high − low) / 2⁶⁴⌋.
#[inline(always)]
pub fn integer(words: [u32; 2], low: i64, high: i64) -> i64 {
    let range = high.wrapping_sub(low) as u64;
    low.wrapping_add(((u128::from(join(words)) * u128::from(range)) >> 64) as i64)
}

/// True with probability `p`: u < p in f32.
#[inline(always)]
pub fn bernoulli(word: u32, p: f64) -> bool {
    uniform_f32(word) < p as f32
}

#[inline(always)]
fn join(words: [u32; 2]) -> u64 {
    u64::from(words[0]) << 32 | u64::from(words[1])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The known answers of the Random123 library (Salmon et al., 2011) for philox4x32, ten rounds: counters with
    /// empty upper half, which is what a key's blocks use.
    #[test]
    fn philox_gives_the_published_blocks() {
        let cases = [(Key { seed: 0, offset: 0 }, [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8])];
        for (key, block) in cases {
            assert_eq!(philox(key, 0), block, "{key:?}");
        }
        // A full counter and key, through the rounds themselves.
        assert_eq!(rounds([u32::MAX; 4], [u32::MAX; 2]), [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]);
        assert_eq!(
            rounds([0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344], [0xa409_3822, 0x299f_31d0]),
            [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1]
        );
    }

    #[test]
    fn a_block_is_a_function_of_seed_and_counter() {
        let key = Key { seed: 7, offset: u64::MAX };
        assert_eq!(philox(key, 1), philox(Key { seed: 7, offset: 0 }, 0), "the counter wraps");
        assert_ne!(philox(key, 0), philox(Key { seed: 8, offset: u64::MAX }, 0));
        assert_eq!(philox(Key { seed: 1, offset: 5 }, 2), philox(Key { seed: 1, offset: 0 }, 7));
    }

    #[test]
    fn words_become_numbers_at_the_edges() {
        assert_eq!((uniform_f32(0), uniform_f32(u32::MAX)), (0.0, 1.0 - f32::EPSILON / 2.0));
        assert_eq!((uniform_f64([0; 2]), uniform_f64([u32::MAX; 2])), (0.0, 1.0 - f64::EPSILON / 2.0));
        assert_eq!((integer([0; 2], -3, 4), integer([u32::MAX; 2], -3, 4)), (-3, 3));
        assert_eq!(
            (integer([0; 2], i64::MIN, i64::MAX), integer([u32::MAX; 2], i64::MIN, i64::MAX)),
            (i64::MIN, i64::MAX - 1)
        );
        assert_eq!(largest_below(0.0, 1.0, DType::F32), 1.0 - f64::from(f32::EPSILON) / 2.0);
        assert_eq!(largest_below(0.0, 1.0, DType::F16), 1.0 - 0.5f64.powi(11));
        assert_eq!(largest_below(-1.0, 0.0, DType::BF16), -bf16::MIN_POSITIVE_SUBNORMAL.to_f64());
        assert_eq!(largest_below(0.0, 0.3, DType::F16), 0.299_804_687_5);
        assert_eq!(largest_below(2.0, 2.0, DType::F64), 2.0);
        assert!(!bernoulli(0, 0.0) && bernoulli(u32::MAX, 1.0));
        assert!(normal_f32([u32::MAX, 0])[0].is_finite() && normal_f64([u32::MAX; 4])[0].is_finite());
    }

    #[test]
    fn numbers_have_their_distribution() {
        let n = 100_000;
        let key = Key { seed: 3, offset: 0 };
        let normal: Vec<f64> = (0..n / 4)
            .flat_map(|b| {
                let w = philox(key, b);
                [normal_f32([w[0], w[1]]), normal_f32([w[2], w[3]])].concat()
            })
            .map(f64::from)
            .collect();
        let moment = |p: i32| normal.iter().map(|z| z.powi(p)).sum::<f64>() / normal.len() as f64;
        // Five standard errors of each sample moment.
        let limit = |variance: f64| 5.0 * (variance / n as f64).sqrt();
        assert!(moment(1).abs() < limit(1.0) && (moment(2) - 1.0).abs() < limit(2.0), "{} {}", moment(1), moment(2));
        assert!(moment(3).abs() < limit(15.0) && (moment(4) - 3.0).abs() < limit(96.0), "{} {}", moment(3), moment(4));
        let mut counts = [0u32; 7];
        (0..n).for_each(|b| counts[(integer([philox(key, b)[0], philox(key, b)[1]], -3, 4) + 3) as usize] += 1);
        let p = 1.0 / 7.0;
        let expected = n as f64 * p;
        let chi: f64 = counts.iter().map(|&c| (f64::from(c) - expected).powi(2) / expected).sum();
        assert!(chi < 30.0, "chi square of six degrees {chi}: {counts:?}");
    }

    #[test]
    fn scoped_streams_replay_and_leave_the_default_alone() {
        let stream = Stream::new(11);
        let draw = || (take(10), take(1), fork());
        let (a, b) = (with_stream(stream.clone(), draw), with_stream(stream, draw));
        assert_eq!(a, b);
        let stream = Stream::new(5);
        assert_eq!(Stream::at(stream.position()), stream);
        let outcome = std::panic::catch_unwind(|| with_stream(Stream::new(1), || panic!("inside")));
        assert!(outcome.is_err());
        assert!(SCOPED.with_borrow(Option::is_none), "a panic leaves no scoped stream behind");
    }
}
