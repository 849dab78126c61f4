//! The only arbiter: every op as nested loops over f64 values that carry their error bounds, and wrapping integers.
//!
//! It is a [`Backend`], so that gradients, decompositions and whole models run on it unchanged; what it computes is the
//! value as if exactly, together with the largest distance that the contract allows a backend's result ([`Bounded`]).

use std::sync::Arc;

use tensor_core::expr::{Accuracy, Bounded, Bounds, Value};
use tensor_core::op::CrossEntropy;
use tensor_core::{
    Backend, DType, Device, DeviceInfo, Element, Error, HostData, HostView, Kind, MemoryStatus, Meta, Op, Record,
    Result, Storage, Storages, Support, Target, Tensor, UpdateRule,
};

mod array;
mod convolution;
mod create;
mod elementwise;
mod fold;
mod indexing;
mod matmul;
mod normalize;
mod pooling;
mod sorting;

pub use array::{Array, Cell};

/// The reference device for backends of this accuracy.
///
/// Each call makes a device of its own: keep it for as long as its tensors.
pub fn device(accuracy: Accuracy) -> Device {
    let info = DeviceInfo {
        kind: Kind::Other,
        index: 0,
        label: "reference".into(),
        name: "naive loops in f64".into(),
        capability: "every op and dtype".into(),
        is_hardware: false,
        accuracy,
    };
    Device::new(Arc::new(Reference { info, bounds: Bounds { accuracy } }))
}

/// The values and their bounds, row-major; the tensor lives on a reference device.
pub fn cells(x: &Tensor) -> Vec<Cell> {
    Array::of(x).cells
}

struct Reference {
    info: DeviceInfo,
    bounds: Bounds,
}

impl Reference {
    fn run(&self, op: &Op, inputs: &[Array], outputs: &[Meta]) -> Result<Vec<Array>> {
        let bounds = &self.bounds;
        let meta = &outputs[0];
        let only = |array| Ok(vec![array]);
        match op {
            Op::Map(op) => elementwise::map(bounds, op, inputs, outputs),
            Op::Reduce(op) => only(fold::reduce(bounds, op, inputs, meta)?),
            Op::ArgReduce(op) => only(fold::arg_reduce(op, &inputs[0], meta)),
            Op::Scan(op) => only(fold::scan(bounds, op, &inputs[0], meta)),
            Op::MatMul(op) => only(matmul::matmul(bounds, op, inputs, meta)?),
            Op::Conv(op) => only(convolution::conv(bounds, op, inputs, meta)?),
            Op::ConvInputGrad(op) => only(convolution::input_grad(bounds, op, inputs, meta)),
            Op::ConvWeightGrad(op) => only(convolution::weight_grad(bounds, op, inputs, meta)),
            Op::Pool(op) => Ok(pooling::pool(bounds, op, &inputs[0], outputs)),
            Op::AvgPoolGrad(op) => only(pooling::avg_pool_grad(bounds, op, &inputs[0], meta)),
            Op::Gather(op) => only(indexing::gather(op, inputs, meta)?),
            Op::ScatterAdd(op) => only(indexing::scatter_add(bounds, op, inputs, meta)?),
            Op::Sort(op) => Ok(sorting::sort(op, &inputs[0])),
            Op::Concat(op) => only(indexing::concat(op, inputs, meta)),
            Op::Pad(op) => only(indexing::pad(bounds, op, &inputs[0], meta)),
            Op::Copy => only(inputs[0].clone()),
            Op::Random(op) => only(create::random(bounds, op, meta)),
            Op::Iota(op) => only(create::iota(bounds, op, meta)),
            Op::Fill(op) => only(create::fill(op, meta)),
            Op::Normalize(op) => Ok(normalize::normalize(bounds, op, &inputs[0], outputs)),
            Op::Softmax(_) | Op::NormalizeGrad(_) | Op::CrossEntropy(_) | Op::Attention(_) | Op::AttentionGrad(_) => {
                unreachable!("invariant: core decomposes what supports() declines")
            }
            Op::Custom(op) => elementwise::custom(op, inputs, outputs),
        }
    }
}

impl Backend for Reference {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn supports(&self, op: &Op, _: &[Meta]) -> Support {
        match op {
            Op::Softmax(_) | Op::NormalizeGrad(_) | Op::Attention(_) | Op::AttentionGrad(_) => Support::Decompose,
            _ => Support::Native,
        }
    }

