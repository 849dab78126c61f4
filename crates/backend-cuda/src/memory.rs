//! The device's memory: freed blocks are kept by size and handed out again. Work is in order on the compute lane, so a block
//! may be reused as soon as its owner is dropped. Blocks that the copy lane fills are kept apart, each with the point of the
//! compute lane at which it was dropped: the copy lane waits for that alone, and not for what is computed meanwhile.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tensor_core::{Error, MemoryStatus, Result};

use crate::driver::{Address, Driver, Lane};
use crate::staging::Mark;

/// Every block is a multiple of this: a vector load never straddles two.
const UNIT_BYTES: usize = 512;

/// A block of memory; goes back to its pool when dropped.
pub(crate) struct Block {
    pool: Arc<Pool>,
    address: Address,
    /// What was asked for.
    len_bytes: usize,
    /// Of one that the copy lane fills: what the compute lane has yet to wait for.
    arrival: Option<Mutex<Option<Arc<Mark>>>>,
}

impl Block {
    /// Where it begins, for work of the compute lane: from the first time on the lane waits for what is copied there.
    pub(crate) fn address(&self) -> Address {
        let arrival = self.arrival.as_ref();
        let pending = arrival.and_then(|mark| mark.lock().unwrap_or_else(PoisonError::into_inner).take());
        if let Some(mark) = pending {
            // A device that is lost reports it to whoever waits next.
            let _ = mark.hold(Lane::Compute);
        }
        self.address
    }

    /// The copy lane has been told to fill it, and will have at this point.
    pub(crate) fn arrives(&mut self, mark: Arc<Mark>) {
        self.arrival = Some(Mutex::new(Some(mark)));
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        let address = self.address();
        self.pool.give_back(address, self.len_bytes, self.arrival.is_some());
    }
}

/// Memory of one device.
pub(crate) struct Pool {
    label: String,
    driver: Arc<dyn Driver>,
    /// Without it every block has exactly the size asked for and is never handed out twice: emulators then see every
    /// access out of bounds or after the end.
    is_pooling: bool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Blocks kept for reuse, by size.
    free: BTreeMap<usize, Vec<Address>>,
    /// Those for the copy lane, oldest first.
    uploads: BTreeMap<usize, VecDeque<(Address, Arc<Mark>)>>,
    used_bytes: usize,
    cached_bytes: usize,
    peak_bytes: usize,
    limit_bytes: Option<usize>,
}

