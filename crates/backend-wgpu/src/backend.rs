//! The backend: what it supports, and the one match that sends each op to its kernel.

use tensor_core::op::PoolKind;
use tensor_core::{
    Backend, DType, DeviceInfo, Expr, HostData, HostView, MemoryStatus, Meta, Op, Result, Storage, Storages, Support,
    Target, Tensor, UpdateRule,
};

use crate::batch::Window;
use crate::host;
use crate::kernels::{self, Context, block, moves, storage};

/// Runs ops on one adapter.
pub(crate) struct WgpuBackend {
    pub(crate) info: DeviceInfo,
    pub(crate) cx: Context,
}

impl WgpuBackend {
    /// Whether the adapter computes in these types.
    fn computes(&self, dtypes: impl IntoIterator<Item = DType>) -> Support {
        let features = self.cx.gpu.features;
        for dtype in dtypes {
            let (needed, remedy) = match dtype {
                DType::F64 => (wgpu::Features::SHADER_F64 | wgpu::Features::SHADER_INT64, "cast to f32"),
                DType::I64 => (wgpu::Features::SHADER_INT64, "cast to i32"),
                _ => continue,
            };
            if !features.contains(needed) {
                return Support::Unsupported(format!(
                    "{} computes in no {dtype}; {remedy} or use cpu",
                    self.info.label
                ));
            }
        }
        Support::Native
    }

    /// Whether the adapter computes in all types that expressions over these inputs pass through.
    fn expressions<'e>(
        &self,
        name: &'static str,
        exprs: impl IntoIterator<Item = &'e Expr>,
        inputs: impl Iterator<Item = DType>,
    ) -> Support {
        let inputs: Vec<DType> = inputs.collect();
        let programs = exprs.into_iter().filter_map(|expr| expr.code.program(name, &inputs).ok());
        self.computes(programs.flat_map(|program| program.nodes.iter().map(|node| node.dtype).collect::<Vec<_>>()))
    }

    /// Whether rows along these axes are folded and read again in one kernel.
    fn rows(&self, x: &Meta, axes: &[usize]) -> Support {
        if kernels::rows::fits(&x.shape, axes, 3) { self.computes([x.dtype]) } else { Support::Decompose }
    }
}

impl Backend for WgpuBackend {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn supports(&self, op: &Op, inputs: &[Meta]) -> Support {
        let dtypes = inputs.iter().map(|x| x.dtype);
        match op {
            Op::Map(op) => self.expressions(op.name, &op.exprs, dtypes),
            Op::Reduce(op) => self.expressions(op.name, [&op.producer], dtypes),
            Op::MatMul(op) => {
                let product = dtypes.clone().take(1).chain(dtypes.skip(2));
                self.expressions("matmul", [&op.epilogue], product)
            }
            Op::Conv(op) => {
                let product = dtypes.clone().take(1).chain(dtypes.skip(2));
                self.expressions("conv", [&op.epilogue], product)
            }
            Op::ConvInputGrad(_) | Op::ConvWeightGrad(_) | Op::AvgPoolGrad(_) => self.computes(dtypes),
            // The largest is found by its bits.
            Op::Pool(op) => {
                if op.kind == PoolKind::Max {
                    Support::Native
                } else {
                    self.computes(dtypes)
                }
            }
            Op::Scan(_) => self.computes(dtypes),
            // Bits are moved and compared, which every adapter can.
            Op::ArgReduce(_)
            | Op::Gather(_)
            | Op::Sort(_)
            | Op::Concat(_)
            | Op::Pad(_)
            | Op::Copy
            | Op::Fill(_)
            | Op::Iota(_) => Support::Native,
            // Integers of 64 bits are added as words.
            Op::ScatterAdd(_) => self.computes(dtypes.take(1).filter(|&dtype| dtype != DType::I64)),
            Op::Random(op) => match op.distribution {
                tensor_core::op::Distribution::Integer { .. } => Support::Native,
                _ => self.computes([op.meta.dtype]),
            },
            Op::Softmax(op) => self.rows(&inputs[0], &[op.axis]),
            Op::Normalize(op) => self.rows(&inputs[0], &op.axes),
            Op::NormalizeGrad(op) => self.rows(&inputs[0], &op.axes),
            Op::CrossEntropy(_) => self.computes([inputs[0].dtype]),
            Op::Attention(_) | Op::AttentionGrad(_) => Support::Decompose,
            Op::Custom(op) => match kernels::custom::kernel(&**op) {
                Some(_) => Support::Native,
                None => Support::Unsupported(format!("{} has no WGSL kernel; add one for Kind::Wgpu", op.name())),
            },
        }
    }

