//! What the peers share: a small random generator, the shuffled-epoch loop and the timing.

#![forbid(unsafe_code)]

use std::time::{Duration, Instant};

pub const WARM_UP: usize = 10;
pub const MIN_STEPS: usize = 60;
pub const MIN_TIME: Duration = Duration::from_secs(3);
pub const MAX_TIME: Duration = Duration::from_secs(20);

/// xorshift64*
pub struct Rng(u64);

impl Rng {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    pub fn below(&mut self, n: usize) -> usize {
        ((self.next() >> 32) as usize * n) >> 32
    }

    /// `n` floats, uniform in [0, 1).
    pub fn floats(&mut self, n: usize) -> Vec<f32> {
        (0..n).map(|_| (self.next() >> 40) as f32 / (1u32 << 24) as f32).collect()
    }

    /// `n` integers, uniform in `0..high`.
    pub fn labels(&mut self, n: usize, high: usize) -> Vec<u32> {
        (0..n).map(|_| self.below(high) as u32).collect()
    }

    pub fn shuffle(&mut self, v: &mut [u32]) {
        for i in (1..v.len()).rev() {
            v.swap(i, self.below(i + 1));
        }
    }
}

/// Whether the command line asks for this workload (no names given: all of them).
pub fn wanted(workload: &str) -> bool {
    let mut args = std::env::args().skip(1).peekable();
    args.peek().is_none() || args.any(|a| a == workload)
}

/// Trains by calling `step` with the row numbers of one batch after another (reshuffled every
/// epoch, the incomplete last batch dropped); `step` returns the loss. Times each step, prints one
/// JSON line with the median, and the first and last loss to stderr.
pub fn measure(name: &str, workload: &str, rows: usize, batch: usize, mut step: impl FnMut(&[u32]) -> f32) {
    let mut rng = Rng::new(7);
    let mut perm: Vec<u32> = (0..rows as u32).collect();
    let mut times: Vec<f64> = Vec::new();
    let mut first = f32::NAN;
    let mut last;
    let mut done = 0;
    let mut start = Instant::now();
    'train: loop {
        rng.shuffle(&mut perm);
        for idx in perm.chunks_exact(batch) {
            let t = Instant::now();
            last = step(idx);
            let dt = t.elapsed();
            done += 1;
            if done == 1 {
                first = last;
            }
            if done < WARM_UP {
                continue;
            }
            if done == WARM_UP {
                start = Instant::now();
                continue;
            }
            times.push(dt.as_secs_f64() * 1e6);
            let total = start.elapsed();
            if (times.len() >= MIN_STEPS && total >= MIN_TIME) || total >= MAX_TIME {
                break 'train;
            }
        }
    }
    times.sort_by(f64::total_cmp);
    eprintln!("{name} {workload}: loss {first:.4} -> {last:.4}");
    println!(
        r#"{{"impl":"{name}","workload":"{workload}","us_per_step":{:.1},"min":{:.1},"max":{:.1},"steps":{}}}"#,
        times[times.len() / 2],
        times[0],
        times[times.len() - 1],
        times.len()
    );
}