impl Pool {
    pub(crate) fn new(label: &str, driver: Arc<dyn Driver>, is_pooling: bool) -> Arc<Self> {
        Arc::new(Self { label: label.into(), driver, is_pooling, state: Mutex::default() })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn rounded(&self, len_bytes: usize) -> usize {
        if self.is_pooling { len_bytes.max(1).next_multiple_of(UNIT_BYTES) } else { len_bytes.max(1) }
    }

    /// A block, its content unspecified.
    ///
    /// # Errors
    /// Out of memory, when neither what is kept nor the device nor the limit has room.
    pub(crate) fn take(self: &Arc<Self>, len_bytes: usize) -> Result<Block> {
        let size = self.rounded(len_bytes);
        let block = |address| Block { pool: self.clone(), address, len_bytes, arrival: None };
        {
            let mut state = self.state();
            if let Some(address) = state.free.get_mut(&size).and_then(Vec::pop) {
                state.cached_bytes -= size;
                state.note_used(size);
                drop(state);
                self.driver.recycled(address, size)?;
                return Ok(block(address));
            }
            let reserved = state.used_bytes + state.cached_bytes;
            if state.limit_bytes.is_some_and(|limit| reserved + size > limit) {
                drop(state);
                self.release_cached()?;
                state = self.state();
                if state.limit_bytes.is_some_and(|limit| state.used_bytes + size > limit) {
                    let limit = state.limit_bytes;
                    let free = limit.unwrap_or(0).saturating_sub(state.used_bytes);
                    drop(state);
                    return Err(self.out_of_memory(len_bytes, free, limit));
                }
            }
            state.note_used(size);
        }
        let found = self.driver.alloc(size).and_then(|first| match first {
            Some(address) => Ok(Some(address)),
            None => {
                // What is freed in the order of the stream is there for sure once the work before it is done.
                self.release_cached()?;
                self.driver.synchronize()?;
                self.driver.alloc(size)
            }
        });
        match found {
            Ok(Some(address)) => Ok(block(address)),
            failed => {
                self.state().used_bytes -= size;
                Err(failed.err().unwrap_or_else(|| {
                    self.out_of_memory(len_bytes, self.driver.free_bytes().unwrap_or(0) as usize, None)
                }))
            }
        }
    }

    /// A block that the copy lane may fill: what is done with it before is waited for there.
    ///
    /// # Errors
    /// As [`Pool::take`].
    pub(crate) fn take_for_upload(self: &Arc<Self>, len_bytes: usize) -> Result<Block> {
        let size = self.rounded(len_bytes);
        let kept = {
            let mut state = self.state();
            let kept = state.uploads.get_mut(&size).and_then(VecDeque::pop_front);
            if kept.is_some() {
                state.cached_bytes -= size;
                state.note_used(size);
            }
            kept
        };
        let (mut block, dropped) = match kept {
            Some((address, mark)) => {
                self.driver.recycled(address, size)?;
                (Block { pool: self.clone(), address, len_bytes, arrival: None }, mark)
            }
            None => (self.take(len_bytes)?, Mark::new(&self.driver, Lane::Compute)?),
        };
        block.arrival = Some(Mutex::default());
        dropped.hold(Lane::Copy)?;
        Ok(block)
    }

    #[cold]
    fn out_of_memory(&self, request: usize, free: usize, limit: Option<usize>) -> Error {
        let limit = limit.map_or(String::new(), |limit| format!(", limit {}", MemoryStatus::in_units(limit)));
        Error::out_of_memory(
            self.label.clone(),
            format!(
                "out of memory: request {}, free {}{limit}; use a smaller batch, a smaller model or a lower precision",
                MemoryStatus::in_units(request),
                MemoryStatus::in_units(free)
            ),
        )
    }

    fn give_back(&self, address: Address, len_bytes: usize, is_upload: bool) {
        let size = self.rounded(len_bytes);
        let dropped = if self.is_pooling && is_upload { Mark::new(&self.driver, Lane::Compute).ok() } else { None };
        let mut state = self.state();
        state.used_bytes -= size;
        if self.is_pooling {
            state.cached_bytes += size;
            match dropped {
                Some(mark) => state.uploads.entry(size).or_default().push_back((address, mark)),
                None => state.free.entry(size).or_default().push(address),
            }
        } else {
            drop(state);
            // A device that is lost reports it to whoever waits next.
            let _ = self.driver.free(address);
        }
    }

    /// Gives what is kept back to the device.
    pub(crate) fn release_cached(&self) -> Result<()> {
        let (free, uploads) = {
            let mut state = self.state();
            state.cached_bytes = 0;
            (std::mem::take(&mut state.free), std::mem::take(&mut state.uploads))
        };
        let uploads = uploads.into_values().flatten().map(|(address, _)| address);
        free.into_values().flatten().chain(uploads).try_for_each(|address| self.driver.free(address))
    }

    pub(crate) fn status(&self) -> Result<MemoryStatus> {
        let free_bytes = Some(self.driver.free_bytes()? as usize);
        let total_bytes = Some(self.driver.properties().total_bytes as usize);
        let state = self.state();
        Ok(MemoryStatus {
            used_bytes: state.used_bytes,
            reserved_bytes: state.used_bytes + state.cached_bytes,
            peak_bytes: state.peak_bytes,
            limit_bytes: state.limit_bytes,
            total_bytes,
            free_bytes,
        })
    }

    pub(crate) fn set_limit(&self, bytes: Option<usize>) {
        self.state().limit_bytes = bytes;
    }

    pub(crate) fn reset_peak(&self) {
        let mut state = self.state();
        state.peak_bytes = state.used_bytes;
    }
}

impl State {
    fn note_used(&mut self, size: usize) {
        self.used_bytes += size;
        self.peak_bytes = self.peak_bytes.max(self.used_bytes);
    }
}
