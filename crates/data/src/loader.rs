//! Batches of a data set, in order, made ahead of time by worker threads.

use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use tensor_core::{Device, Error, Kind, Result};

use crate::collate::{Collate, List, OnDevice, Pad, Single, Stack, Then, With};
use crate::sampler::{BatchSampler, Sampler, Sequential, Shuffled};
use crate::{Batch, Dataset};

mod batches;
mod plan;
mod workers;

pub use batches::Batches;
use batches::Job;
use plan::Plan;

/// Batches of a data set: `for batch in loader.iter() { let (x, y) = batch?; … }`.
///
/// Each call of [`DataLoader::iter`] is a pass. The batches come in the order of the sampler whatever the number of
/// workers. An error ends its pass: it names the sample, and nothing comes after it. No thread outlives the iterator.
///
/// Tensors that the data set or a function of the loader draws at random depend on the seed, the pass and the batch
/// alone: workers do not change them either.
///
/// ```
/// use data::DataLoader;
///
/// let loader = DataLoader::new(vec![1, 2, 3, 4, 5]).list().batch_size(2);
/// let batches = loader.iter().collect::<Result<Vec<_>, _>>()?;
/// assert_eq!(batches, [vec![1, 2], vec![3, 4], vec![5]]);
/// # Ok::<(), tensor_core::Error>(())
/// ```
pub struct DataLoader<D, C = Stack> {
    set: Arc<D>,
    collate: Arc<C>,
    choice: Choice,
    workers: usize,
    prefetch: Option<usize>,
    /// Whether batches move to another memory, so that making them ahead pays.
    uploads: bool,
    cursor: Arc<Mutex<Cursor>>,
}

/// Which observations, and in which groups.
#[derive(Clone)]
struct Choice {
    sampler: Arc<dyn Sampler>,
    batch_sampler: Option<Arc<dyn BatchSampler>>,
    batch_size: usize,
    drop_last: bool,
    seed: u64,
    rank: usize,
    world: usize,
}

/// A place between two batches, to be saved with a checkpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Position {
    /// The number of the pass, from 0.
    pub pass: u64,
    /// The batch of that pass that comes next.
    pub batch: usize,
}

/// Where a loader is, and where its next pass starts.
#[derive(Default)]
struct Cursor {
    now: Position,
    next: Position,
}

impl<D: Dataset> DataLoader<D> {
    /// A loader of stacked batches, one observation each until [`DataLoader::batch_size`] is set.
    pub fn new(set: D) -> Self {
        let choice = Choice {
            sampler: Arc::new(Sequential),
            batch_sampler: None,
            batch_size: 1,
            drop_last: false,
            seed: 0,
            rank: 0,
            world: 1,
        };
        Self {
            set: Arc::new(set),
            collate: Arc::new(Stack),
            choice,
            workers: 0,
            prefetch: None,
            uploads: false,
            cursor: Arc::default(),
        }
    }

    /// Observations of differing sizes: padded at the end with `value`, then stacked.
    pub fn pad(self, value: f64) -> DataLoader<D, Pad> {
        self.collate(|_| Pad { value })
    }

    /// Batches as lists of observations, not stacked.
    pub fn list(self) -> DataLoader<D, List> {
        self.collate(|_| List)
    }

    /// Single observations, without an axis of batches; the batch size no longer matters.
    pub fn single(self) -> DataLoader<D, Single> {
        self.batch_size(1).collate(|_| Single)
    }

    /// Batches made of the observations by a function of one's own.
    pub fn collate_with<F, B>(self, f: F) -> DataLoader<D, With<F>>
    where
        F: Fn(Vec<D::Item>) -> Result<B> + Send + Sync,
    {
        self.collate(|_| With(f))
    }
}

impl<D: Dataset, C> DataLoader<D, C> {
    /// How many observations make a batch. The last batch may be smaller.
    pub fn batch_size(mut self, n: usize) -> Self {
        self.choice.batch_size = n;
        self
    }

    /// Another order each pass, which depends on `seed` and the number of the pass.
    pub fn shuffle(self, seed: u64) -> Self {
        self.seed(seed).sampler(Shuffled { seed })
    }

    /// The seed of what is drawn at random on the way to a batch; 0 unless this or [`DataLoader::shuffle`] says another.
    pub fn seed(mut self, seed: u64) -> Self {
        self.choice.seed = seed;
        self
    }

    /// Whether a last batch that is not full is left out.
    pub fn drop_last(mut self, drop: bool) -> Self {
        self.choice.drop_last = drop;
        self
    }

    /// Which observations to take, and in which order.
    pub fn sampler(mut self, sampler: impl Sampler + 'static) -> Self {
        self.choice.sampler = Arc::new(sampler);
        self
    }

