//! One pass over a loader's batches.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};

use tensor_core::Result;
use tensor_core::random::{Key, Stream, philox, with_stream};

use super::plan::Plan;
use super::workers::Workers;
use super::{Cursor, Position};
use crate::collate::Collate;
use crate::dataset::{Dataset, panicked};

/// What a pass needs to make any of its batches.
pub(super) struct Job<D, C> {
    pub(super) set: Arc<D>,
    pub(super) collate: Arc<C>,
    pub(super) plan: Plan,
    pub(super) seed: u64,
    pub(super) pass: u64,
}

impl<D: Dataset, C: Collate<D>> Job<D, C> {
    fn make(&self, batch: usize) -> Result<C::Batch> {
        let words = philox(Key { seed: self.seed, offset: self.pass << 32 }, batch as u64);
        let stream = Stream::new(u64::from(words[0]) << 32 | u64::from(words[1]));
        let collate = || with_stream(stream, || self.collate.collate(&self.set, self.plan.batch(batch)));
        catch_unwind(AssertUnwindSafe(collate))
            .unwrap_or_else(|payload| Err(panicked(&*payload)))
            .map_err(|error| error.at(format_args!("batch {batch}")))
    }
}

/// The batches of a pass. See [`super::DataLoader::iter`].
pub struct Batches<D: Dataset, C: Collate<D>> {
    state: State<D, C>,
    cursor: Arc<Mutex<Cursor>>,
    /// The next batch.
    position: Position,
    end: usize,
}

enum State<D: Dataset, C: Collate<D>> {
    /// Batches are made when asked for.
    Here(Job<D, C>),
    /// Threads make them.
    Threads(Workers<C::Batch>),
    /// The pass could not start.
    Failed(tensor_core::Error),
    /// Nothing is left.
    Over,
}

impl<D: Dataset + 'static, C: Collate<D> + 'static> Batches<D, C> {
    pub(super) fn start(
        job: impl FnOnce() -> Result<Job<D, C>>,
        cursor: Arc<Mutex<Cursor>>,
        position: Position,
        threads: usize,
        depth: usize,
    ) -> Self {
        let state = job().and_then(|job| {
            let end = job.plan.len();
            let state = if position.batch == end {
                State::Over
            } else if threads == 0 {
                State::Here(job)
            } else {
                State::Threads(Workers::start(threads, depth, position.batch..end, move |batch| job.make(batch))?)
            };
            Ok((state, end))
        });
        let (state, end) = state.unwrap_or_else(|error| (State::Failed(error), position.batch));
        Self { state, cursor, position, end }
    }
}

impl<D: Dataset, C: Collate<D>> Iterator for Batches<D, C> {
    type Item = Result<C::Batch>;

    fn next(&mut self) -> Option<Self::Item> {
        let made = match std::mem::replace(&mut self.state, State::Over) {
            State::Over => return None,
            State::Failed(error) => return Some(Err(error)),
            State::Here(job) => {
                let made = job.make(self.position.batch);
                self.state = State::Here(job);
                made
            }
            State::Threads(workers) => {
                let made = workers.receive(self.position.batch);
                self.state = State::Threads(workers);
                made
            }
        };
        if made.is_ok() {
            self.position.batch += 1;
        }
        let last = self.position.batch == self.end;
        if made.is_err() || last {
            // Ends the threads before the caller goes on.
            self.state = State::Over;
        }
        if made.is_ok() {
            let pass = self.position.pass;
            let mut cursor = self.cursor.lock().unwrap_or_else(PoisonError::into_inner);
            if cursor.now.pass == pass {
                cursor.now = if last { Position { pass: pass + 1, batch: 0 } } else { self.position };
            }
        }
        Some(made)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        match self.state {
            State::Over => (0, Some(0)),
            State::Failed(_) => (1, Some(1)),
            // An error ends the pass early.
            State::Here(_) | State::Threads(_) => (1, Some(self.end - self.position.batch)),
        }
    }
}