    fn upload(&self, data: HostView<'_>) -> Result<Storage> {
        Ok(Arc::new(array::from_host(data.data)))
    }

    fn download(&self, x: &Tensor) -> Result<HostData> {
        let cells = cells(x);
        fn of<T: Element>(cells: &[Cell], from_int: impl Fn(i64) -> T) -> HostData {
            let value = |cell: &Cell| match *cell {
                Value::Real(v) => T::from_f64(v.value),
                Value::Int(v) => from_int(v),
            };
            T::into_host(cells.iter().map(value).collect())
        }
        Ok(match x.dtype() {
            DType::F64 => of::<f64>(&cells, |v| v as f64),
            DType::F32 => of::<f32>(&cells, |v| v as f32),
            DType::F16 => of::<half::f16>(&cells, |v| <half::f16 as Element>::from_f64(v as f64)),
            DType::BF16 => of::<half::bf16>(&cells, |v| <half::bf16 as Element>::from_f64(v as f64)),
            DType::I64 => of::<i64>(&cells, |v| v),
            DType::I32 => of::<i32>(&cells, |v| v as i32),
            DType::U8 => of::<u8>(&cells, |v| v as u8),
            DType::Bool => of::<bool>(&cells, |v| v != 0),
        })
    }

    fn execute(&self, op: &Op, inputs: &[&Tensor], outputs: &[Meta]) -> Result<Storages> {
        if let Op::CrossEntropy(op) = op {
            return cross_entropy(op, inputs);
        }
        let arrays: Vec<Array> = inputs.iter().map(|x| Array::of(x)).collect();
        let results = self.run(op, &arrays, outputs)?;
        let stored = results.into_iter().zip(outputs).map(|(array, meta)| {
            assert_eq!(array.cells.len(), meta.shape.len(), "invariant: {} fills its output", op.name());
            Arc::new(array.stored(&self.bounds, meta.dtype).cells) as Storage
        });
        Ok(stored.collect())
    }

    fn update(&self, rule: &UpdateRule, targets: &mut [Target<'_>]) -> Result<()> {
        let op = Op::Map(tensor_core::op::Map { name: "update", exprs: rule.outputs.iter().cloned().collect() });
        let mut updated = Vec::with_capacity(targets.len());
        for target in targets.iter() {
            let operands: Vec<&Tensor> = [&*target.param, target.grad].into_iter().chain(target.state.iter()).collect();
            updated.push(tensor_core::execute(&op, &operands)?);
        }
        for (target, new) in targets.iter_mut().zip(updated) {
            let places = std::iter::once(&mut *target.param).chain(target.state.iter_mut());
            places.zip(new).for_each(|(place, value)| *place = value);
        }
        Ok(())
    }

    fn synchronize(&self) -> Result<()> {
        Ok(())
    }

    fn memory(&self) -> Result<MemoryStatus> {
        Ok(MemoryStatus::default())
    }

    fn release_cached(&self) -> Result<()> {
        Ok(())
    }
}

/// The decomposition, once the targets are known to be classes: an error speaks of them.
fn cross_entropy(op: &CrossEntropy, inputs: &[&Tensor]) -> Result<Storages> {
    let (n, targets) = (inputs[0].dims()[inputs[0].rank() - 1], cells(inputs[1]));
    let wrong = targets.iter().find_map(|cell| match *cell {
        Value::Int(i) if !(0..n as i64).contains(&i) => Some(i),
        _ => None,
    });
    if let Some(i) = wrong {
        let text = format!("target is out of range: target {i}, classes {n}; classes count from 0");
        return Err(Error::index("cross_entropy", text));
    }
    let losses = op.decompose(inputs).expect("invariant: cross-entropy is a composite")?;
    Ok(losses.iter().map(|x| x.storage().clone()).collect())
}

/// An index that is out of range.
fn out_of_range(op: &'static str, index: i64, at: &[usize], axis: usize, n: usize) -> Error {
    let text = format!("index is out of range: index {index} at {at:?}, axis {axis} has {n}; indices count from 0");
    Error::index(op, text)
}

/// An exact real.
fn exact(value: f64) -> Cell {
    Value::Real(Bounds::exact(value))
}

/// The real in a cell that is one.
fn real(cell: Cell) -> Bounded {
    match cell {
        Value::Real(v) => v,
        Value::Int(v) => Bounds::exact(v as f64),
    }
}
