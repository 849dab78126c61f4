//! Copying a tensor of any layout to row-major memory.

use tensor_core::{HostData, Layout, Meta, Result, Storages, Tensor};

use crate::{Context, Elem, for_dtype, input};

/// The same elements, row-major.
pub(crate) fn run(inputs: &[&Tensor], outputs: &[Meta], cx: &Context<'_>) -> Result<Storages> {
    let x = inputs[0];
    let mut out = cx.output(&outputs[0])?;
    for_dtype!(x.dtype(), T => to_slice(input::<T>(x), x.layout(), out.slice_mut::<T>()));
    Ok(out.into_storages())
}

/// The elements as host values, row-major.
pub(crate) fn download(x: &Tensor, cx: &Context<'_>) -> Result<HostData> {
    let _ = cx;
    let mut data = HostData::zeros(x.dtype(), x.len());
    match &mut data {
        HostData::F64(v) => to_slice(input(x), x.layout(), v),
        HostData::F32(v) => to_slice(input(x), x.layout(), v),
        HostData::F16(v) => to_slice(input(x), x.layout(), v),
        HostData::BF16(v) => to_slice(input(x), x.layout(), v),
        HostData::I64(v) => to_slice(input(x), x.layout(), v),
        HostData::I32(v) => to_slice(input(x), x.layout(), v),
        HostData::U8(v) => to_slice(input(x), x.layout(), v),
        HostData::Bool(v) => {
            let mut bytes = vec![0u8; v.len()];
            to_slice(input(x), x.layout(), &mut bytes);
            v.iter_mut().zip(&bytes).for_each(|(v, &byte)| *v = byte != 0);
        }
    }
    Ok(data)
}

/// Copies the elements of `layout` in `source` to `out`, row-major.
pub(crate) fn to_slice<T: Elem>(source: &[T], layout: &Layout, out: &mut [T]) {
    if layout.is_contiguous() {
        out.copy_from_slice(&source[layout.offset()..][..out.len()]);
        return;
    }
    let mut index = vec![0usize; layout.shape().rank()];
    let mut position = layout.offset() as isize;
    for value in out {
        *value = source[position as usize];
        for axis in (0..index.len()).rev() {
            index[axis] += 1;
            position += layout.strides()[axis];
            if index[axis] < layout.shape()[axis] {
                break;
            }
            position -= layout.strides()[axis] * index[axis] as isize;
            index[axis] = 0;
        }
    }
}
