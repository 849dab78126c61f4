//! An arithmetic sequence.

use tensor_core::Element;
use tensor_core::op::Iota;
use tensor_core::{DType, Meta, Result, Storages, Tensor};

use crate::{Buffer, Context, Elem, threads};

/// start + i·step: in f64 and rounded once more for floats, wrapping for integers.
pub(crate) fn run(op: &Iota, inputs: &[&Tensor], outputs: &[Meta], cx: &Context<'_>) -> Result<Storages> {
    debug_assert!(inputs.is_empty());
    let mut out = cx.output(&outputs[0])?;
    let (start, step) = (op.start.to_f64(), op.step.to_f64());
    let float = |i: usize| start + i as f64 * step;
    let (first, by) = (op.start.to_i64(), op.step.to_i64());
    let int = |i: usize| first.wrapping_add((i as i64).wrapping_mul(by));
    match op.dtype {
        DType::F64 => count(&mut out, float),
        DType::F32 => count(&mut out, |i| float(i) as f32),
        DType::F16 => count(&mut out, |i| <half::f16 as Element>::from_f64(float(i))),
        DType::BF16 => count(&mut out, |i| <half::bf16 as Element>::from_f64(float(i))),
        DType::I64 => count(&mut out, int),
        DType::I32 => count(&mut out, |i| int(i) as i32),
        DType::U8 | DType::Bool => count(&mut out, |i| int(i) as u8),
    }
    Ok(out.into_storages())
}

fn count<T: Elem>(out: &mut Buffer, value: impl Fn(usize) -> T + Sync) {
    const PIECE: usize = 1 << 14;
    let out = out.slice_mut::<T>();
    let work_ns = 2 * out.len();
    threads::for_each(work_ns, out.chunks_mut(PIECE).enumerate(), |(piece, part)| {
        part.iter_mut().enumerate().for_each(|(i, v)| *v = value(piece * PIECE + i));
    });
}
