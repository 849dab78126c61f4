//! A driver that does nothing: what the host does is seen, however large the tensors are.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use backend_cuda::driver::{Address, Driver, Function, Launch, Properties};
use tensor_core::Result;

/// Gives addresses away and launches nothing.
pub(crate) struct Nothing {
    properties: Properties,
    next: AtomicU64,
    n_launches: AtomicU64,
}

impl Nothing {
    /// An H200 with a TiB of memory.
    pub(crate) fn new() -> Arc<Self> {
        let properties = Properties {
            name: "nothing".into(),
            capability: (9, 0),
            n_multiprocessors: 132,
            max_shared_bytes: 227 << 10,
            total_bytes: 1 << 40,
            is_hardware: false,
        };
        Arc::new(Self { properties, next: AtomicU64::new(1 << 20), n_launches: AtomicU64::new(0) })
    }

    /// Launches so far.
    pub(crate) fn n_launches(&self) -> u64 {
        self.n_launches.load(Relaxed)
    }
}

impl Driver for Nothing {
    fn properties(&self) -> &Properties {
        &self.properties
    }

    fn free_bytes(&self) -> Result<u64> {
        Ok(self.properties.total_bytes)
    }

    fn load(&self, _: &str, _: &str) -> Result<Function> {
        Ok(Function(0))
    }

    fn alloc(&self, len_bytes: usize) -> Result<Option<Address>> {
        Ok(Some(self.next.fetch_add(len_bytes as u64, Relaxed)))
    }

    fn free(&self, _: Address) -> Result<()> {
        Ok(())
    }

    fn upload(&self, _: Address, _: &[u8]) -> Result<()> {
        Ok(())
    }

    fn download(&self, _: Address, bytes: &mut [u8]) -> Result<()> {
        bytes.fill(0);
        Ok(())
    }

    fn copy(&self, _: Address, _: Address, _: usize) -> Result<()> {
        Ok(())
    }

    fn launch(&self, _: Launch<'_>) -> Result<()> {
        self.n_launches.fetch_add(1, Relaxed);
        Ok(())
    }

    fn synchronize(&self) -> Result<()> {
        Ok(())
    }
}
