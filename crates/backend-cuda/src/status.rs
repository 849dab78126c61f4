//! What kernels find wrong with their input: an index out of range. Each launch that can find something has a slot in
//! device memory; the slots are read when the program waits anyway, so that no launch does.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::ThreadId;

use tensor_core::{Error, Result};

use crate::driver::{Address, Driver};

/// Slots of 8 bytes; when all are taken they are read at once.
const N_SLOTS: usize = 1024;
/// A slot without a finding. Else it holds the first element whose index is wrong, in the upper 31 bits, and the index in the
/// lower 33, which saturates.
const NOTHING: u64 = u64::MAX;

/// The findings of one device.
pub(crate) struct Status {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    slots: Option<Address>,
    /// Slots that no launch has.
    free: Vec<usize>,
    pending: Vec<Pending>,
}

/// What a slot is about.
struct Pending {
    slot: usize,
    /// A finding is reported to the thread that launched.
    thread: ThreadId,
    error: Wrong,
}

/// The error for a wrong index and the row-major position of the element that it belongs to.
pub(crate) type Wrong = Box<dyn Fn(i64, usize) -> Error + Send>;

impl Status {
    pub(crate) fn new() -> Self {
        Self { state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A slot for a launch that may find a wrong index.
    pub(crate) fn slot(&self, driver: &dyn Driver, error: Wrong) -> Result<Address> {
        let mut state = self.state();
        let slots = match state.slots {
            Some(slots) => slots,
            None => {
                let slots = driver.alloc(8 * N_SLOTS)?.ok_or_else(|| {
                    Error::out_of_memory("gather", "no room for the status of kernels; free some memory")
                })?;
                driver.upload(slots, &[0xff; 8 * N_SLOTS])?;
                state.free = (0..N_SLOTS).rev().collect();
                *state.slots.insert(slots)
            }
        };
        if state.free.is_empty() {
            state.read(driver, |_| true)?;
        }
        let slot = state.free.pop().expect("invariant: slots that were read are free");
        state.pending.push(Pending { slot, thread: std::thread::current().id(), error });
        Ok(slots + 8 * slot as u64)
    }

    /// The first finding of this thread's launches since the last time, once all work is done.
    pub(crate) fn check(&self, driver: &dyn Driver) -> Result<()> {
        let thread = std::thread::current().id();
        self.state().read(driver, |pending| pending.thread == thread)
    }
}

impl State {
    /// Reads the slots of some launches, which then are free.
    fn read(&mut self, driver: &dyn Driver, which: impl Fn(&Pending) -> bool) -> Result<()> {
        let Some(slots) = self.slots.filter(|_| self.pending.iter().any(&which)) else { return Ok(()) };
        let mut found = vec![0u64; N_SLOTS];
        driver.download(slots, bytemuck::cast_slice_mut(&mut found))?;
        let (read, left): (Vec<Pending>, Vec<Pending>) = std::mem::take(&mut self.pending).into_iter().partition(which);
        self.pending = left;
        let mut first = Ok(());
        for Pending { slot, error, .. } in read {
            self.free.push(slot);
            if found[slot] != NOTHING {
                driver.upload(slots + 8 * slot as u64, &[0xff; 8])?;
                let index = (found[slot] << 31) as i64 >> 31;
                first = first.and_then(|()| Err(error(index, (found[slot] >> 33) as usize)));
            }
        }
        first
    }
}
