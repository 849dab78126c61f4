//! Work being recorded: dispatches and copies go into one encoder, which is submitted when somebody waits, after an
//! update, and when it is full.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use smallvec::SmallVec;
use tensor_core::{Error, MemoryStatus, Result};

use crate::gpu::Gpu;
use crate::pipeline::Pipeline;

/// So many dispatches are submitted at once.
const MOST_DISPATCHES: usize = 256;
/// Room for the parameters and small uploads of one submission.
const STAGED_BYTES: usize = 1 << 20;
/// Groups along x; more go along y.
const ROW_GROUPS: usize = 65_535;

/// What a binding refers to: a range of a buffer.
#[derive(Clone, Copy)]
pub(crate) struct Window<'a> {
    pub(crate) buffer: &'a wgpu::Buffer,
    pub(crate) offset: u64,
    pub(crate) len_bytes: u64,
}

impl<'a> Window<'a> {
    /// All of a buffer.
    pub(crate) fn all(buffer: &'a wgpu::Buffer) -> Self {
        Self { buffer, offset: 0, len_bytes: buffer.size() }
    }
}

/// The recorder of one device.
pub(crate) struct Batch {
    gpu: Arc<Gpu>,
    /// Parameters and small uploads, written at the beginning of each submission.
    staged: wgpu::Buffer,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    // Before the encoder: it is dropped first.
    pass: Option<wgpu::ComputePass<'static>>,
    encoder: Option<wgpu::CommandEncoder>,
    bytes: Vec<u8>,
    n_dispatches: usize,
}

/// What was done on all devices since the process started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Kernels started.
    pub dispatches: u64,
    /// Submissions to a queue.
    pub submissions: u64,
    /// Kernels compiled.
    pub kernels: u64,
}

static DISPATCHES: AtomicU64 = AtomicU64::new(0);
static SUBMISSIONS: AtomicU64 = AtomicU64::new(0);
static KERNELS: AtomicU64 = AtomicU64::new(0);

/// The counters now; subtract two readings to see what lies between.
pub fn counts() -> Counts {
    let [dispatches, submissions, kernels] = [&DISPATCHES, &SUBMISSIONS, &KERNELS].map(|count| count.load(Relaxed));
    Counts { dispatches, submissions, kernels }
}

pub(crate) fn count_kernel() {
    KERNELS.fetch_add(1, Relaxed);
}

