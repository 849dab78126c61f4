//! Random numbers for the order of observations: the workspace's Philox stream, drawn on the host.
//!
//! An order depends on the seed alone: neither a platform nor a later version of another library changes it.

use tensor_core::random::{Key, philox};

/// Keeps orders apart from the numbers that tensors draw from the same seed.
const DOMAIN: u64 = 0x6F72_6465_722F_3031;

/// A stream of random numbers on the host: the same seed and stream give the same numbers everywhere.
#[derive(Clone, Debug)]
pub struct Rng {
    key: Key,
    block: u64,
    words: [u32; 4],
    left: usize,
}

impl Rng {
    /// Stream number `stream` of a seed, for example one per pass; streams hold 2³² blocks of four numbers.
    pub fn new(seed: u64, stream: u64) -> Self {
        Self { key: Key { seed: seed ^ DOMAIN, offset: stream << 32 }, block: 0, words: [0; 4], left: 0 }
    }

    /// The next 32 bits.
    pub fn bits(&mut self) -> u32 {
        if self.left == 0 {
            self.words = philox(self.key, self.block);
            self.block += 1;
            self.left = 4;
        }
        self.left -= 1;
        self.words[self.left]
    }

    /// A number of 0 ≤ x < 1 with 53 random bits.
    pub fn unit(&mut self) -> f64 {
        let bits = u64::from(self.bits()) << 32 | u64::from(self.bits());
        (bits >> 11) as f64 / (1u64 << 53) as f64
    }

    /// An integer of 0 ≤ i < n, each equally likely (Lemire, 2019). 0 for n = 0.
    pub fn below(&mut self, n: usize) -> usize {
        let n = n as u64;
        // The low half is rejected where it falls into the part of 2⁶⁴ that n does not divide.
        let surplus = if n == 0 { 0 } else { n.wrapping_neg() % n };
        loop {
            let bits = u64::from(self.bits()) << 32 | u64::from(self.bits());
            let wide = u128::from(bits) * u128::from(n);
            if wide as u64 >= surplus {
                return (wide >> 64) as usize;
            }
        }
    }

    /// Puts a slice into random order (Fisher–Yates).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            items.swap(i, self.below(i + 1));
        }
    }

    /// 0, 1, …, n − 1 in random order.
    pub fn permutation(&mut self, n: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..n).collect();
        self.shuffle(&mut order);
        order
    }
}
