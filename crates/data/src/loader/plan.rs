//! Which observations make up each batch of a pass.

use tensor_core::{Error, Result};

use super::Choice;

/// The batches of one pass, as indices.
pub(super) enum Plan {
    /// One order, cut into batches of a size; the last may be smaller.
    Even {
        /// The observations of this shard, whole batches only where the rest is dropped.
        order: Vec<usize>,
        /// The size of a batch.
        size: usize,
    },
    /// Batches from a batch sampler.
    Listed(Vec<Vec<usize>>),
}

impl Plan {
    /// The plan of pass number `pass` over `n` observations; the choice has been checked.
    pub(super) fn new(choice: &Choice, n: usize, pass: u64) -> Self {
        if let Some(sampler) = &choice.batch_sampler {
            return Self::Listed(choice.shard(sampler.batches(n, pass)));
        }
        let mut order = choice.shard(choice.sampler.indices(n, pass));
        if choice.drop_last {
            order.truncate(order.len() / choice.batch_size * choice.batch_size);
        }
        Self::Even { order, size: choice.batch_size }
    }

    /// The number of batches.
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Even { order, size } => order.len().div_ceil(*size),
            Self::Listed(batches) => batches.len(),
        }
    }

    /// The indices of batch `b`.
    pub(super) fn batch(&self, b: usize) -> &[usize] {
        match self {
            Self::Even { order, size } => &order[b * size..order.len().min((b + 1) * size)],
            Self::Listed(batches) => &batches[b],
        }
    }
}

impl Choice {
    /// Whether these settings make sense together.
    pub(super) fn check(&self) -> Result<()> {
        if self.batch_size == 0 {
            return Err(Error::value("data loader", "batch_size must be at least 1: batch_size 0"));
        }
        if self.rank >= self.world {
            let (rank, world) = (self.rank, self.world);
            return Err(Error::value("data loader", format!("rank must be below world: rank {rank}, world {world}")));
        }
        Ok(())
    }

    /// The number of batches of a pass, without making its order where that can be told.
    pub(super) fn n_batches(&self, n: usize, pass: u64) -> usize {
        if let Some(sampler) = &self.batch_sampler {
            return self.share(sampler.batches(n, pass).len());
        }
        let observations = self.share(self.sampler.len(n));
        if self.drop_last { observations / self.batch_size } else { observations.div_ceil(self.batch_size) }
    }

    /// How many of `n` fall to this shard.
    fn share(&self, n: usize) -> usize {
        if self.drop_last { n / self.world } else { n.div_ceil(self.world) }
    }

    /// This shard's part: every world-th from its rank on, from the start again past the end.
    fn shard<T: Clone>(&self, all: Vec<T>) -> Vec<T> {
        if self.world == 1 {
            return all;
        }
        (0..self.share(all.len())).map(|i| all[(self.rank + i * self.world) % all.len()].clone()).collect()
    }
}
