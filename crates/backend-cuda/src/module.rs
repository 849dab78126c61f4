//! Kernels that are loaded, by structure: shapes, strides and numbers are parameters and compile nothing.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use smallvec::SmallVec;
use tensor_core::{Error, Result};

use crate::driver::{Driver, Function};

/// What tells kernels apart: the op's kernel, then whatever its text depends on.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    kernel: &'static str,
    parts: SmallVec<[u64; 8]>,
}

impl Key {
    /// A kernel and what its text depends on.
    pub(crate) fn new(kernel: &'static str, parts: impl IntoIterator<Item = u64>) -> Self {
        Self { kernel, parts: parts.into_iter().collect() }
    }
}

/// How many modules were compiled.
static N_COMPILED: AtomicUsize = AtomicUsize::new(0);

/// How many modules the devices of this process have compiled: a driver takes milliseconds for each.
pub fn n_modules() -> usize {
    N_COMPILED.load(Ordering::Relaxed)
}

/// The loaded kernels of a device.
pub(crate) struct Modules {
    driver: Arc<dyn Driver>,
    loaded: Mutex<HashMap<Key, Function>>,
    /// What is being compiled: whoever needs it too waits, and nobody else does.
    gates: Mutex<HashMap<Key, Arc<Mutex<()>>>>,
}

impl Modules {
    pub(crate) fn new(driver: Arc<dyn Driver>) -> Self {
        Self { driver, loaded: Mutex::default(), gates: Mutex::default() }
    }

    /// The kernel of a key; `text` writes its module when it is not loaded yet. The entry has the key's name.
    pub(crate) fn get(&self, key: Key, text: impl FnOnce() -> Result<String>) -> Result<Function> {
        if let Some(&function) = lock(&self.loaded).get(&key) {
            return Ok(function);
        }
        let gate = lock(&self.gates).entry(key.clone()).or_default().clone();
        let _turn = lock(&gate);
        if let Some(&function) = lock(&self.loaded).get(&key) {
            return Ok(function);
        }
        let text = text()?;
        check_ascii(&text, key.kernel)?;
        let function = self.driver.load(&text, key.kernel)?;
        N_COMPILED.fetch_add(1, Ordering::Relaxed);
        lock(&self.loaded).insert(key.clone(), function);
        lock(&self.gates).remove(&key);
        Ok(function)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// NVIDIA's assembler takes nothing but ASCII, in comments too.
fn check_ascii(text: &str, kernel: &str) -> Result<()> {
    match text.lines().enumerate().find(|(_, line)| !line.is_ascii()) {
        None => Ok(()),
        Some((i, line)) => Err(Error::value(
            kernel.to_string(),
            format!("PTX must be ASCII: line {}, text {:?}; comments count too", i + 1, line.trim()),
        )),
    }
}
