//! Uploads on the copy lane: through buffers of pinned memory, so that the program does not wait and computing goes on.
//!
//! A buffer is used again once its copy is done; where none is free, the caller uploads on the compute lane.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tensor_core::Result;

use crate::driver::{Driver, Event, Lane, Pinned};
use crate::memory::{Block, Pool};

/// From so many bytes on an upload is worth two events.
pub(crate) const LEAST_BYTES: usize = 64 << 10;
/// Buffers at most: one is filled while others are copied.
const MAX_BUFFERS: usize = 4;

/// A point that a lane has reached or will reach.
pub(crate) struct Mark {
    driver: Arc<dyn Driver>,
    event: Event,
}

impl Mark {
    /// After all work that the lane has been given so far.
    pub(crate) fn new(driver: &Arc<dyn Driver>, lane: Lane) -> Result<Arc<Self>> {
        let event = driver.record(lane)?;
        Ok(Arc::new(Self { driver: driver.clone(), event }))
    }

    /// Lets what a lane is given from now on wait for it.
    pub(crate) fn hold(&self, lane: Lane) -> Result<()> {
        self.driver.wait(lane, self.event)
    }

    fn is_done(&self) -> bool {
        self.driver.done(self.event).unwrap_or(false)
    }
}

impl Drop for Mark {
    fn drop(&mut self) {
        self.driver.forget(self.event);
    }
}

/// The buffers of a device.
pub(crate) struct Staging {
    driver: Arc<dyn Driver>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    idle: Vec<Buffer>,
    /// With those that are being filled.
    n_buffers: usize,
}

struct Buffer {
    pinned: Pinned,
    len_bytes: usize,
    /// The end of its last copy.
    copied: Option<Arc<Mark>>,
}

impl Buffer {
    fn is_free(&self) -> bool {
        self.copied.as_ref().is_none_or(|mark| mark.is_done())
    }
}

impl Staging {
    pub(crate) fn new(driver: Arc<dyn Driver>) -> Self {
        Self { driver, state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A block that holds these bytes once the copy lane is that far, which whoever reads it waits for; nothing if no
    /// buffer is free or the driver has no such lane.
    pub(crate) fn upload(&self, pool: &Arc<Pool>, bytes: &[u8]) -> Result<Option<Block>> {
        let Some(mut buffer) = self.buffer(bytes.len())? else { return Ok(None) };
        let uploaded = pool.take_for_upload(bytes.len()).and_then(|mut block| {
            self.driver.stage(buffer.pinned, block.address(), bytes)?;
            let copied = Mark::new(&self.driver, Lane::Copy)?;
            buffer.copied = Some(copied.clone());
            block.arrives(copied);
            Ok(block)
        });
        self.state().idle.push(buffer);
        uploaded.map(Some)
    }

    /// A buffer of so many bytes that no copy reads.
    fn buffer(&self, len_bytes: usize) -> Result<Option<Buffer>> {
        let mut state = self.state();
        let free = |state: &State, least: usize| {
            state.idle.iter().position(|buffer| buffer.len_bytes >= least && buffer.is_free())
        };
        if let Some(i) = free(&state, len_bytes) {
            return Ok(Some(state.idle.swap_remove(i)));
        }
        if state.n_buffers == MAX_BUFFERS {
            let Some(small) = free(&state, 0) else { return Ok(None) };
            let small = state.idle.swap_remove(small);
            state.n_buffers -= 1;
            self.driver.free_pinned(small.pinned)?;
        }
        let len_bytes = len_bytes.next_power_of_two();
        let pinned = self.driver.pinned(len_bytes)?;
        state.n_buffers += usize::from(pinned.is_some());
        Ok(pinned.map(|pinned| Buffer { pinned, len_bytes, copied: None }))
    }
}
