//! The backend: what it supports, and the one match that sends each op to its kernel.

use tensor_core::{
    Backend, DeviceInfo, HostData, HostView, MemoryStatus, Meta, Op, Result, Storage, Storages, Support, Target,
    Tensor, UpdateRule,
};

use crate::kernels::{self, Context, address, copy, storage};
use crate::{host, staging};

/// Runs ops on one device.
pub(crate) struct CudaBackend {
    pub(crate) info: DeviceInfo,
    pub(crate) cx: Context,
}

impl Backend for CudaBackend {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn supports(&self, op: &Op, inputs: &[Meta]) -> Support {
        let rows = |x: &Meta, axes: &[usize]| {
            if kernels::rows::fits(&x.shape, axes) { Support::Native } else { Support::Decompose }
        };
        match op {
            Op::Map(_)
            | Op::Reduce(_)
            | Op::ArgReduce(_)
            | Op::Scan(_)
            | Op::MatMul(_)
            | Op::Conv(_)
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
            | Op::CrossEntropy(_) => Support::Native,
            Op::Softmax(op) => rows(&inputs[0], &[op.axis]),
            Op::Normalize(op) => rows(&inputs[0], &op.axes),
            Op::NormalizeGrad(op) => rows(&inputs[0], &op.axes),
            Op::Attention(_) | Op::AttentionGrad(_) => kernels::attention::support(inputs),
            Op::Custom(op) => match kernels::custom::kernel(&**op) {
                Some(_) => Support::Native,
                None => Support::Unsupported(format!("{} has no PTX kernel; add one for Kind::Cuda", op.name())),
            },
        }
    }

    fn upload(&self, data: HostView<'_>) -> Result<Storage> {
        let bytes = host::bytes(data.data);
        if bytes.len() >= staging::LEAST_BYTES
            && let Some(block) = self.cx.staging.upload(&self.cx.pool, &bytes)?
        {
            return Ok(storage(block));
        }
        let block = self.cx.pool.take(bytes.len())?;
        if !bytes.is_empty() {
            self.cx.driver.upload(block.address(), &bytes)?;
        }
        Ok(storage(block))
    }

    fn download(&self, x: &Tensor) -> Result<HostData> {
        let mut host = HostData::zeros(x.dtype(), x.len());
        if x.is_empty() {
            return Ok(host);
        }
        // Elements that do not lie together are brought together on the device.
        let copied = if x.is_contiguous() { None } else { Some(copy::contiguous(&self.cx, "download", x)?) };
        let from = copied.as_ref().map_or_else(|| address(x), |block| block.address());
        host::read(&mut host, |bytes| self.cx.driver.download(from, bytes))?;
        self.cx.status.check(&*self.cx.driver)?;
        Ok(host)
    }

    fn execute(&self, op: &Op, inputs: &[&Tensor], outputs: &[Meta]) -> Result<Storages> {
        let cx = &self.cx;
        match op {
            Op::Map(op) => kernels::map::map(cx, op, inputs, outputs),
            Op::Reduce(op) => kernels::reduce::reduce(cx, op, inputs, &outputs[0]),
            Op::ArgReduce(op) => kernels::extremum::arg_reduce(cx, op, inputs[0], &outputs[0]),
            Op::Scan(op) => kernels::scan::scan(cx, op, inputs[0], &outputs[0]),
            Op::MatMul(op) => kernels::matmul::matmul(cx, op, inputs, &outputs[0]),
            Op::Conv(op) => kernels::matmul::conv::conv(cx, op, inputs, &outputs[0]),
            Op::ConvInputGrad(op) => kernels::matmul::conv::input_grad(cx, op, inputs, &outputs[0]),
            Op::ConvWeightGrad(op) => kernels::matmul::conv::weight_grad(cx, op, inputs, &outputs[0]),
            Op::Pool(op) => kernels::pool::pool(cx, op, inputs[0], outputs),
            Op::AvgPoolGrad(op) => kernels::pool::avg_grad(cx, op, inputs[0], &outputs[0]),
            Op::Gather(op) => kernels::indexing::gather(cx, op, inputs, &outputs[0]),
            Op::ScatterAdd(op) => kernels::indexing::scatter_add(cx, op, inputs, &outputs[0]),
            Op::Sort(op) => kernels::sort::sort(cx, op, inputs[0], outputs),
            Op::Concat(op) => copy::concat(cx, op, inputs, &outputs[0]),
            Op::Pad(op) => copy::pad(cx, op, inputs[0], &outputs[0]),
            Op::Copy => copy::copy(cx, inputs[0], &outputs[0]),
            Op::Fill(op) => kernels::create::fill(cx, op, &outputs[0]),
            Op::Iota(op) => kernels::create::iota(cx, op, &outputs[0]),
            Op::Random(op) => kernels::create::random(cx, op, &outputs[0]),
            Op::CrossEntropy(_) => kernels::cross_entropy::cross_entropy(cx, inputs, &outputs[0]),
            Op::Custom(op) => kernels::custom::custom(cx, op, inputs, outputs),
            Op::Softmax(op) => kernels::softmax::softmax(cx, op, inputs[0], &outputs[0]),
            Op::Normalize(op) => kernels::normalize::normalize(cx, op, inputs[0], outputs),
            Op::NormalizeGrad(op) => kernels::normalize::normalize_grad(cx, op, inputs, &outputs[0]),
            Op::Attention(op) => kernels::attention::attention(cx, op, inputs, outputs),
            Op::AttentionGrad(op) => kernels::attention::grad(cx, op, inputs, outputs),
        }
    }

    fn update(&self, rule: &UpdateRule, targets: &mut [Target<'_>]) -> Result<()> {
        kernels::update::update(&self.cx, rule, targets)
    }

    fn synchronize(&self) -> Result<()> {
        self.cx.driver.synchronize()?;
        self.cx.status.check(&*self.cx.driver)
    }

    fn memory(&self) -> Result<MemoryStatus> {
        self.cx.pool.status()
    }

    fn release_cached(&self) -> Result<()> {
        self.cx.pool.release_cached()
    }

    fn set_memory_limit(&self, bytes: Option<usize>) -> Result<()> {
        self.cx.pool.set_limit(bytes);
        Ok(())
    }

    fn reset_peak(&self) {
        self.cx.pool.reset_peak();
    }
}
