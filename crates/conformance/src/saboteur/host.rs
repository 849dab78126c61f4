//! Single elements of values on the host, whatever their type.

use tensor_core::{DType, Device, Element, HostData, HostView, Meta, Result, Storage, Tensor};

/// Runs the same lines for values of every type.
macro_rules! typed {
    ($data:expr, $v:ident => $body:expr) => {
        match $data {
            HostData::F64($v) => $body,
            HostData::F32($v) => $body,
            HostData::F16($v) => $body,
            HostData::BF16($v) => $body,
            HostData::I64($v) => $body,
            HostData::I32($v) => $body,
            HostData::U8($v) => $body,
            HostData::Bool($v) => $body,
        }
    };
}

fn put<T: Element>(values: &mut [T], i: usize, value: f64) {
    values[i] = T::from_f64(value);
}

/// The element at `i`.
pub(super) fn get(data: &HostData, i: usize) -> f64 {
    typed!(data, v => v[i].to_f64())
}

/// Writes a number to the element at `i`.
pub(super) fn set(data: &mut HostData, i: usize, value: f64) {
    typed!(data, v => put(v, i, value));
}

/// Replaces every element of a float type.
pub(super) fn each(data: &mut HostData, f: impl Fn(f64) -> f64) {
    if data.dtype().is_float() {
        (0..data.len()).for_each(|i| set(data, i, f(get(data, i))));
    }
}

/// Copies the last element.
pub(super) fn copy_last(to: &mut HostData, from: &HostData) {
    fn copy<T: Copy>(to: &mut [T], from: &[T]) {
        if let (Some(to), Some(&from)) = (to.last_mut(), from.last()) {
            *to = from;
        }
    }
    match (to, from) {
        (HostData::F64(a), HostData::F64(b)) => copy(a, b),
        (HostData::F32(a), HostData::F32(b)) => copy(a, b),
        (HostData::F16(a), HostData::F16(b)) => copy(a, b),
        (HostData::BF16(a), HostData::BF16(b)) => copy(a, b),
        (HostData::I64(a), HostData::I64(b)) => copy(a, b),
        (HostData::I32(a), HostData::I32(b)) => copy(a, b),
        (HostData::U8(a), HostData::U8(b)) => copy(a, b),
        (HostData::Bool(a), HostData::Bool(b)) => copy(a, b),
        _ => {}
    }
}

/// A tensor of the same elements, row-major, after an edit on the host.
pub(super) fn edited(x: &Tensor, edit: impl FnOnce(&mut HostData)) -> Result<Tensor> {
    let mut data = x.device().backend().download(x)?;
    edit(&mut data);
    let storage = upload(&x.device(), &x.meta(), &data)?;
    Ok(Tensor::from_storage(storage, x.meta(), x.device()))
}

/// Values as a storage of the device.
pub(super) fn upload(device: &Device, meta: &Meta, data: &HostData) -> Result<Storage> {
    device.backend().upload(HostView { shape: &meta.shape, data: data.as_slice() })
}

/// A number rounded to f16.
pub(super) fn through_f16(v: f64) -> f64 {
    half::f16::from_f64(v).to_f64()
}

/// A number with 10 bits of mantissa after the first.
pub(super) fn to_tf32(v: f64, dtype: DType) -> f64 {
    if dtype != DType::F32 || !v.is_finite() {
        return v;
    }
    f64::from(f32::from_bits((v as f32).to_bits() & !0x1fff))
}
