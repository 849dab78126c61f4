//! How a step is timed: rows are reshuffled every epoch, an incomplete batch is dropped, and single steps are timed after
//! a warm-up until there are enough of them and enough time has passed.

use consort::prelude::*;
use std::time::{Duration, Instant};

/// How many steps are run and timed.
pub struct Protocol {
    warm_up_steps: usize,
    min_steps: usize,
    min_time: Duration,
    max_time: Duration,
}

impl Protocol {
    /// What figures are published from.
    pub const FULL: Self =
        Self { warm_up_steps: 10, min_steps: 60, min_time: Duration::from_secs(3), max_time: Duration::from_secs(20) };

    /// For a GPU, whose steps are short, in a program that has little time.
    pub const BRIEF: Self = Self {
        warm_up_steps: 20,
        min_steps: 60,
        min_time: Duration::from_millis(800),
        max_time: Duration::from_secs(5),
    };

    /// One step: it runs.
    pub const QUICK: Self =
        Self { warm_up_steps: 0, min_steps: 1, min_time: Duration::ZERO, max_time: Duration::from_secs(20) };
}

/// Calls `step` with the row numbers of one batch after another; the microseconds that each call after the warm-up took.
pub(crate) fn time_steps(
    protocol: &Protocol,
    n_rows: usize,
    batch_size: usize,
    mut step: impl FnMut(&[i64]) -> Result<f32>,
) -> Result<Vec<f64>> {
    let mut batches = Batches::new(n_rows, batch_size);
    for _ in 0..protocol.warm_up_steps {
        step(batches.next_rows())?;
    }
    let mut microseconds = Vec::new();
    let begin = Instant::now();
    loop {
        let rows = batches.next_rows();
        let start = Instant::now();
        step(rows)?;
        microseconds.push(start.elapsed().as_secs_f64() * 1e6);
        let elapsed = begin.elapsed();
        let enough = elapsed >= protocol.min_time && microseconds.len() >= protocol.min_steps;
        if enough || elapsed >= protocol.max_time {
            return Ok(microseconds);
        }
    }
}

/// Row numbers of one batch after another, in a new order each epoch.
struct Batches {
    rows: Vec<i64>,
    batch_size: usize,
    next: usize,
    random: u64,
}

impl Batches {
    fn new(n_rows: usize, batch_size: usize) -> Self {
        let rows = (0..).take(n_rows).collect();
        Self { rows, batch_size, next: n_rows, random: 0x9E37_79B9_7F4A_7C15 }
    }

    fn next_rows(&mut self) -> &[i64] {
        if self.next + self.batch_size > self.rows.len() {
            self.shuffle();
            self.next = 0;
        }
        self.next += self.batch_size;
        &self.rows[self.next - self.batch_size..self.next]
    }

    /// Fisher–Yates, with xorshift64*.
    fn shuffle(&mut self) {
        for last in (1..self.rows.len()).rev() {
            self.random ^= self.random >> 12;
            self.random ^= self.random << 25;
            self.random ^= self.random >> 27;
            let high = self.random.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 32;
            self.rows.swap(last, (high as usize * (last + 1)) >> 32);
        }
    }
}
