//! The device's memory: freed buffers are kept by size and handed out again. Work is in order on one queue, so a buffer
//! may be reused as soon as its owner is dropped. wgpu tells neither free nor total memory: the limit is the caller's.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tensor_core::{Error, MemoryStatus, Result};

use crate::gpu::Gpu;

/// Every buffer is a multiple of this.
const UNIT_BYTES: usize = 256;

/// A buffer; goes back to its pool when dropped.
pub(crate) struct Block {
    pool: Arc<Pool>,
    buffer: wgpu::Buffer,
}

impl Block {
    pub(crate) fn buffer(&self) -> &wgpu::Buffer {
        &self.buffer
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        let mut state = self.pool.state();
        let size = self.buffer.size() as usize;
        state.used_bytes -= size;
        state.cached_bytes += size;
        state.free.entry(size).or_default().push(self.buffer.clone());
    }
}

/// Memory of one device.
pub(crate) struct Pool {
    gpu: Arc<Gpu>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Buffers kept for reuse, by size.
    free: BTreeMap<usize, Vec<wgpu::Buffer>>,
    used_bytes: usize,
    cached_bytes: usize,
    peak_bytes: usize,
    limit_bytes: Option<usize>,
}

impl Pool {
    pub(crate) fn new(gpu: Arc<Gpu>) -> Arc<Self> {
        Arc::new(Self { gpu, state: Mutex::default() })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A buffer of at least so many bytes, its content unspecified.
    ///
    /// # Errors
    /// A buffer larger than the adapter's limit, and out of memory, when neither what is kept nor the device nor the limit
    /// has room.
    pub(crate) fn take(self: &Arc<Self>, len_bytes: usize) -> Result<Block> {
        let size = len_bytes.max(1).checked_next_multiple_of(UNIT_BYTES).unwrap_or(usize::MAX);
        let largest = self.gpu.limits.max_buffer_size as usize;
        if size > largest {
            return Err(Error::out_of_memory(
                self.gpu.label.clone(),
                format!(
                    "tensor is larger than a buffer of this adapter can be: request {}, limit {}; split the tensor or use cpu",
                    MemoryStatus::in_units(len_bytes),
                    MemoryStatus::in_units(largest)
                ),
            ));
        }
        let block = |buffer| Block { pool: self.clone(), buffer };
        {
            let mut state = self.state();
            if let Some(buffer) = state.free.get_mut(&size).and_then(Vec::pop) {
                state.cached_bytes -= size;
                state.note_used(size);
                return Ok(block(buffer));
            }
            if state.limit_bytes.is_some_and(|limit| state.used_bytes + state.cached_bytes + size > limit) {
                state.forget_cached();
                if let Some(limit) = state.limit_bytes.filter(|limit| state.used_bytes + size > *limit) {
                    let free = limit.saturating_sub(state.used_bytes);
                    return Err(self.out_of_memory(len_bytes, Some((free, limit))));
                }
            }
            state.note_used(size);
        }
        let found = self.create(size).or_else(|| {
            self.state().forget_cached();
            // What was dropped is freed once the work that used it is done.
            let _ = self.gpu.device.poll(wgpu::PollType::wait_indefinitely());
            self.create(size)
        });
        match found {
            Some(buffer) => Ok(block(buffer)),
            None => {
                self.state().used_bytes -= size;
                Err(self.out_of_memory(len_bytes, None))
            }
        }
    }

    fn create(&self, size: usize) -> Option<wgpu::Buffer> {
        let usage = wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_SRC | wgpu::BufferUsages::COPY_DST;
        let descriptor = wgpu::BufferDescriptor { label: None, size: size as u64, usage, mapped_at_creation: false };
        let (buffer, error) =
            self.gpu.caught(wgpu::ErrorFilter::OutOfMemory, || self.gpu.device.create_buffer(&descriptor));
        error.is_none().then_some(buffer)
    }

    #[cold]
    fn out_of_memory(&self, request: usize, room: Option<(usize, usize)>) -> Error {
        let units = MemoryStatus::in_units;
        let room =
            room.map_or(String::new(), |(free, limit)| format!(", free {}, limit {}", units(free), units(limit)));
        Error::out_of_memory(
            self.gpu.label.clone(),
            format!(
                "out of memory: request {}{room}; use a smaller batch, a smaller model or a lower precision",
                units(request)
            ),
        )
    }

    /// Gives what is kept back to the device.
    pub(crate) fn release_cached(&self) {
        self.state().forget_cached();
    }

    pub(crate) fn status(&self) -> MemoryStatus {
        let state = self.state();
        MemoryStatus {
            used_bytes: state.used_bytes,
            reserved_bytes: state.used_bytes + state.cached_bytes,
            peak_bytes: state.peak_bytes,
            limit_bytes: state.limit_bytes,
            total_bytes: None,
            free_bytes: None,
        }
    }

    pub(crate) fn set_limit(&self, bytes: Option<usize>) {
        self.state().limit_bytes = bytes;
    }

    pub(crate) fn reset_peak(&self) {
        let mut state = self.state();
        state.peak_bytes = state.used_bytes;
    }
}

impl State {
    fn note_used(&mut self, size: usize) {
        self.used_bytes += size;
        self.peak_bytes = self.peak_bytes.max(self.used_bytes);
    }

    /// wgpu frees a buffer when nothing refers to it any more, recorded work included.
    fn forget_cached(&mut self) {
        self.cached_bytes = 0;
        self.free.clear();
    }
}
