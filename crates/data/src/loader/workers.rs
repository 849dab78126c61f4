//! Threads that make numbered things ahead of time, handed out in order.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread::JoinHandle;

use tensor_core::{Error, Result};

/// Worker w of n makes numbers w, w + n, w + 2n, … of a range and sends them down a bounded channel of its own: the
/// order is kept without sorting, and no worker runs further ahead than its channel holds.
///
/// Dropping it stops the workers and waits for them.
pub(super) struct Workers<T> {
    first: usize,
    channels: Vec<Receiver<Result<T>>>,
    threads: Vec<JoinHandle<()>>,
}

impl<T: Send + 'static> Workers<T> {
    /// Starts `n` threads that run `make` on every number of `range`, up to `depth` ahead of the last one received.
    pub(super) fn start(
        n: usize,
        depth: usize,
        range: std::ops::Range<usize>,
        make: impl Fn(usize) -> Result<T> + Send + Sync + 'static,
    ) -> Result<Self> {
        let make = Arc::new(make);
        let (n, depth) = (n.min(range.len()), depth.min(range.len()));
        let mut workers = Self { first: range.start, channels: Vec::with_capacity(n), threads: Vec::with_capacity(n) };
        for worker in 0..n {
            // Besides what its channel holds, a worker has one in hand.
            let (sender, receiver) = sync_channel(depth.div_ceil(n).saturating_sub(1));
            let (numbers, make) = ((range.start + worker..range.end).step_by(n), make.clone());
            let run = move || {
                for number in numbers {
                    let made = make(number);
                    let failed = made.is_err();
                    if sender.send(made).is_err() || failed {
                        break;
                    }
                }
            };
            let thread = std::thread::Builder::new().name(format!("data-{worker}")).spawn(run);
            workers.threads.push(thread.map_err(|error| {
                Error::io("data loader", format!("a worker thread cannot be started: worker {worker}"))
                    .with_source(error)
            })?);
            workers.channels.push(receiver);
        }
        Ok(workers)
    }

    /// Waits for a number; they must be asked for in order.
    pub(super) fn receive(&self, number: usize) -> Result<T> {
        let worker = (number - self.first) % self.channels.len();
        self.channels[worker].recv().unwrap_or_else(|_| {
            Err(Error::other("data loader", format!("a worker thread ended early: worker {worker}, batch {number}")))
        })
    }
}

impl<T> Drop for Workers<T> {
    fn drop(&mut self) {
        // Without receivers, a worker that waits to send wakes up and ends.
        self.channels.clear();
        for thread in self.threads.drain(..) {
            // A worker catches panics of user code; what is left is nothing that a drop could report.
            let _ = thread.join();
        }
    }
}
