//! A driver that keeps the launches made on another, makes them again, and lets one fail.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use backend_cuda::driver::{Address, Driver, Function, Launch, Properties};
use tensor_core::{Error, Result};

/// Passes calls on.
pub(crate) struct Recorded {
    inner: Arc<dyn Driver>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    kernels: HashMap<u64, String>,
    blocks: Vec<(Address, usize)>,
    made: Vec<Made>,
    n_waits: usize,
    /// Launches until one is refused.
    until_failure: Option<usize>,
}

/// A launch that was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Made {
    pub(crate) kernel: String,
    function: Function,
    grid: [u32; 3],
    block: [u32; 3],
    shared_bytes: u32,
    args: Vec<u8>,
}

impl Made {
    /// Its parameters.
    pub(crate) fn words(&self) -> Vec<u64> {
        let words = self.args.chunks_exact(8);
        words.map(|word| u64::from_le_bytes(word.try_into().expect("eight bytes"))).collect()
    }
}

impl Recorded {
    pub(crate) fn new(inner: Arc<dyn Driver>) -> Arc<Self> {
        Arc::new(Self { inner, state: Mutex::default() })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The launches since the last time that this was asked.
    pub(crate) fn take(&self) -> Vec<Made> {
        std::mem::take(&mut self.state().made)
    }

    /// Whether a parameter points into memory that was handed out.
    pub(crate) fn is_address(&self, word: u64) -> bool {
        self.state().blocks.iter().any(|&(start, len_bytes)| (start..start + len_bytes as u64).contains(&word))
    }

    /// How often somebody waited.
    pub(crate) fn n_waits(&self) -> usize {
        self.state().n_waits
    }

    /// Makes launches again, as they were.
    pub(crate) fn replay(&self, made: &[Made]) -> Result<()> {
        made.iter().try_for_each(|made| {
            let Made { function, grid, block, shared_bytes, ref args, .. } = *made;
            self.inner.launch(Launch { function, grid, block, shared_bytes, args })
        })
    }

    /// Refuses a launch, after so many more.
    pub(crate) fn fail_after(&self, n_launches: usize) {
        self.state().until_failure = Some(n_launches);
    }
}

impl Driver for Recorded {
    fn properties(&self) -> &Properties {
        self.inner.properties()
    }

    fn free_bytes(&self) -> Result<u64> {
        self.inner.free_bytes()
    }

    fn load(&self, ptx: &str, kernel: &str) -> Result<Function> {
        let function = self.inner.load(ptx, kernel)?;
        self.state().kernels.insert(function.0, kernel.into());
        Ok(function)
    }

    fn alloc(&self, len_bytes: usize) -> Result<Option<Address>> {
        let address = self.inner.alloc(len_bytes)?;
        self.state().blocks.extend(address.map(|address| (address, len_bytes)));
        Ok(address)
    }

    fn free(&self, address: Address) -> Result<()> {
        self.inner.free(address)
    }

    fn recycled(&self, address: Address, len_bytes: usize) -> Result<()> {
        self.inner.recycled(address, len_bytes)
    }

    fn upload(&self, to: Address, bytes: &[u8]) -> Result<()> {
        self.inner.upload(to, bytes)
    }

    fn download(&self, from: Address, bytes: &mut [u8]) -> Result<()> {
        self.state().n_waits += 1;
        self.inner.download(from, bytes)
    }

    fn copy(&self, from: Address, to: Address, len_bytes: usize) -> Result<()> {
        self.inner.copy(from, to, len_bytes)
    }

    fn launch(&self, launch: Launch<'_>) -> Result<()> {
        // One after the other is kept in the order in which it is made.
        let mut state = self.state();
        match state.until_failure.take() {
            Some(0) => return Err(Error::device("recorded", "the launch is refused")),
            Some(n) => state.until_failure = Some(n - 1),
            None => {}
        }
        let Launch { function, grid, block, shared_bytes, args } = launch;
        let kernel = state.kernels[&function.0].clone();
        state.made.push(Made { kernel, function, grid, block, shared_bytes, args: args.to_vec() });
        self.inner.launch(launch)
    }

    fn synchronize(&self) -> Result<()> {
        self.state().n_waits += 1;
        self.inner.synchronize()
    }
}
