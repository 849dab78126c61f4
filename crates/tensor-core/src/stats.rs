//! Counters of what crosses between host and devices, and of what the host waits for.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Transfers and waits since the process started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TransferStats {
    /// Uploads: how many and how many bytes.
    pub host_to_device: Transfers,
    /// Downloads.
    pub device_to_host: Transfers,
    /// Copies from one device to another, and within one by `copy_to`.
    pub device_to_device: Transfers,
    /// How often the host waited for a device: reads, prints, synchronize.
    pub waits: u64,
}

/// Calls and bytes in one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Transfers {
    /// How many.
    pub calls: u64,
    /// How many bytes together.
    pub bytes: u64,
}

impl fmt::Display for TransferStats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let line = |t: Transfers| format!("{} calls, {} bytes", t.calls, t.bytes);
        writeln!(f, "host to device    {}", line(self.host_to_device))?;
        writeln!(f, "device to host    {}", line(self.device_to_host))?;
        writeln!(f, "device to device  {}", line(self.device_to_device))?;
        write!(f, "host waits        {}", self.waits)
    }
}

struct Counter(AtomicU64, AtomicU64);

impl Counter {
    const fn new() -> Self {
        Self(AtomicU64::new(0), AtomicU64::new(0))
    }

    fn add(&self, bytes: usize) {
        self.0.fetch_add(1, Relaxed);
        self.1.fetch_add(bytes as u64, Relaxed);
    }

    fn read(&self) -> Transfers {
        Transfers { calls: self.0.load(Relaxed), bytes: self.1.load(Relaxed) }
    }
}

static UP: Counter = Counter::new();
static DOWN: Counter = Counter::new();
static ACROSS: Counter = Counter::new();
static WAITS: AtomicU64 = AtomicU64::new(0);

/// The counters now; subtract two readings to see what lies between.
pub fn stats() -> TransferStats {
    TransferStats {
        host_to_device: UP.read(),
        device_to_host: DOWN.read(),
        device_to_device: ACROSS.read(),
        waits: WAITS.load(Relaxed),
    }
}

pub(crate) fn count_upload(bytes: usize) {
    UP.add(bytes);
}

pub(crate) fn count_download(bytes: usize) {
    DOWN.add(bytes);
    count_wait();
}

pub(crate) fn count_copy(bytes: usize) {
    ACROSS.add(bytes);
}

pub(crate) fn count_wait() {
    WAITS.fetch_add(1, Relaxed);
}