    fn upload(&self, data: HostView<'_>) -> Result<Storage> {
        self.cx.gpu.check("upload")?;
        let bytes = host::bytes(data.data);
        let to = self.cx.pool.take(bytes.len())?;
        if !bytes.is_empty() {
            self.cx.batch.upload(&bytes, to.buffer());
        }
        Ok(storage(to))
    }

    fn download(&self, x: &Tensor) -> Result<HostData> {
        let mut data = HostData::zeros(x.dtype(), x.len());
        if x.is_empty() {
            return Ok(data);
        }
        // Elements that do not lie together are brought together on the device.
        let copied = if x.is_contiguous() { None } else { Some(moves::contiguous(&self.cx, x)?) };
        let (from, first) = match &copied {
            Some(block) => (block, 0),
            None => (block(x), x.layout().offset() * x.dtype().size_bytes()),
        };
        let (begin, len_bytes) = (first / 4 * 4, x.len() * x.dtype().size_bytes());
        let read = (first - begin + len_bytes).next_multiple_of(4);
        let part = Window { buffer: from.buffer(), offset: begin as u64, len_bytes: read as u64 };
        let bytes = self.cx.status.read(&self.cx.batch, "download", part)?;
        host::read(&mut data, |to| {
            to.copy_from_slice(&bytes[first - begin..][..len_bytes]);
            Ok(())
        })?;
        Ok(data)
    }

    fn execute(&self, op: &Op, inputs: &[&Tensor], outputs: &[Meta]) -> Result<Storages> {
        let cx = &self.cx;
        match op {
            Op::Map(op) => kernels::map::map(cx, op, inputs, outputs),
            Op::Reduce(op) => kernels::reduce::reduce(cx, op, inputs, &outputs[0]),
            Op::MatMul(op) => kernels::matmul::matmul(cx, op, inputs, &outputs[0]),
            Op::Conv(op) => kernels::conv::conv(cx, op, inputs, &outputs[0]),
            Op::ConvInputGrad(op) => kernels::conv::input_grad(cx, op, inputs, &outputs[0]),
            Op::ConvWeightGrad(op) => kernels::conv::weight_grad(cx, op, inputs, &outputs[0]),
            Op::ArgReduce(op) => kernels::extremum::arg_reduce(cx, op, inputs[0], &outputs[0]),
            Op::Scan(op) => kernels::scan::scan(cx, op, inputs[0], &outputs[0]),
            Op::Sort(op) => kernels::sort::sort(cx, op, inputs[0], outputs),
            Op::Gather(op) => kernels::indexing::gather(cx, op, inputs, &outputs[0]),
            Op::ScatterAdd(op) => kernels::indexing::scatter_add(cx, op, inputs, &outputs[0]),
            Op::CrossEntropy(_) => kernels::cross_entropy::cross_entropy(cx, inputs, &outputs[0]),
            Op::Pool(op) => kernels::pool::pool(cx, op, inputs[0], outputs),
            Op::AvgPoolGrad(op) => kernels::pool::avg_grad(cx, op, inputs[0], &outputs[0]),
            Op::Custom(op) => kernels::custom::custom(cx, op, inputs, outputs),
            Op::Concat(op) => moves::concat(cx, op, inputs, &outputs[0]),
            Op::Pad(op) => moves::pad(cx, op, inputs[0], &outputs[0]),
            Op::Copy => moves::copy(cx, inputs[0]),
            Op::Fill(op) => kernels::create::fill(cx, op, &outputs[0]),
            Op::Iota(op) => kernels::create::iota(cx, op, &outputs[0]),
            Op::Random(op) => kernels::create::random(cx, op, &outputs[0]),
            Op::Softmax(op) => kernels::softmax::softmax(cx, op, inputs[0], &outputs[0]),
            Op::Normalize(op) => kernels::normalize::normalize(cx, op, inputs[0], outputs),
            Op::NormalizeGrad(op) => kernels::normalize::normalize_grad(cx, op, inputs, &outputs[0]),
            Op::Attention(_) | Op::AttentionGrad(_) => {
                unreachable!("invariant: core decomposes what supports() declines")
            }
        }
    }

    fn update(&self, rule: &UpdateRule, targets: &mut [Target<'_>]) -> Result<()> {
        kernels::update::update(&self.cx, rule, targets)
    }

    fn synchronize(&self) -> Result<()> {
        self.cx.batch.flush();
        self.cx.gpu.wait("synchronize")?;
        self.cx.status.check(&self.cx.batch)
    }

    fn memory(&self) -> Result<MemoryStatus> {
        Ok(self.cx.pool.status())
    }

    fn release_cached(&self) -> Result<()> {
        self.cx.pool.release_cached();
        Ok(())
    }

    fn set_memory_limit(&self, bytes: Option<usize>) -> Result<()> {
        self.cx.pool.set_limit(bytes);
        Ok(())
    }

    fn reset_peak(&self) {
        self.cx.pool.reset_peak();
    }
}
