//! New tensors. A place is `&device` (f32) or `(&device, DType::F64)`.

use super::first;
use crate::op::{Distribution, Fill, Iota, Random};
use crate::{
    DType, Device, Element, Error, HostData, HostSlice, HostView, IntoShape, Meta, Number, Op, Place, Result, Shape,
    Tensor,
};
use crate::{execute_on, random, stats};

/// Runs an op without inputs.
fn made(device: &Device, op: &Op) -> Result<Tensor> {
    first(execute_on(device, op, &[]))
}

fn filled(op: &'static str, value: Number, shape: impl IntoShape, place: impl Place) -> Result<Tensor> {
    let (device, dtype) = place.place();
    let meta = Meta::new(shape.into_shape(op)?, dtype.unwrap_or(DType::F32));
    made(&device, &Op::Fill(Fill { value, meta }))
}

impl Tensor {
    /// Zeros (false for bool).
    ///
    /// # Errors
    /// If the shape has a negative size, or the device has no memory or no such dtype.
    pub fn zeros(shape: impl IntoShape, place: impl Place) -> Result<Tensor> {
        filled("zeros", Number::Int(0), shape, place)
    }

    /// Ones (true for bool).
    ///
    /// # Errors
    /// If the shape has a negative size, or the device has no memory or no such dtype.
    pub fn ones(shape: impl IntoShape, place: impl Place) -> Result<Tensor> {
        filled("ones", Number::Int(1), shape, place)
    }

    /// One value everywhere.
    ///
    /// # Errors
    /// If the shape has a negative size, or a float value meets an integer dtype.
    pub fn full(shape: impl IntoShape, value: impl Into<Number>, place: impl Place) -> Result<Tensor> {
        filled("full", value.into(), shape, place)
    }

    /// Zeros with this tensor's shape, dtype and device.
    ///
    /// # Errors
    /// If the device has no memory.
    pub fn zeros_like(&self) -> Result<Tensor> {
        Self::zeros(self.shape(), (self.place(), self.dtype()))
    }

    /// Ones with this tensor's shape, dtype and device.
    ///
    /// # Errors
    /// If the device has no memory.
    pub fn ones_like(&self) -> Result<Tensor> {
        Self::ones(self.shape(), (self.place(), self.dtype()))
    }

    /// start, start + step, … as far as `stop`, which is left out; f32 unless the place says otherwise.
    ///
    /// # Errors
    /// If the step is 0 or leads away from `stop`, a number is not finite, or a float meets an integer dtype.
    pub fn arange(
        start: impl Into<Number>,
        stop: impl Into<Number>,
        step: impl Into<Number>,
        place: impl Place,
    ) -> Result<Tensor> {
        let (start, stop, step) = (start.into(), stop.into(), step.into());
        let (device, dtype) = place.place();
        let len = match (start, stop, step) {
            (Number::Int(a), Number::Int(b), Number::Int(s)) => {
                let (distance, s) = (i128::from(b) - i128::from(a), i128::from(s));
                if s == 0 { f64::NAN } else { ((distance + s - s.signum()) / s) as f64 }
            }
            _ => ((stop.to_f64() - start.to_f64()) / step.to_f64()).ceil(),
        };
        if !(0.0..=MAX_LEN).contains(&len) {
            return Err(Error::value(
                "arange",
                format!("the step must lead from start to stop: start {start}, stop {stop}, step {step}"),
            ));
        }
        let dtype = dtype.unwrap_or(DType::F32);
        made(&device, &Op::Iota(Iota { start, step, len: len as usize, dtype }))
    }

    /// `n` numbers evenly spaced from `start` to `stop`, both included; f32 unless the place says otherwise.
    ///
    /// # Errors
    /// If the dtype is not a float.
    pub fn linspace(start: f64, stop: f64, n: usize, place: impl Place) -> Result<Tensor> {
        let (device, dtype) = place.place();
        let step = if n > 1 { (stop - start) / (n - 1) as f64 } else { 0.0 };
        let (start, step) = (Number::Float(start), Number::Float(step));
        made(&device, &Op::Iota(Iota { start, step, len: n, dtype: dtype.unwrap_or(DType::F32) }))
    }

    /// The identity matrix, [n, n].
    ///
    /// # Errors
    /// If the device has no memory or no such dtype.
    pub fn eye(n: usize, place: impl Place) -> Result<Tensor> {
        Self::ones(n, place)?.diag(0)
    }

    /// Uniform random numbers in [0, 1), from the current stream ([`crate::random`]).
    ///
    /// # Errors
    /// If the shape has a negative size, or the dtype is not a float.
    pub fn rand(shape: impl IntoShape, place: impl Place) -> Result<Tensor> {
        Self::uniform(0.0, 1.0, shape, place)
    }

    /// Uniform random numbers in [low, high).
    ///
    /// # Errors
    /// If `low > high`, the shape has a negative size, or the dtype is not a float.
    pub fn uniform(low: f64, high: f64, shape: impl IntoShape, place: impl Place) -> Result<Tensor> {
        drawn("rand", Distribution::Uniform { low, high }, DType::F32, shape, place)
    }

