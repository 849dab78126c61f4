//! The seam: every call of the backend to a device.
//!
//! Work is in order on the compute lane; what [`Driver::stage`] copies is in order on a lane of its own, and events order one
//! after the other. Only [`Driver::download`] and [`Driver::synchronize`] wait. Faults are latched: a launch that goes wrong is
//! reported by the next call that waits, and by every call after it.

use std::sync::Arc;

use tensor_core::Result;

#[cfg(feature = "emulator")]
pub(crate) mod emulated;
pub(crate) mod nvidia;

/// What a device is.
#[derive(Clone, Debug)]
pub struct Properties {
    /// The product.
    pub name: String,
    /// Compute capability: (9, 0) is sm_90.
    pub capability: (u32, u32),
    /// Streaming multiprocessors.
    pub n_multiprocessors: u32,
    /// The most shared memory that a block may ask for.
    pub max_shared_bytes: u32,
    /// Memory in all.
    pub total_bytes: u64,
    /// Whether it is a real GPU.
    pub is_hardware: bool,
}

/// A kernel that is loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Function(pub u64);

/// An address in the device's memory.
pub type Address = u64;

/// What is in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lane {
    /// Everything but what is staged.
    Compute,
    /// What is staged.
    Copy,
}

/// A point of a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event(pub u64);

/// Memory of the host that the device reads by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pinned(pub u64);

/// One launch.
#[derive(Clone, Copy, Debug)]
pub struct Launch<'a> {
    /// The kernel.
    pub function: Function,
    /// Blocks, per axis.
    pub grid: [u32; 3],
    /// Threads of a block, per axis.
    pub block: [u32; 3],
    /// Dynamic shared memory.
    pub shared_bytes: u32,
    /// The parameters, as the kernel declares them.
    pub args: &'a [u8],
}

/// The drivers of the GPUs that the machine has, for a program that wants more than a device.
///
/// # Errors
/// As [`devices`](crate::devices).
pub fn gpus() -> Result<Vec<Arc<dyn Driver>>> {
    Ok(nvidia::open_all()?.into_iter().map(|gpu| Arc::new(gpu) as Arc<dyn Driver>).collect())
}

/// What is left to do where a kernel took its device with it.
pub(crate) const AFTER_A_LOSS: &str =
    "the device's tensors are gone: restart the program, or go on with another device";

/// A device that runs PTX.
pub trait Driver: Send + Sync {
    /// What it is.
    fn properties(&self) -> &Properties;

    /// Free memory.
    fn free_bytes(&self) -> Result<u64>;

    /// Compiles a module and gives the kernel of that name. The compiler's log is in the error.
    fn load(&self, ptx: &str, kernel: &str) -> Result<Function>;

    /// Memory, its content unspecified; `None` if there is not enough.
    fn alloc(&self, len_bytes: usize) -> Result<Option<Address>>;

    /// Gives memory back once the work before it is done.
    fn free(&self, address: Address) -> Result<()>;

    /// Memory that is handed out again counts as never written: for emulators.
    fn recycled(&self, address: Address, len_bytes: usize) -> Result<()> {
        let _ = (address, len_bytes);
        Ok(())
    }

    /// Memory for [`Driver::stage`]; `None` without a copy lane.
    fn pinned(&self, len_bytes: usize) -> Result<Option<Pinned>> {
        let _ = len_bytes;
        Ok(None)
    }

    /// Gives it back; no copy reads it any more.
    fn free_pinned(&self, pinned: Pinned) -> Result<()> {
        let _ = pinned;
        Ok(())
    }

    /// Puts bytes into pinned memory, which no copy may be reading, and starts to copy them on the copy lane.
    fn stage(&self, pinned: Pinned, to: Address, bytes: &[u8]) -> Result<()> {
        let _ = pinned;
        self.upload(to, bytes)
    }

    /// The point that a lane reaches after what it has been given so far.
    fn record(&self, lane: Lane) -> Result<Event> {
        let _ = lane;
        Ok(Event(0))
    }

    /// Lets what a lane is given from now on wait for an event; the program goes on.
    fn wait(&self, lane: Lane, event: Event) -> Result<()> {
        let _ = (lane, event);
        Ok(())
    }

    /// Whether the event's lane has come to it.
    fn done(&self, event: Event) -> Result<bool> {
        let _ = event;
        Ok(true)
    }

    /// The event is not asked for again.
    fn forget(&self, event: Event) {
        let _ = event;
    }

    /// Copies to the device; the host's bytes may change once it returns.
    fn upload(&self, to: Address, bytes: &[u8]) -> Result<()>;

    /// Waits, and copies to the host.
    fn download(&self, from: Address, bytes: &mut [u8]) -> Result<()>;

    /// Copies on the device.
    fn copy(&self, from: Address, to: Address, len_bytes: usize) -> Result<()>;

    /// Starts a kernel.
    fn launch(&self, launch: Launch<'_>) -> Result<()>;

    /// Waits for all work of both lanes.
    fn synchronize(&self) -> Result<()>;
}
