//! The seam on the emulator.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use ptx_emulator as emulator;
use tensor_core::{Error, Result};

use super::{Address, Driver, Event, Function, Lane, Launch, Pinned, Properties};

/// A GPU that does not exist.
pub(crate) struct Emulator {
    label: String,
    properties: Properties,
    /// Where the texts of kernels go.
    texts: Option<PathBuf>,
    state: Mutex<State>,
}

struct State {
    device: emulator::Device,
    /// Pinned memory, and what is staged: the copy lane does nothing before somebody waits for it, as late as a device may.
    pinned: Vec<Vec<u8>>,
    staged: VecDeque<(Pinned, Address, usize)>,
    /// How many copies the lane has made.
    n_copied: u64,
    /// Modules with the kernel that each is used for.
    loaded: Vec<(emulator::Loaded, String)>,
}

impl Emulator {
    pub(crate) fn new(label: &str, properties: Properties, options: emulator::Options, texts: Option<PathBuf>) -> Self {
        let device = emulator::Device::new(options);
        let (pinned, staged) = (Vec::new(), VecDeque::new());
        let state = Mutex::new(State { device, pinned, staged, n_copied: 0, loaded: Vec::new() });
        Self { label: label.into(), properties, texts, state }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets the copy lane make its first so many copies.
    fn advance(&self, n_copies: u64) -> Result<()> {
        let state = &mut *self.state();
        while state.n_copied < n_copies
            && let Some((pinned, to, len_bytes)) = state.staged.pop_front()
        {
            state.n_copied += 1;
            let bytes = &state.pinned[pinned.0 as usize][..len_bytes];
            state.device.write_bytes(to, bytes).map_err(|e| self.lost(e))?;
        }
        Ok(())
    }

    /// A finding is a fault of a kernel: the device is lost, as hardware is.
    fn lost(&self, error: emulator::Error) -> Error {
        let text = format!("a kernel went wrong: {error}; {}", super::AFTER_A_LOSS);
        Error::device_lost(self.label.clone(), text).with_source(error)
    }
}

/// FNV-1a of a text.
fn fingerprint(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

impl Driver for Emulator {
    fn properties(&self) -> &Properties {
        &self.properties
    }

    fn free_bytes(&self) -> Result<u64> {
        let used = self.state().device.used_bytes();
        Ok(self.properties.total_bytes.saturating_sub(used))
    }

    fn load(&self, ptx: &str, kernel: &str) -> Result<Function> {
        let module = emulator::Module::parse(ptx).map_err(|e| {
            Error::other(self.label.clone(), format!("PTX is refused: kernel {kernel}: {e}")).with_source(e)
        })?;
        let mut state = self.state();
        if let Some(folder) = &self.texts {
            // The same text has the same name in every run.
            let path = folder.join(format!("{kernel}-{:016x}.ptx", fingerprint(ptx)));
            std::fs::write(&path, ptx)
                .map_err(|e| Error::io(self.label.clone(), format!("cannot write {}: {e}", path.display())))?;
        }
        let loaded = state.device.load(&module).map_err(|e| self.lost(e))?;
        state.loaded.push((loaded, kernel.to_string()));
        Ok(Function(state.loaded.len() as u64 - 1))
    }

    fn alloc(&self, len_bytes: usize) -> Result<Option<Address>> {
        if len_bytes as u64 > self.free_bytes()? {
            return Ok(None);
        }
        match self.state().device.alloc_bytes(len_bytes as u64, "tensor") {
            Ok(address) => Ok(Some(address)),
            Err(e) if e.report().is_some() => Err(self.lost(e)),
            Err(_) => Ok(None),
        }
    }

    fn free(&self, address: Address) -> Result<()> {
        self.state().device.free(address).map_err(|e| self.lost(e))
    }

    fn recycled(&self, address: Address, len_bytes: usize) -> Result<()> {
        self.state().device.forget_bytes(address, len_bytes as u64).map_err(|e| self.lost(e))
    }

    fn pinned(&self, len_bytes: usize) -> Result<Option<Pinned>> {
        let mut state = self.state();
        state.pinned.push(vec![0; len_bytes]);
        Ok(Some(Pinned(state.pinned.len() as u64 - 1)))
    }

    fn free_pinned(&self, pinned: Pinned) -> Result<()> {
        self.state().pinned[pinned.0 as usize] = Vec::new();
        Ok(())
    }

    fn stage(&self, pinned: Pinned, to: Address, bytes: &[u8]) -> Result<()> {
        let mut state = self.state();
        state.pinned[pinned.0 as usize][..bytes.len()].copy_from_slice(bytes);
        state.staged.push_back((pinned, to, bytes.len()));
        Ok(())
    }

    /// The copies before it; the compute lane is always done.
    fn record(&self, lane: Lane) -> Result<Event> {
        let state = self.state();
        Ok(Event(if lane == Lane::Copy { state.n_copied + state.staged.len() as u64 } else { 0 }))
    }

    fn wait(&self, lane: Lane, event: Event) -> Result<()> {
        if lane == Lane::Compute { self.advance(event.0) } else { Ok(()) }
    }

    fn done(&self, event: Event) -> Result<bool> {
        Ok(event.0 <= self.state().n_copied)
    }

    fn upload(&self, to: Address, bytes: &[u8]) -> Result<()> {
        self.state().device.write_bytes(to, bytes).map_err(|e| self.lost(e))
    }

    fn download(&self, from: Address, bytes: &mut [u8]) -> Result<()> {
        self.state().device.read_bytes(from, bytes).map_err(|e| self.lost(e))
    }

    fn copy(&self, from: Address, to: Address, len_bytes: usize) -> Result<()> {
        self.state().device.copy_bytes(from, to, len_bytes as u64).map_err(|e| self.lost(e))
    }

    fn launch(&self, launch: Launch<'_>) -> Result<()> {
        let state = &mut *self.state();
        let (loaded, kernel) = &state.loaded[launch.function.0 as usize];
        let Launch { grid, block, shared_bytes, args, .. } = launch;
        let geometry = emulator::Launch { grid, block, shared_bytes };
        state.device.launch_packed(loaded, kernel, geometry, args).map_err(|e| self.lost(e))
    }

    fn synchronize(&self) -> Result<()> {
        self.advance(u64::MAX)?;
        self.state().device.synchronise().map_err(|e| self.lost(e))
    }
}
