//! A driver that counts the calls to another.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use backend_cuda::driver::{Address, Driver, Event, Function, Lane, Launch, Pinned, Properties};
use tensor_core::Result;

/// Counts calls by name and passes them on.
pub(crate) struct Watched {
    inner: Arc<dyn Driver>,
    calls: Mutex<BTreeMap<&'static str, usize>>,
}

impl Watched {
    pub(crate) fn new(inner: Arc<dyn Driver>) -> Arc<Self> {
        Arc::new(Self { inner, calls: Mutex::default() })
    }

    fn note(&self, call: &'static str) -> &dyn Driver {
        *self.calls.lock().unwrap_or_else(PoisonError::into_inner).entry(call).or_default() += 1;
        &*self.inner
    }

    /// The calls since the last time that this was asked.
    pub(crate) fn take(&self) -> Calls {
        Calls(std::mem::take(&mut *self.calls.lock().unwrap_or_else(PoisonError::into_inner)))
    }
}

/// How often each call was made.
#[derive(Debug)]
pub(crate) struct Calls(BTreeMap<&'static str, usize>);

impl Calls {
    pub(crate) fn of(&self, call: &str) -> usize {
        self.0.get(call).copied().unwrap_or(0)
    }
}

impl Driver for Watched {
    fn properties(&self) -> &Properties {
        self.inner.properties()
    }

    fn free_bytes(&self) -> Result<u64> {
        self.inner.free_bytes()
    }

    fn load(&self, ptx: &str, kernel: &str) -> Result<Function> {
        self.note("load").load(ptx, kernel)
    }

    fn alloc(&self, len_bytes: usize) -> Result<Option<Address>> {
        self.note("alloc").alloc(len_bytes)
    }

    fn free(&self, address: Address) -> Result<()> {
        self.note("free").free(address)
    }

    fn recycled(&self, address: Address, len_bytes: usize) -> Result<()> {
        self.inner.recycled(address, len_bytes)
    }

    fn pinned(&self, len_bytes: usize) -> Result<Option<Pinned>> {
        self.note("pinned").pinned(len_bytes)
    }

    fn free_pinned(&self, pinned: Pinned) -> Result<()> {
        self.note("free_pinned").free_pinned(pinned)
    }

    fn stage(&self, pinned: Pinned, to: Address, bytes: &[u8]) -> Result<()> {
        self.note("stage").stage(pinned, to, bytes)
    }

    fn record(&self, lane: Lane) -> Result<Event> {
        self.note("record").record(lane)
    }

    fn wait(&self, lane: Lane, event: Event) -> Result<()> {
        self.note("wait").wait(lane, event)
    }

    fn done(&self, event: Event) -> Result<bool> {
        self.inner.done(event)
    }

    fn forget(&self, event: Event) {
        self.inner.forget(event);
    }

    fn upload(&self, to: Address, bytes: &[u8]) -> Result<()> {
        self.note("upload").upload(to, bytes)
    }

    fn download(&self, from: Address, bytes: &mut [u8]) -> Result<()> {
        self.note("download").download(from, bytes)
    }

    fn copy(&self, from: Address, to: Address, len_bytes: usize) -> Result<()> {
        self.note("copy").copy(from, to, len_bytes)
    }

    fn launch(&self, launch: Launch<'_>) -> Result<()> {
        self.note("launch").launch(launch)
    }

    fn synchronize(&self) -> Result<()> {
        self.note("synchronize").synchronize()
    }
}
