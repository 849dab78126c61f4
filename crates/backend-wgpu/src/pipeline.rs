//! Kernels that are compiled, by structure: shapes, strides and numbers are parameters and compile nothing.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use smallvec::SmallVec;
use tensor_core::op::WgslKernel;
use tensor_core::{Error, Result};

use crate::batch::count_kernel;
use crate::gpu::Gpu;
use crate::shader::{Access, Finished};

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

/// A compiled kernel.
pub(crate) struct Pipeline {
    pub(crate) pipeline: wgpu::ComputePipeline,
    pub(crate) layout: wgpu::BindGroupLayout,
    /// Parameters of 32 bits that it reads.
    pub(crate) n_args: usize,
}

impl Pipeline {
    /// The size of its parameters' binding.
    pub(crate) fn args_bytes(&self) -> usize {
        (4 * self.n_args).next_multiple_of(16)
    }
}

/// A kernel to compile.
struct Text<'a> {
    label: &'a str,
    text: &'a str,
    entry: &'a str,
    bindings: &'a [Access],
    /// Parameters of 32 bits, in a binding of their own ahead of the others; 0 for none.
    n_args: usize,
}

/// The compiled kernels of a device.
pub(crate) struct Pipelines {
    gpu: Arc<Gpu>,
    compiled: Mutex<HashMap<Key, Arc<Pipeline>>>,
}

impl Pipelines {
    pub(crate) fn new(gpu: Arc<Gpu>) -> Self {
        Self { gpu, compiled: Mutex::default() }
    }

    /// The kernel of a key; `text` writes it when it is not compiled yet.
    ///
    /// # Errors
    /// Those of `text`, more bindings than the adapter has, and what the compiler refuses.
    pub(crate) fn get(&self, op: &str, key: Key, text: impl FnOnce() -> Result<Finished>) -> Result<Arc<Pipeline>> {
        let mut compiled = self.compiled.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(pipeline) = compiled.get(&key) {
            return Ok(pipeline.clone());
        }
        let Finished { text, bindings, n_args } = text()?;
        let whole = Text { label: key.kernel, text: &text, entry: "main", bindings: &bindings, n_args };
        let refused = |error| {
            let label = &self.gpu.label;
            Error::device(op.to_string(), format!("{label} refuses the kernel {}: {error}\n{text}", key.kernel))
        };
        let pipeline = Arc::new(self.compile(op, &whole)?.map_err(refused)?);
        count_kernel();
        compiled.insert(key, pipeline.clone());
        Ok(pipeline)
    }

    /// The same for a kernel of a user's own, without parameters of ours.
    ///
    /// # Errors
    /// As [`Pipelines::get`].
    pub(crate) fn custom(&self, op: &str, kernel: &WgslKernel, bindings: &[Access]) -> Result<Arc<Pipeline>> {
        // The text is the user's: where it and its entry lie tells it from others.
        let place = |text: &str| [text.as_ptr() as u64, text.len() as u64];
        let written = bindings.iter().filter(|access| **access == Access::Write).count();
        let counts = [written as u64, bindings.len() as u64];
        let key = Key::new("custom", [place(kernel.text), place(kernel.entry), counts].concat());
        let mut compiled = self.compiled.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(pipeline) = compiled.get(&key) {
            return Ok(pipeline.clone());
        }
        let text = Text { label: kernel.entry, text: kernel.text, entry: kernel.entry, bindings, n_args: 0 };
        let refused = |error| {
            Error::device(op.to_string(), format!("{} refuses the kernel {}: {error}", self.gpu.label, kernel.entry))
        };
        let pipeline = Arc::new(self.compile(op, &text)?.map_err(refused)?);
        count_kernel();
        compiled.insert(key, pipeline.clone());
        Ok(pipeline)
    }

    /// The inner error is the compiler's.
    fn compile(&self, op: &str, text: &Text<'_>) -> Result<Result<Pipeline, wgpu::Error>> {
        let most = self.gpu.limits.max_storage_buffers_per_shader_stage as usize;
        if text.bindings.len() > most {
            return Err(Error::unsupported(
                op.to_string(),
                format!(
                    "has more operands than this adapter binds: operands {}, limit {most}; split the expression",
                    text.bindings.len()
                ),
            ));
        }
        let entry = |binding: u32, ty, is_parameter| wgpu::BindGroupLayoutEntry {
            binding,
            visibility: wgpu::ShaderStages::COMPUTE,
            ty: wgpu::BindingType::Buffer { ty, has_dynamic_offset: is_parameter, min_binding_size: None },
            count: None,
        };
        // Parameters come first, where there are some.
        let has_args = text.n_args > 0;
        let storage = |(k, access): (usize, &Access)| {
            let read_only = *access == Access::Read;
            entry(k as u32 + u32::from(has_args), wgpu::BufferBindingType::Storage { read_only }, false)
        };
        let parameters = has_args.then(|| entry(0, wgpu::BufferBindingType::Uniform, true));
        let entries: Vec<_> = parameters.into_iter().chain(text.bindings.iter().enumerate().map(storage)).collect();
        let device = &self.gpu.device;
        let work = || {
            let source = wgpu::ShaderSource::Wgsl(text.text.into());
            let module = device.create_shader_module(wgpu::ShaderModuleDescriptor { label: Some(text.label), source });
            let descriptor = wgpu::BindGroupLayoutDescriptor { label: Some(text.label), entries: &entries };
            let layout = device.create_bind_group_layout(&descriptor);
            let descriptor = wgpu::PipelineLayoutDescriptor {
                label: Some(text.label),
                bind_group_layouts: &[Some(&layout)],
                ..wgpu::PipelineLayoutDescriptor::default()
            };
            let whole = device.create_pipeline_layout(&descriptor);
            // Every kernel of ours writes shared memory before it reads it.
            let compilation_options = wgpu::PipelineCompilationOptions {
                zero_initialize_workgroup_memory: !has_args,
                ..wgpu::PipelineCompilationOptions::default()
            };
            let pipeline = device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
                label: Some(text.label),
                layout: Some(&whole),
                module: &module,
                entry_point: Some(text.entry),
                compilation_options,
                cache: None,
            });
            Pipeline { pipeline, layout, n_args: text.n_args }
        };
        let (pipeline, refused) = self.gpu.caught(wgpu::ErrorFilter::Validation, work);
        Ok(refused.map_or(Ok(pipeline), Err))
    }
}