impl Batch {
    pub(crate) fn new(gpu: Arc<Gpu>) -> Self {
        let usage = wgpu::BufferUsages::UNIFORM | wgpu::BufferUsages::COPY_SRC | wgpu::BufferUsages::COPY_DST;
        let size = STAGED_BYTES as u64;
        let descriptor = wgpu::BufferDescriptor { label: Some("staged"), size, usage, mapped_at_creation: false };
        let staged = gpu.device.create_buffer(&descriptor);
        Self { gpu, staged, state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records a kernel on so many groups.
    ///
    /// # Errors
    /// A binding or a number of groups beyond the adapter's limits, and what was caught before.
    pub(crate) fn dispatch(
        &self,
        op: &str,
        pipeline: &Pipeline,
        windows: &[Window<'_>],
        args: &[u32],
        groups: usize,
    ) -> Result<()> {
        debug_assert_eq!(args.len(), pipeline.n_args, "invariant: {op} is given what its text reads");
        let rows = groups.div_ceil(ROW_GROUPS);
        if rows > ROW_GROUPS {
            return Err(Error::unsupported(
                op.to_string(),
                format!("has too much work for one kernel: groups {groups}; split the tensor"),
            ));
        }
        let groups = [groups.div_ceil(rows.max(1)) as u32, rows as u32, 1];
        self.dispatch_groups(op, pipeline, windows, args, groups)
    }

    /// Records a kernel on a grid of groups, with parameters if it has some.
    ///
    /// # Errors
    /// A binding beyond the adapter's limits, and what was caught before.
    pub(crate) fn dispatch_groups(
        &self,
        op: &str,
        pipeline: &Pipeline,
        windows: &[Window<'_>],
        args: &[u32],
        groups: [u32; 3],
    ) -> Result<()> {
        self.gpu.check(op)?;
        if groups.contains(&0) {
            return Ok(());
        }
        let largest = self.gpu.limits.max_storage_buffer_binding_size;
        if let Some(window) = windows.iter().find(|window| window.len_bytes > largest) {
            let units = |bytes: u64| MemoryStatus::in_units(bytes as usize);
            return Err(Error::unsupported(
                op.to_string(),
                format!(
                    "tensor is larger than a binding of this adapter can be: tensor {}, limit {}; split the tensor or use cpu",
                    units(window.len_bytes),
                    units(largest)
                ),
            ));
        }
        let alignment = self.gpu.limits.min_uniform_buffer_offset_alignment as usize;
        let mut state = self.state();
        let len_bytes = pipeline.args_bytes();
        if state.bytes.len().next_multiple_of(alignment) + len_bytes > STAGED_BYTES {
            self.submit(&mut state);
        }
        let offset = state.bytes.len().next_multiple_of(alignment);
        state.bytes.resize(offset, 0);
        state.bytes.extend_from_slice(bytemuck::cast_slice(args));
        state.bytes.resize(offset + len_bytes, 0);
        let size = wgpu::BufferSize::new(len_bytes as u64);
        let parameters = wgpu::BufferBinding { buffer: &self.staged, offset: 0, size };
        let windows = windows.iter().map(|&Window { buffer, offset, len_bytes }| {
            let size = wgpu::BufferSize::new(len_bytes);
            wgpu::BufferBinding { buffer, offset, size }
        });
        let has_args = !args.is_empty();
        let entries: SmallVec<[wgpu::BindGroupEntry<'_>; 8]> =
            (has_args.then_some(parameters).into_iter().chain(windows))
                .enumerate()
                .map(|(k, window)| {
                    let resource = wgpu::BindingResource::Buffer(window);
                    wgpu::BindGroupEntry { binding: k as u32, resource }
                })
                .collect();
        let descriptor = wgpu::BindGroupDescriptor { label: None, layout: &pipeline.layout, entries: &entries };
        let group = self.gpu.device.create_bind_group(&descriptor);
        let pass = state.pass(&self.gpu.device);
        pass.set_pipeline(&pipeline.pipeline);
        pass.set_bind_group(0, &group, &[offset as u32][..usize::from(has_args)]);
        pass.dispatch_workgroups(groups[0], groups[1], groups[2]);
        state.n_dispatches += 1;
        DISPATCHES.fetch_add(1, Relaxed);
        if state.n_dispatches >= MOST_DISPATCHES {
            self.submit(&mut state);
        }
        Ok(())
    }

    /// Records the upload of bytes into the beginning of a buffer, in order with the work.
    pub(crate) fn upload(&self, bytes: &[u8], to: &wgpu::Buffer) {
        let size = bytes.len().next_multiple_of(4);
        let mut state = self.state();
        let offset = state.bytes.len().next_multiple_of(4);
        if offset + size <= STAGED_BYTES {
            state.bytes.resize(offset, 0);
            state.bytes.extend_from_slice(bytes);
            state.bytes.resize(offset + size, 0);
            let encoder = state.encoder(&self.gpu.device);
            encoder.copy_buffer_to_buffer(&self.staged, offset as u64, to, 0, size as u64);
            return;
        }
        let usage = wgpu::BufferUsages::COPY_SRC;
        let descriptor =
            wgpu::BufferDescriptor { label: Some("upload"), size: size as u64, usage, mapped_at_creation: true };
        let staging = self.gpu.device.create_buffer(&descriptor);
        // Ranges are mapped in units of 4 bytes.
        if let Ok(mut mapped) = staging.get_mapped_range_mut(..) {
            mapped.slice(..bytes.len()).copy_from_slice(bytes);
        }
        staging.unmap();
        state.encoder(&self.gpu.device).copy_buffer_to_buffer(&staging, 0, to, 0, size as u64);
    }

    /// Records a copy; offsets and length are multiples of 4.
    pub(crate) fn copy(&self, from: &wgpu::Buffer, offset: u64, to: &wgpu::Buffer, to_offset: u64, len_bytes: u64) {
        let mut state = self.state();
        state.encoder(&self.gpu.device).copy_buffer_to_buffer(from, offset, to, to_offset, len_bytes);
    }

    /// Records that bytes of a buffer become 0; offset and length are multiples of 4.
    pub(crate) fn clear(&self, buffer: &wgpu::Buffer, offset: u64, len_bytes: u64) {
        self.state().encoder(&self.gpu.device).clear_buffer(buffer, offset, Some(len_bytes));
    }

    /// Submits what is recorded.
    pub(crate) fn flush(&self) {
        self.submit(&mut self.state());
    }

    /// Reads parts of buffers, one after the other, once all work before is done: offsets and lengths are multiples of 4.
    pub(crate) fn read(&self, op: &str, parts: &[Window<'_>]) -> Result<Vec<u8>> {
        let usage = wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST;
        let size = parts.iter().map(|part| part.len_bytes).sum();
        let descriptor = wgpu::BufferDescriptor { label: Some("read"), size, usage, mapped_at_creation: false };
        let staging = self.gpu.device.create_buffer(&descriptor);
        let mut begin = 0;
        for &Window { buffer, offset, len_bytes } in parts {
            self.copy(buffer, offset, &staging, begin, len_bytes);
            begin += len_bytes;
        }
        self.flush();
        self.gpu.check(op)?;
        staging.map_async(wgpu::MapMode::Read, .., |_| {});
        self.gpu.wait(op)?;
        let refused = |e| Error::device(op.to_string(), format!("{} cannot be read: {e}", self.gpu.label));
        let mapped = staging.get_mapped_range(..).map_err(refused)?;
        Ok(mapped.to_vec())
    }

    fn submit(&self, state: &mut State) {
        state.pass = None;
        let Some(encoder) = state.encoder.take() else { return };
        if !state.bytes.is_empty() {
            let size = state.bytes.len().next_multiple_of(4);
            state.bytes.resize(size, 0);
            // In order: after what was submitted before, ahead of what is submitted now.
            self.gpu.queue.write_buffer(&self.staged, 0, &state.bytes);
            state.bytes.clear();
        }
        self.gpu.queue.submit([encoder.finish()]);
        state.n_dispatches = 0;
        SUBMISSIONS.fetch_add(1, Relaxed);
    }
}

impl State {
    fn begun(&mut self, device: &wgpu::Device) -> &mut wgpu::CommandEncoder {
        self.encoder.get_or_insert_with(|| device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default()))
    }

    /// The encoder, for what is not a kernel.
    fn encoder(&mut self, device: &wgpu::Device) -> &mut wgpu::CommandEncoder {
        self.pass = None;
        self.begun(device)
    }

    /// The pass that kernels go into.
    fn pass(&mut self, device: &wgpu::Device) -> &mut wgpu::ComputePass<'static> {
        if self.pass.is_none() {
            let begun = self.begun(device);
            self.pass = Some(begun.begin_compute_pass(&wgpu::ComputePassDescriptor::default()).forget_lifetime());
        }
        self.pass.as_mut().expect("invariant: begun")
    }
}
