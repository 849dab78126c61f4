//! A driver that follows what its lanes know of each other.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use backend_cuda::driver::{Address, Driver, Event, Function, Lane, Launch, Pinned, Properties};
use tensor_core::Result;

/// Passes calls on and notes when staged memory was last used by the compute lane, and how far the copy lane has waited.
pub(crate) struct Ordered {
    inner: Arc<dyn Driver>,
    /// Whether the compute lane waits at all.
    waits: bool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Calls that the compute lane has been given.
    now: u64,
    /// Its events: when they were recorded.
    events: HashMap<u64, u64>,
    /// Up to when the copy lane knows it to be done.
    known: u64,
    /// Staged memory, and when it was last used.
    staged: HashMap<Address, (usize, u64)>,
    found: Found,
}

/// What was staged: in all, while its memory was in use, and without waiting for all that was to be computed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Found {
    pub(crate) staged: usize,
    pub(crate) too_early: usize,
    pub(crate) beside_computing: usize,
}

/// The compute lane's events: apart from those of the copy lane.
const COMPUTE: u64 = 1 << 40;

impl Ordered {
    pub(crate) fn new(inner: Arc<dyn Driver>, waits: bool) -> Arc<Self> {
        Arc::new(Self { inner, waits, state: Mutex::default() })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn found(&self) -> Found {
        self.state().found.clone()
    }

    /// The compute lane uses what these addresses point into.
    fn uses(&self, addresses: impl IntoIterator<Item = Address>) {
        let state = &mut *self.state();
        state.now += 1;
        for address in addresses {
            for (&start, (len, last)) in &mut state.staged {
                if (start..start + *len as u64).contains(&address) {
                    *last = state.now;
                }
            }
        }
    }
}

impl Driver for Ordered {
    fn properties(&self) -> &Properties {
        self.inner.properties()
    }

    fn free_bytes(&self) -> Result<u64> {
        self.inner.free_bytes()
    }

    fn load(&self, ptx: &str, kernel: &str) -> Result<Function> {
        self.inner.load(ptx, kernel)
    }

    fn alloc(&self, len_bytes: usize) -> Result<Option<Address>> {
        self.inner.alloc(len_bytes)
    }

    fn free(&self, address: Address) -> Result<()> {
        self.state().staged.remove(&address);
        self.inner.free(address)
    }

    fn recycled(&self, address: Address, len_bytes: usize) -> Result<()> {
        self.inner.recycled(address, len_bytes)
    }

    fn pinned(&self, len_bytes: usize) -> Result<Option<Pinned>> {
        self.inner.pinned(len_bytes)
    }

    fn free_pinned(&self, pinned: Pinned) -> Result<()> {
        self.inner.free_pinned(pinned)
    }

    fn stage(&self, pinned: Pinned, to: Address, bytes: &[u8]) -> Result<()> {
        let state = &mut *self.state();
        let last = state.staged.get(&to).map_or(0, |&(_, last)| last);
        state.found.staged += 1;
        state.found.too_early += usize::from(last > state.known);
        state.found.beside_computing += usize::from(state.known < state.now);
        state.staged.insert(to, (bytes.len(), last));
        self.inner.stage(pinned, to, bytes)
    }

    fn record(&self, lane: Lane) -> Result<Event> {
        if lane == Lane::Copy {
            return self.inner.record(lane);
        }
        let state = &mut *self.state();
        let event = COMPUTE + state.events.len() as u64;
        state.events.insert(event, state.now);
        Ok(Event(event))
    }

    fn wait(&self, lane: Lane, event: Event) -> Result<()> {
        match lane {
            Lane::Compute if self.waits => self.inner.wait(lane, event),
            Lane::Compute => Ok(()),
            Lane::Copy => {
                let state = &mut *self.state();
                state.known = state.known.max(state.events[&event.0]);
                Ok(())
            }
        }
    }

    fn done(&self, event: Event) -> Result<bool> {
        self.inner.done(event)
    }

    fn upload(&self, to: Address, bytes: &[u8]) -> Result<()> {
        self.uses([to]);
        self.inner.upload(to, bytes)
    }

    fn download(&self, from: Address, bytes: &mut [u8]) -> Result<()> {
        self.uses([from]);
        self.inner.download(from, bytes)
    }

    fn copy(&self, from: Address, to: Address, len_bytes: usize) -> Result<()> {
        self.uses([from, to]);
        self.inner.copy(from, to, len_bytes)
    }

    fn launch(&self, launch: Launch<'_>) -> Result<()> {
        let words = launch.args.chunks_exact(8);
        self.uses(words.map(|word| Address::from_le_bytes(word.try_into().expect("eight bytes"))));
        self.inner.launch(launch)
    }

    fn synchronize(&self) -> Result<()> {
        self.inner.synchronize()
    }
}
