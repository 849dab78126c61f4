//! The backend: what it supports, and the one match that sends each op to its kernel.

use std::sync::{Arc, OnceLock};

use tensor_core::expr::Accuracy;
use tensor_core::{
    Backend, Device, DeviceInfo, HostData, HostView, Kind, MemoryStatus, Meta, Op, Result, Storage, Storages, Support,
    Target, Tensor, UpdateRule,
};

use crate::{Buffer, Elem, Pool, kernels, simd, storage, threads};

/// The CPU device. There is one.
pub fn device() -> Device {
    static DEVICE: OnceLock<Device> = OnceLock::new();
    DEVICE
        .get_or_init(|| {
            let info = DeviceInfo {
                kind: Kind::Cpu,
                index: 0,
                label: "cpu".into(),
                name: processor_name(),
                capability: format!("{}, {} threads", simd::level().name(), threads::n_threads()),
                is_hardware: true,
                accuracy: Accuracy::default(),
            };
            Device::new(Arc::new(CpuBackend::new(info, Pool::new("cpu"))))
        })
        .clone()
}

/// Runs ops on the processor's cores, over memory from a pool of its own.
pub struct CpuBackend {
    info: DeviceInfo,
    pool: Arc<Pool>,
}

/// What a kernel gets besides its operands.
pub struct Context<'a> {
    /// Where outputs and working memory come from.
    pub pool: &'a Arc<Pool>,
}

impl Context<'_> {
    /// A buffer of `n` elements, their values unspecified.
    pub fn take<T: Elem>(&self, n: usize) -> Result<Buffer> {
        self.pool.take::<T>(n)
    }

    /// A buffer for an output, its values unspecified.
    pub fn output(&self, meta: &Meta) -> Result<Buffer> {
        self.pool.take_bytes(meta.shape.len().saturating_mul(meta.dtype.size_bytes()))
    }
}

impl CpuBackend {
    /// A backend of this description over this pool.
    pub fn new(info: DeviceInfo, pool: Arc<Pool>) -> Self {
        Self { info, pool }
    }

    /// The pool.
    pub fn pool(&self) -> &Arc<Pool> {
        &self.pool
    }
}

impl Backend for CpuBackend {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn supports(&self, op: &Op, inputs: &[Meta]) -> Support {
        match op {
            Op::Map(_)
            | Op::Reduce(_)
            | Op::ArgReduce(_)
            | Op::Scan(_)
            | Op::ConvInputGrad(_)
            | Op::ConvWeightGrad(_)
            | Op::Pool(_)
            | Op::AvgPoolGrad(_)
            | Op::Gather(_)
            | Op::ScatterAdd(_)
            | Op::Sort(_)
            | Op::Concat(_)
            | Op::Pad(_)
            | Op::Copy
            | Op::Random(_)
            | Op::Iota(_)
            | Op::Fill(_)
            | Op::Softmax(_)
            | Op::CrossEntropy(_) => Support::Native,
            Op::MatMul(op) => kernels::epilogue::support(&op.epilogue, inputs),
            Op::Conv(op) => kernels::epilogue::support(&op.epilogue, inputs),
            Op::Normalize(op) => kernels::normalize::support(&inputs[0].shape, &op.axes),
            Op::NormalizeGrad(op) => kernels::normalize::support(&inputs[0].shape, &op.axes),
            Op::Attention(_) | Op::AttentionGrad(_) => kernels::attention::support(inputs),
            Op::Custom(op) => match op.kernel(Kind::Cpu) {
                Some(_) => Support::Native,
                None => Support::Unsupported(format!("{} has no Rust kernel; add one for Kind::Cpu", op.name())),
            },
        }
    }

    fn upload(&self, data: HostView<'_>) -> Result<Storage> {
        storage::upload(&self.pool, data)
    }

    fn download(&self, x: &Tensor) -> Result<HostData> {
        Ok(kernels::copy::download(x))
    }

    fn execute(&self, op: &Op, inputs: &[&Tensor], outputs: &[Meta]) -> Result<Storages> {
        kernels::execute(op, inputs, outputs, &Context { pool: &self.pool })
    }

    fn update(&self, rule: &UpdateRule, targets: &mut [Target<'_>]) -> Result<()> {
        kernels::update::run(rule, targets, &Context { pool: &self.pool })
    }

    fn synchronize(&self) -> Result<()> {
        Ok(())
    }

    fn memory(&self) -> Result<MemoryStatus> {
        Ok(self.pool.status())
    }

    fn release_cached(&self) -> Result<()> {
        self.pool.release_cached();
        Ok(())
    }

    fn defers_from(&self) -> usize {
        // A pass over so many takes longer than writing two expressions into one, and fits the second-level cache.
        1 << 14
    }

    fn set_memory_limit(&self, bytes: Option<usize>) -> Result<()> {
        self.pool.set_limit(bytes);
        Ok(())
    }

    fn reset_peak(&self) {
        self.pool.reset_peak();
    }
}

/// The processor's product name, where the system tells it.
fn processor_name() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    name.map_or_else(|| std::env::consts::ARCH.to_string(), |(_, name)| name.trim().to_string())
}