    /// Which batches to take, in place of a sampler and a batch size.
    pub fn batch_sampler(mut self, sampler: impl BatchSampler + 'static) -> Self {
        self.choice.batch_sampler = Some(Arc::new(sampler));
        self
    }

    /// Takes part `rank` of `world` equal parts of each pass, for several processes that train together.
    ///
    /// What does not divide evenly is dropped with [`DataLoader::drop_last`]; otherwise the pass starts over until it
    /// does, so that every process sees as many batches: some observations then come twice.
    pub fn shard(mut self, rank: usize, world: usize) -> Self {
        (self.choice.rank, self.choice.world) = (rank, world);
        self
    }

    /// How many threads make batches; 0 makes them where they are used.
    pub fn workers(mut self, n: usize) -> Self {
        self.workers = n;
        self
    }

    /// How many batches are made ahead of the one in use: two per worker unless said otherwise. Without workers, a
    /// depth above 0 has one thread make them; it is 1 where a GPU is fed, else 0.
    pub fn prefetch(mut self, depth: usize) -> Self {
        self.prefetch = Some(depth);
        self
    }

    /// The number of batches of a pass. 0 for settings that [`DataLoader::iter`] rejects.
    pub fn len(&self) -> usize {
        self.choice.check().map_or(0, |()| self.choice.n_batches(self.set.len(), self.start().pass))
    }

    /// Whether a pass has no batches.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The data set.
    pub fn dataset(&self) -> &D {
        &self.set
    }

    /// The place after the batch handed out last: what to save to go on from there.
    pub fn position(&self) -> Position {
        self.cursor.lock().unwrap_or_else(PoisonError::into_inner).now
    }

    /// Goes on from a saved place: the next pass starts there.
    pub fn resume(&self, position: Position) {
        *self.cursor.lock().unwrap_or_else(PoisonError::into_inner) = Cursor { now: position, next: position };
    }

    fn start(&self) -> Position {
        self.cursor.lock().unwrap_or_else(PoisonError::into_inner).next
    }

    fn collate<B>(self, make: impl FnOnce(Arc<C>) -> B) -> DataLoader<D, B> {
        let Self { set, collate, choice, workers, prefetch, uploads, cursor } = self;
        DataLoader { set, collate: Arc::new(make(collate)), choice, workers, prefetch, uploads, cursor }
    }
}

impl<D: Dataset, C: Collate<D>> DataLoader<D, C> {
    /// Batches passed through `f`, by the workers: a random change of the images, a cast.
    pub fn map<F, B>(self, f: F) -> DataLoader<D, Then<Arc<C>, F>>
    where
        F: Fn(C::Batch) -> Result<B> + Send + Sync,
    {
        self.collate(|before| Then(before, f))
    }

    /// Batches on `device`: the next one is moved there while the one before is in use.
    pub fn device(self, device: &Device) -> DataLoader<D, OnDevice<Arc<C>>>
    where
        C::Batch: Batch,
    {
        let mut loader = self.collate(|before| OnDevice(before, device.physical().clone()));
        loader.uploads = device.info().kind != Kind::Cpu;
        loader
    }

    /// A pass: its batches in order. The next call starts the next pass.
    ///
    /// Dropping the iterator ends the pass; its threads finish the batch they are at.
    pub fn iter(&self) -> Batches<D, C>
    where
        D: 'static,
        C: 'static,
    {
        let start = {
            let mut cursor = self.cursor.lock().unwrap_or_else(PoisonError::into_inner);
            let start = cursor.next;
            *cursor = Cursor { now: start, next: Position { pass: start.pass + 1, batch: 0 } };
            start
        };
        let depth = self.prefetch.unwrap_or(self.workers.saturating_mul(2).max(self.uploads.into()));
        let threads = self.workers.max((depth > 0).into());
        Batches::start(|| self.job(start), self.cursor.clone(), start, threads, depth)
    }

    fn job(&self, start: Position) -> Result<Job<D, C>> {
        self.choice.check()?;
        let plan = Plan::new(&self.choice, self.set.len(), start.pass);
        if start.batch > plan.len() {
            return Err(Error::value(
                "data loader",
                format!(
                    "the position to resume from is past the end: batch {}, batches {}; were the data, the batch size or the \
                     shard others when it was saved?",
                    start.batch,
                    plan.len()
                ),
            ));
        }
        Ok(Job { set: self.set.clone(), collate: self.collate.clone(), plan, seed: self.choice.seed, pass: start.pass })
    }
}

impl<D, C> IntoIterator for &DataLoader<D, C>
where
    D: Dataset + 'static,
    C: Collate<D> + 'static,
{
    type Item = Result<C::Batch>;
    type IntoIter = Batches<D, C>;

    fn into_iter(self) -> Batches<D, C> {
        self.iter()
    }
}
