//! One value everywhere.

use tensor_core::op::Fill;
use tensor_core::{DType, Element, Meta, Number, Result, Storages, Tensor};

use crate::{Buffer, Context, Elem, threads};

/// `value` everywhere.
pub(crate) fn run(op: &Fill, inputs: &[&Tensor], outputs: &[Meta], cx: &Context<'_>) -> Result<Storages> {
    debug_assert!(inputs.is_empty());
    let mut out = cx.output(&outputs[0])?;
    fill(&mut out, outputs[0].dtype, op.value);
    Ok(out.into_storages())
}

/// Fills a buffer of elements of `dtype`.
pub(crate) fn fill(out: &mut Buffer, dtype: DType, value: Number) {
    match dtype {
        DType::F64 => spread(out, value.to_f64()),
        DType::F32 => spread(out, value.to_f64() as f32),
        DType::F16 => spread(out, <half::f16 as Element>::from_f64(value.to_f64())),
        DType::BF16 => spread(out, <half::bf16 as Element>::from_f64(value.to_f64())),
        DType::I64 => spread(out, value.to_i64()),
        DType::I32 => spread(out, value.to_i64() as i32),
        DType::U8 => spread(out, value.to_i64() as u8),
        DType::Bool => spread(out, u8::from(bool::from_f64(value.to_f64()))),
    }
}

fn spread<T: Elem>(out: &mut Buffer, value: T) {
    let out = out.slice_mut::<T>();
    let work_ns = size_of_val(out) / 16;
    threads::for_each(work_ns, out.chunks_mut(1 << 16), |piece| piece.fill(value));
}
