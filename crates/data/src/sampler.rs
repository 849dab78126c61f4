//! In which order a loader takes the observations.

use tensor_core::{Error, Result};

use crate::Rng;

/// Chooses the observations of each pass, and their order.
pub trait Sampler: Send + Sync {
    /// The indices of pass number `pass` over a set of `n` observations; as many as [`Sampler::len`] says.
    ///
    /// The same pass must give the same indices again: a loader that resumes asks for them anew.
    fn indices(&self, n: usize, pass: u64) -> Vec<usize>;

    /// How many indices a pass over `n` observations has.
    fn len(&self, n: usize) -> usize {
        n
    }
}

/// Chooses whole batches, where their make-up matters: by length, by class.
pub trait BatchSampler: Send + Sync {
    /// The indices of each batch of pass number `pass` over a set of `n` observations.
    fn batches(&self, n: usize, pass: u64) -> Vec<Vec<usize>>;
}

/// 0, 1, 2, …
#[derive(Clone, Copy, Debug, Default)]
pub struct Sequential;

impl Sampler for Sequential {
    fn indices(&self, n: usize, _: u64) -> Vec<usize> {
        (0..n).collect()
    }
}

/// Every observation once, each pass in another order.
#[derive(Clone, Copy, Debug)]
pub struct Shuffled {
    /// Passes of the same seed and number have the same order.
    pub seed: u64,
}

impl Sampler for Shuffled {
    fn indices(&self, n: usize, pass: u64) -> Vec<usize> {
        Rng::new(self.seed, pass).permutation(n)
    }
}

/// Observations drawn with replacement, each as often, on average, as its weight says.
#[derive(Clone, Debug)]
pub struct Weighted {
    /// Sums of the weights up to and including each.
    sums: Vec<f64>,
    draws: usize,
    seed: u64,
}

impl Weighted {
    /// `draws` observations per pass; one weight per observation.
    ///
    /// # Errors
    /// A weight that is negative or not finite, or weights that sum to 0.
    pub fn new(weights: &[f64], draws: usize, seed: u64) -> Result<Self> {
        if let Some(i) = weights.iter().position(|w| !w.is_finite() || *w < 0.0) {
            let weight = weights[i];
            return Err(Error::value(
                "weighted",
                format!("weights must be finite and not negative: weight {i} {weight}"),
            ));
        }
        let sums: Vec<f64> = weights
            .iter()
            .scan(0.0, |sum, w| {
                *sum += w;
                Some(*sum)
            })
            .collect();
        match sums.last() {
            Some(sum) if *sum > 0.0 && sum.is_finite() => Ok(Self { sums, draws, seed }),
            sum => {
                let sum = sum.copied().unwrap_or(0.0);
                Err(Error::value("weighted", format!("weights must have a finite sum above 0: sum {sum}")))
            }
        }
    }
}

impl Sampler for Weighted {
    fn indices(&self, _: usize, pass: u64) -> Vec<usize> {
        let mut rng = Rng::new(self.seed, pass);
        let total = self.sums.last().copied().unwrap_or(0.0);
        let draw = |_| {
            let at = rng.unit() * total;
            // Rounding may put `at` on the total itself: the last observation with a weight is the one before.
            let last = self.sums.partition_point(|&sum| sum < total);
            self.sums.partition_point(|&sum| sum <= at).min(last)
        };
        (0..self.draws).map(draw).collect()
    }

    fn len(&self, _: usize) -> usize {
        self.draws
    }
}
