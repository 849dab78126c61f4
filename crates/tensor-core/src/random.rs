//! Random numbers: Philox 4x32-10 (Salmon et al., 2011), counter-based, so that element i of a tensor depends on the
//! key and on i alone, on every device.
//!
//! The streams: a process-wide default, reseeded with [`seed`], and scoped ones ([`fork`], [`with_stream`]) that replay.

use std::cell::RefCell;
use std::sync::{Mutex, PoisonError};

/// Which numbers of which stream: the seed, and the position of the first block of four.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    /// The stream's seed: Philox's key.
    pub seed: u64,
    /// The first counter value; a tensor of n elements uses counters offset + ⌊i/4⌋ (f64 and i64: ⌊i/2⌋).
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

    /// Takes the key for `n` elements and moves on. Each tensor starts at a block of its own.
    pub fn take(&mut self, n: usize) -> Key {
        let key = Key { seed: self.seed, offset: self.offset };
        self.offset = self.offset.wrapping_add((n as u64).div_ceil(2).max(1));
        key
    }
}

static DEFAULT: Mutex<Stream> = Mutex::new(Stream { seed: 0, offset: 0 });

thread_local! {
    static SCOPED: RefCell<Option<Stream>> = const { RefCell::new(None) };
}

/// Restarts the default stream from a seed: the same program then draws the same numbers on every device.
pub fn seed(seed: u64) {
    *DEFAULT.lock().unwrap_or_else(PoisonError::into_inner) = Stream::new(seed);
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
    let mut c = [counter as u32, (counter >> 32) as u32, 0, 0];
    let mut k = [key.seed as u32, (key.seed >> 32) as u32];
    for _ in 0..10 {
        let p0 = u64::from(MULTIPLIERS[0]) * u64::from(c[0]);
        let p1 = u64::from(MULTIPLIERS[1]) * u64::from(c[2]);
        c = [(p1 >> 32) as u32 ^ c[1] ^ k[0], p1 as u32, (p0 >> 32) as u32 ^ c[3] ^ k[1], p0 as u32];
        k = [k[0].wrapping_add(WEYL[0]), k[1].wrapping_add(WEYL[1])];
    }
    c
}
