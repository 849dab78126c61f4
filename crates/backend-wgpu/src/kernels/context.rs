//! What every kernel needs: memory, compiled kernels, the recorder.

use std::sync::Arc;

use smallvec::SmallVec;
use tensor_core::plan::Plan;
use tensor_core::{Error, MemoryStatus, Meta, Result, Storage, Tensor};

use crate::args::Args;
use crate::batch::{Batch, Window};
use crate::gpu::Gpu;
use crate::memory::{Block, Pool};
use crate::pipeline::{Key, Pipelines};
use crate::shader::Finished;
use crate::status::Status;

/// Invocations of a group in kernels with one invocation per word.
pub(crate) const GROUP: usize = 256;

/// A device, as kernels see it.
pub(crate) struct Context {
    pub(crate) gpu: Arc<Gpu>,
    pub(crate) pool: Arc<Pool>,
    pub(crate) batch: Batch,
    pub(crate) pipelines: Pipelines,
    pub(crate) status: Status,
}

impl Context {
    /// A block for an output, its content unspecified.
    pub(crate) fn output(&self, meta: &Meta) -> Result<Block> {
        self.pool.take(meta.shape.len().saturating_mul(meta.dtype.size_bytes()))
    }

    /// Records a kernel; `text` writes it when it is not compiled yet.
    ///
    /// # Errors
    /// Those of compiling and recording.
    pub(crate) fn run(
        &self,
        op: &str,
        key: Key,
        text: impl FnOnce() -> Result<Finished>,
        windows: &[Window<'_>],
        args: &Args,
        groups: usize,
    ) -> Result<()> {
        let pipeline = self.pipelines.get(op, key, text)?;
        self.batch.dispatch(op, &pipeline, windows, args.words(), groups)
    }

    /// Records a kernel with one invocation per so many of `n` elements.
    ///
    /// # Errors
    /// As [`Context::run`]; and if there are more elements than an index of 31 bits reaches.
    pub(crate) fn run_elements(
        &self,
        op: &str,
        key: Key,
        text: impl FnOnce() -> Result<Finished>,
        windows: &[Window<'_>],
        args: &Args,
        n: usize,
        per: usize,
    ) -> Result<()> {
        if n > i32::MAX as usize {
            return Err(Error::unsupported(
                op.to_string(),
                format!("has too many elements for one kernel: elements {n}, limit {}; split the tensor", i32::MAX),
            ));
        }
        self.run(op, key, text, windows, args, n.div_ceil(per * GROUP))
    }
}

/// The block behind a tensor of this device.
pub(crate) fn block(x: &Tensor) -> &Block {
    x.storage().downcast_ref::<Block>().expect("invariant: a tensor of this device")
}

/// All of a tensor's buffer.
pub(crate) fn window(x: &Tensor) -> Window<'_> {
    Window::all(block(x).buffer())
}

/// The part of a tensor's buffer that holds its elements, and the first one's place in it; all of the buffer where that can be
/// bound. `None` if the elements lie further apart than a binding is large.
pub(crate) fn reach<'a>(cx: &Context, x: &'a Tensor) -> Option<(Window<'a>, usize)> {
    let strides = SmallVec::from_slice(x.layout().strides());
    let plan = Plan { dims: SmallVec::from_slice(x.dims()), strides: SmallVec::from_elem(strides, 1) };
    let begin = x.layout().offset();
    let operand = Operand { buffer: block(x).buffer(), begin, size_bytes: x.dtype().size_bytes() };
    windows(cx, &plan, &[operand], &[begin]).map(|(windows, begins)| (windows[0], begins[0]))
}

/// A block as a tensor's storage.
pub(crate) fn storage(block: Block) -> Storage {
    Arc::new(block)
}

/// One operand of a launch that may be too large to be bound as a whole.
#[derive(Clone, Copy)]
pub(crate) struct Operand<'a> {
    pub(crate) buffer: &'a wgpu::Buffer,
    /// The element at the plan's first place.
    pub(crate) begin: usize,
    pub(crate) size_bytes: usize,
}

/// Part of a launch: a plan, and for each operand a window and where in it the part begins.
pub(crate) struct Piece<'a> {
    pub(crate) plan: Plan,
    pub(crate) windows: SmallVec<[Window<'a>; 6]>,
    pub(crate) begins: SmallVec<[usize; 6]>,
}

/// A launch in parts of which every operand can be bound: one part, unless a buffer is larger than a binding. The plan has
/// the strides of `operands` in their order.
///
/// # Errors
/// If elements of one row of the outermost axis lie further apart than a binding is large.
pub(crate) fn pieces<'a>(cx: &Context, op: &str, plan: Plan, operands: &[Operand<'a>]) -> Result<Vec<Piece<'a>>> {
    let mut done = Vec::new();
    let mut left = vec![(plan, operands.iter().map(|operand| operand.begin).collect::<SmallVec<[usize; 6]>>())];
    while let Some((plan, begins)) = left.pop() {
        if let Some((windows, begins)) = windows(cx, &plan, operands, &begins) {
            done.push(Piece { plan, windows, begins });
            continue;
        }
        // Words of results belong to one part: halves begin at multiples of 4.
        let half = (plan.dims[0] / 2).next_multiple_of(4);
        if plan.dims[0] <= half {
            return Err(Error::unsupported(
                op.to_string(),
                format!(
                    "tensor is larger than a binding of this adapter can be: limit {}; split the tensor or use cpu",
                    MemoryStatus::in_units(cx.gpu.limits.max_storage_buffer_binding_size as usize)
                ),
            ));
        }
        let (mut first, mut second) = (plan.clone(), plan);
        first.dims[0] = half;
        second.dims[0] -= half;
        let moved =
            |(&begin, strides): (&usize, &SmallVec<[isize; 4]>)| begin.wrapping_add_signed(half as isize * strides[0]);
        let begins_second = begins.iter().zip(&second.strides).map(moved).collect();
        left.push((second, begins_second));
        left.push((first, begins));
    }
    Ok(done)
}

/// Windows that hold what a plan reaches, operands beginning at these elements, and where the elements are in them; `None` if
/// one is larger than a binding can be.
fn windows<'a>(
    cx: &Context,
    plan: &Plan,
    operands: &[Operand<'a>],
    begins: &[usize],
) -> Option<(SmallVec<[Window<'a>; 6]>, SmallVec<[usize; 6]>)> {
    let largest = cx.gpu.limits.max_storage_buffer_binding_size;
    let alignment = u64::from(cx.gpu.limits.min_storage_buffer_offset_alignment).max(256);
    let mut bound: SmallVec<[Window<'a>; 6]> = SmallVec::new();
    let mut inside: SmallVec<[usize; 6]> = SmallVec::new();
    for ((operand, strides), &begin) in operands.iter().zip(&plan.strides).zip(begins) {
        if operand.buffer.size() <= largest {
            bound.push(Window::all(operand.buffer));
            inside.push(begin);
            continue;
        }
        let (mut low, mut high) = (begin as i64, begin as i64);
        for (&n, &stride) in plan.dims.iter().zip(strides) {
            let reach = (n as i64 - 1) * stride as i64;
            if reach < 0 { low += reach } else { high += reach }
        }
        let size = operand.size_bytes as u64;
        let offset = low as u64 * size / alignment * alignment;
        let end = ((high as u64 + 1) * size).next_multiple_of(4).min(operand.buffer.size());
        if end - offset > largest {
            return None;
        }
        bound.push(Window { buffer: operand.buffer, offset, len_bytes: end - offset });
        inside.push(begin - (offset / size) as usize);
    }
    Some((bound, inside))
}