    /// Normal random numbers, mean 0, standard deviation 1.
    ///
    /// # Errors
    /// If the shape has a negative size, or the dtype is not a float.
    pub fn randn(shape: impl IntoShape, place: impl Place) -> Result<Tensor> {
        Self::normal(0.0, 1.0, shape, place)
    }

    /// Normal random numbers.
    ///
    /// # Errors
    /// If `std` is negative, the shape has a negative size, or the dtype is not a float.
    pub fn normal(mean: f64, std: f64, shape: impl IntoShape, place: impl Place) -> Result<Tensor> {
        drawn("randn", Distribution::Normal { mean, std }, DType::F32, shape, place)
    }

    /// Uniform random integers in [low, high); i64 unless the place says otherwise.
    ///
    /// # Errors
    /// If `low ≥ high`, the shape has a negative size, or the dtype is not an integer.
    pub fn randint(low: i64, high: i64, shape: impl IntoShape, place: impl Place) -> Result<Tensor> {
        drawn("randint", Distribution::Integer { low, high }, DType::I64, shape, place)
    }

    /// 1 with probability `p`, else 0; f32 unless the place says otherwise.
    ///
    /// # Errors
    /// If `p` is not in [0, 1], or the shape has a negative size.
    pub fn bernoulli(p: f64, shape: impl IntoShape, place: impl Place) -> Result<Tensor> {
        drawn("bernoulli", Distribution::Bernoulli { p }, DType::F32, shape, place)
    }

    /// Row-major values under a shape. The dtype is the values' own unless the place says otherwise.
    ///
    /// # Errors
    /// If the shape does not hold as many elements, or the device has no memory or no such dtype.
    pub fn from_vec<T: Element>(values: Vec<T>, shape: impl IntoShape, place: impl Place) -> Result<Tensor> {
        uploaded("from_vec", T::host_slice(&values), shape.into_shape("from_vec")?, place)
    }

    /// Row-major values under a shape. The dtype is the values' own unless the place says otherwise.
    ///
    /// # Errors
    /// If the shape does not hold as many elements, or the device has no memory or no such dtype.
    pub fn from_slice<T: Element>(values: &[T], shape: impl IntoShape, place: impl Place) -> Result<Tensor> {
        uploaded("from_slice", T::host_slice(values), shape.into_shape("from_slice")?, place)
    }

    /// Row-major host values under a shape: [`Tensor::from_slice`] for a type known at run time.
    ///
    /// # Errors
    /// If the shape does not hold as many elements, or the device has no memory or no such dtype.
    pub fn from_host(values: HostSlice<'_>, shape: impl IntoShape, place: impl Place) -> Result<Tensor> {
        uploaded("from_host", values, shape.into_shape("from_host")?, place)
    }
}

/// Lengths up to here are exact in f64.
const MAX_LEN: f64 = 9_007_199_254_740_992.0;

fn drawn(
    op: &'static str,
    distribution: Distribution,
    default: DType,
    shape: impl IntoShape,
    place: impl Place,
) -> Result<Tensor> {
    let (device, dtype) = place.place();
    let shape = shape.into_shape(op)?;
    let key = random::take(shape.len());
    let meta = Meta::new(shape, dtype.unwrap_or(default));
    made(&device, &Op::Random(Random { distribution, key, meta }))
}

pub(super) fn uploaded(op: &'static str, data: HostSlice<'_>, shape: Shape, place: impl Place) -> Result<Tensor> {
    if shape.len() != data.len() {
        return Err(Error::shape(
            op,
            format!("the shape must hold all values: shape {shape} holds {}, values {}", shape.len(), data.len()),
        ));
    }
    let (device, dtype) = place.place();
    let narrow = dtype.and_then(|dtype| narrowed(data, dtype));
    let data = narrow.as_ref().map_or(data, |narrow| narrow.as_slice());
    let storage = device.backend().upload(HostView { shape: &shape, data })?;
    stats::count_upload(data.len() * data.dtype().size_bytes());
    let x = Tensor::from_storage(storage, Meta::new(shape, data.dtype()), device);
    dtype.map_or(Ok(x.clone()), |dtype| x.cast(dtype))
}

/// Values of 64 bits as fewer: half of the bytes cross, and a device that does not compute in 64 bits need not cast.
fn narrowed(data: HostSlice<'_>, dtype: DType) -> Option<HostData> {
    Some(match (data, dtype) {
        (HostSlice::F64(v), DType::F32) => HostData::F32(v.iter().map(|&x| x as f32).collect()),
        (HostSlice::F64(v), DType::F16) => {
            HostData::F16(v.iter().map(|&x| <half::f16 as Element>::from_f64(x)).collect())
        }
        (HostSlice::F64(v), DType::BF16) => {
            HostData::BF16(v.iter().map(|&x| <half::bf16 as Element>::from_f64(x)).collect())
        }
        (HostSlice::I64(v), DType::I32) => HostData::I32(v.iter().map(|&x| x as i32).collect()),
        (HostSlice::I64(v), DType::F32) => HostData::F32(v.iter().map(|&x| x as f32).collect()),
        _ => return None,
    })
}
