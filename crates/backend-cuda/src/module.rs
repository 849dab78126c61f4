//! Kernels that are loaded, by structure: shapes, strides and numbers are parameters and compile nothing.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

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

/// The loaded kernels of a device.
pub(crate) struct Modules {
    driver: Arc<dyn Driver>,
    loaded: Mutex<HashMap<Key, Function>>,
}

impl Modules {
    pub(crate) fn new(driver: Arc<dyn Driver>) -> Self {
        Self { driver, loaded: Mutex::default() }
    }

    /// The kernel of a key; `text` writes its module when it is not loaded yet. The entry has the key's name.
    pub(crate) fn get(&self, key: Key, text: impl FnOnce() -> Result<String>) -> Result<Function> {
        let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(&function) = loaded.get(&key) {
            return Ok(function);
        }
        let text = text()?;
        check_ascii(&text, key.kernel)?;
        let function = self.driver.load(&text, key.kernel)?;
        loaded.insert(key, function);
        Ok(function)
    }
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
