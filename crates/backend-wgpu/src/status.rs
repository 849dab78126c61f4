//! What kernels find wrong with their input: an index out of range. Each launch that can find something has a slot in
//! device memory; the slots are read when the program waits anyway, so that no launch does.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};

use smallvec::SmallVec;
use tensor_core::{DType, Error, Result, Tensor};

use crate::batch::{Batch, Window};
use crate::gpu::Gpu;
use crate::kernels::block;

/// Slots of 4 bytes. One holds 0, or the complement of the row-major position of the first wrong index: the largest wins.
const N_SLOTS: usize = 1024;
/// Indices are kept until they are known to be right; when all slots are taken or so many bytes are kept, they are read at once.
const KEPT_BYTES: usize = 64 << 20;

/// The findings of one device.
pub(crate) struct Status {
    slots: wgpu::Buffer,
    state: Mutex<State>,
}

struct State {
    /// Slots that no launch has.
    free: Vec<usize>,
    pending: Vec<Pending>,
    /// The first finding of threads that have not waited yet.
    found: HashMap<ThreadId, Error>,
}

/// What a slot is about.
struct Pending {
    slot: usize,
    /// A finding is reported to the thread that launched.
    thread: ThreadId,
    indices: Tensor,
    error: Wrong,
}

/// The error for a wrong index and its row-major position among the indices.
pub(crate) type Wrong = Box<dyn Fn(i64, usize) -> Error + Send>;

impl Status {
    pub(crate) fn new(gpu: &Gpu) -> Self {
        let usage = wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_SRC | wgpu::BufferUsages::COPY_DST;
        let size = 4 * N_SLOTS as u64;
        let descriptor = wgpu::BufferDescriptor { label: Some("status"), size, usage, mapped_at_creation: false };
        let free = (0..N_SLOTS).rev().collect();
        let state = Mutex::new(State { free, pending: Vec::new(), found: HashMap::new() });
        Self { slots: gpu.device.create_buffer(&descriptor), state }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All slots, for a kernel to note into.
    pub(crate) fn window(&self) -> Window<'_> {
        Window::all(&self.slots)
    }

    /// Lets `launch` record kernels that note wrong ones of these indices in the slot that it is given.
    ///
    /// # Errors
    /// Those of `launch`; and of reading, where there are too many launches that nobody has waited for.
    pub(crate) fn watch(
        &self,
        batch: &Batch,
        indices: &Tensor,
        error: Wrong,
        launch: impl FnOnce(usize) -> Result<()>,
    ) -> Result<()> {
        let slot = {
            let mut state = self.state();
            let kept_bytes: usize = state.pending.iter().map(|pending| bytes(&pending.indices)).sum();
            if state.free.is_empty() || kept_bytes + bytes(indices) > KEPT_BYTES {
                self.settle(&mut state, batch, "gather", None)?;
            }
            state.free.pop().ok_or_else(|| {
                Error::device("gather", "too many threads start kernels at once: limit 1024; start fewer")
            })?
        };
        let done = launch(slot);
        let mut state = self.state();
        match &done {
            Ok(()) => {
                let thread = thread::current().id();
                state.pending.push(Pending { slot, thread, indices: indices.clone(), error });
            }
            Err(_) => state.free.push(slot),
        }
        done
    }

    /// Reads part of a buffer once all work before is done, and what was found until then.
    ///
    /// # Errors
    /// The first finding of this thread's launches, and those of reading.
    pub(crate) fn read(&self, batch: &Batch, op: &str, from: Window<'_>) -> Result<Vec<u8>> {
        let mut state = self.state();
        if state.pending.is_empty() && state.found.is_empty() {
            drop(state);
            return batch.read(op, &[from]);
        }
        let bytes = self.settle(&mut state, batch, op, Some(from))?;
        state.found.remove(&thread::current().id()).map_or(Ok(bytes), Err)
    }

    /// The first finding of this thread's launches since the last time, once all work is done.
    pub(crate) fn check(&self, batch: &Batch) -> Result<()> {
        let mut state = self.state();
        if !state.pending.is_empty() {
            self.settle(&mut state, batch, "synchronize", None)?;
        }
        state.found.remove(&thread::current().id()).map_or(Ok(()), Err)
    }

    /// Waits for all launches, of other threads too: notes what they found, in their order, and frees their slots. Whoever
    /// else waits does so for the lock, so that nobody misses what is being read.
    fn settle(&self, state: &mut State, batch: &Batch, op: &str, from: Option<Window<'_>>) -> Result<Vec<u8>> {
        let parts: SmallVec<[Window<'_>; 2]> = from.into_iter().chain([self.window()]).collect();
        let mut bytes = batch.read(op, &parts)?;
        let slots = bytes.split_off(bytes.len() - 4 * N_SLOTS);
        for Pending { slot, thread, indices, error } in std::mem::take(&mut state.pending) {
            let mut word = [0; 4];
            word.copy_from_slice(&slots[4 * slot..][..4]);
            if word != [0; 4] {
                batch.clear(&self.slots, 4 * slot as u64, 4);
                let position = !u32::from_le_bytes(word) as usize;
                let wrong = value(batch, &indices, position)?;
                state.found.entry(thread).or_insert_with(|| error(wrong, position));
            }
            state.free.push(slot);
        }
        Ok(bytes)
    }
}

/// What keeping indices alive keeps from being reused.
fn bytes(indices: &Tensor) -> usize {
    block(indices).buffer().size() as usize
}

/// The index at a row-major position.
fn value(batch: &Batch, indices: &Tensor, position: usize) -> Result<i64> {
    let (mut rest, mut at) = (position, indices.layout().offset());
    for (&n, &stride) in indices.dims().iter().zip(indices.layout().strides()).rev() {
        at = at.wrapping_add_signed((rest % n) as isize * stride);
        rest /= n;
    }
    let size = indices.dtype().size_bytes() as u64;
    let window = Window { buffer: block(indices).buffer(), offset: at as u64 * size, len_bytes: size };
    let bytes = batch.read("gather", &[window])?;
    Ok(match indices.dtype() {
        DType::I32 => i32::from_le_bytes(std::array::from_fn(|k| bytes[k])).into(),
        _ => i64::from_le_bytes(std::array::from_fn(|k| bytes[k])),
    })
}
