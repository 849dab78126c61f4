//! The suite on a backend from outside the workspace: one that knows elementwise expressions, sums and no more.

use std::sync::Arc;

use conformance::suite::{self, Deviation, Options};
use tensor_core::expr::{Accuracy, Reals, Value};
use tensor_core::op::{Fill, Reduce, ReduceKind};
use tensor_core::{
    Backend, DType, Device, DeviceInfo, Error, HostData, HostView, Kind, Layout, MemoryStatus, Meta, Op, Result, Shape,
    Storage, Storages, Support, Target, Tensor, UpdateRule,
};

/// Values on the host, one number at a time.
struct Toy {
    info: DeviceInfo,
    /// Makes it wrong: forgets where a view begins.
    ignores_offsets: bool,
}

impl Toy {
    fn device(ignores_offsets: bool) -> Device {
        let info = DeviceInfo {
            kind: Kind::Other,
            index: 0,
            label: "toy:0".into(),
            name: "a toy".into(),
            capability: "maps and sums".into(),
            is_hardware: false,
            accuracy: Accuracy::default(),
        };
        Device::new(Arc::new(Self { info, ignores_offsets }))
    }

    /// The elements of an input, broadcast to a shape, in row-major order.
    fn read(&self, x: &Tensor, shape: &Shape) -> Vec<Value<f64>> {
        let data = x.storage().downcast_ref::<HostData>().expect("invariant: a storage of the toy");
        let layout = x.layout().broadcast_to(shape).expect("invariant: core has checked shapes");
        let offset = if self.ignores_offsets { 0 } else { layout.offset() };
        let at = |i| (offset as isize + position(&layout, i)).unsigned_abs();
        (0..shape.len()).map(|i| value(data, at(i))).collect()
    }
}

/// Where the `i`-th element lies, from the first one on.
fn position(layout: &Layout, mut i: usize) -> isize {
    let axes = layout.shape().iter().zip(layout.strides()).rev();
    axes.fold(0, |at, (&n, &stride)| {
        let index = i % n;
        i /= n;
        at + index as isize * stride
    })
}

fn value(data: &HostData, at: usize) -> Value<f64> {
    match data {
        HostData::F64(v) => Value::Real(v[at]),
        HostData::F32(v) => Value::Real(v[at].into()),
        HostData::F16(v) => Value::Real(v[at].into()),
        HostData::BF16(v) => Value::Real(v[at].into()),
        HostData::I64(v) => Value::Int(v[at]),
        HostData::I32(v) => Value::Int(v[at].into()),
        HostData::U8(v) => Value::Int(v[at].into()),
        HostData::Bool(v) => Value::Int(v[at].into()),
    }
}

fn stored(values: Vec<Value<f64>>, dtype: DType) -> Storage {
    let real = |v: &Value<f64>| match *v {
        Value::Real(v) => v,
        Value::Int(v) => v as f64,
    };
    let int = |v: &Value<f64>| match *v {
        Value::Real(v) => v as i64,
        Value::Int(v) => v,
    };
    let values = values.iter();
    Arc::new(match dtype {
        DType::F64 => HostData::F64(values.map(real).collect()),
        DType::F32 => HostData::F32(values.map(|v| real(v) as f32).collect()),
        DType::F16 => HostData::F16(values.map(|v| half::f16::from_f64(real(v))).collect()),
        DType::BF16 => HostData::BF16(values.map(|v| half::bf16::from_f64(real(v))).collect()),
        DType::I64 => HostData::I64(values.map(int).collect()),
        DType::I32 => HostData::I32(values.map(|v| int(v) as i32).collect()),
        DType::U8 => HostData::U8(values.map(|v| int(v) as u8).collect()),
        DType::Bool => HostData::Bool(values.map(|v| int(v) != 0).collect()),
    })
}

/// Sums over axes: the input's axes in order, those that are summed adding up.
fn sum(op: &Reduce, x: &[Value<f64>], shape: &Shape) -> Vec<Value<f64>> {
    let kept = shape.reduced(&op.axes, true);
    let place = Layout::contiguous(&kept).broadcast_to(shape).expect("invariant: sizes are equal or 1");
    let mut sums = vec![0.0; kept.len()];
    for (i, x) in x.iter().enumerate() {
        if let Value::Real(x) = x {
            sums[position(&place, i).unsigned_abs()] += x;
        }
    }
    sums.into_iter().map(Value::Real).collect()
}

impl Backend for Toy {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn supports(&self, op: &Op, inputs: &[Meta]) -> Support {
        match op {
            Op::Map(_) | Op::Fill(_) | Op::Copy => Support::Native,
            Op::Reduce(op) if !op.producer.is_identity() => Support::Decompose,
            Op::Reduce(op) if op.kind == ReduceKind::Sum && inputs[0].dtype.is_float() => Support::Native,
            Op::Softmax(_)
            | Op::Normalize(_)
            | Op::NormalizeGrad(_)
            | Op::CrossEntropy(_)
            | Op::Attention(_)
            | Op::AttentionGrad(_) => Support::Decompose,
            _ => Support::Unsupported("the toy has no such kernel; use cpu".into()),
        }
    }

    fn upload(&self, view: HostView<'_>) -> Result<Storage> {
        Ok(Arc::new(view.data.to_data()))
    }

    fn download(&self, x: &Tensor) -> Result<HostData> {
        let copy = stored(self.read(x, x.shape()), x.dtype());
        Ok(copy.downcast_ref::<HostData>().expect("invariant: a storage of the toy").clone())
    }

    fn execute(&self, op: &Op, inputs: &[&Tensor], outputs: &[Meta]) -> Result<Storages> {
        let values = match op {
            Op::Map(op) => {
                let inputs_of = |meta: &Meta| inputs.iter().map(|x| self.read(x, &meta.shape)).collect::<Vec<_>>();
                let dtypes: Vec<DType> = inputs.iter().map(|x| x.dtype()).collect();
                let run = |(expr, meta): (&tensor_core::Expr, &Meta)| {
                    let (program, inputs) = (expr.code.program(op.name, &dtypes)?, inputs_of(meta));
                    let at = |i: usize| inputs.iter().map(|x| x[i]).collect::<Vec<_>>();
                    Ok((0..meta.shape.len()).map(|i| program.eval(&Reals, &at(i), &expr.args)).collect())
                };
                op.exprs.iter().zip(outputs).map(run).collect::<Result<Vec<_>>>()?
            }
            Op::Reduce(op) => vec![sum(op, &self.read(inputs[0], inputs[0].shape()), inputs[0].shape())],
            Op::Fill(Fill { value, meta }) => {
                let value =
                    if meta.dtype.is_float() { Value::Real(value.to_f64()) } else { Value::Int(value.to_i64()) };
                vec![vec![value; meta.shape.len()]]
            }
            Op::Copy => vec![self.read(inputs[0], &outputs[0].shape)],
            _ => return Err(Error::unsupported("toy", "was asked for an op that it declines")),
        };
        Ok(values.into_iter().zip(outputs).map(|(values, meta)| stored(values, meta.dtype)).collect())
    }

    fn update(&self, _: &UpdateRule, _: &mut [Target<'_>]) -> Result<()> {
        Err(Error::unsupported("update", "the toy has no optimizer; use cpu"))
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

/// What the toy declines, said aloud.
const DEVIATIONS: &[Deviation] = &[Deviation {
    op: "matmul",
    dtypes: &DType::ALL,
    kind: Kind::Other,
    lacking: None,
    reason: "the toy has no matrix product",
    observed: "an error that says so",
}];

fn options(pattern: &str) -> Options {
    Options { cases: 1000, pattern: Some(pattern.into()), deviations: DEVIATIONS, ..Options::default() }
}

#[test]
fn a_backend_from_outside_is_judged_in_five_lines() -> std::result::Result<(), String> {
    let device = Toy::device(false);
    let report = suite::run(&device, &options("neg,exp,tanh,add,mul,maximum,gelu,matmul"), |_, _| {})?;
    assert!(report.failures.is_empty(), "{report}");

    let [cases, passed, deviated, not_run, failed] = report.counts();
    assert!(cases >= 1000 && passed > 0 && deviated == 0 && not_run > 0 && failed == 0, "{report}");
    assert!(report.deviations.iter().all(|d| d.op == "matmul" && d.cases > 0), "{:?}", report.deviations);
    Ok(())
}

#[test]
fn what_it_declines_without_saying_so_is_a_failure() -> std::result::Result<(), String> {
    let report = suite::run(&Toy::device(false), &options("cumsum"), |_, _| {})?;
    assert!(report.failures.iter().any(|f| f.message.contains("the toy has no such kernel")), "{report}");
    Ok(())
}

#[test]
fn its_mistake_is_found_and_shrunk() -> std::result::Result<(), String> {
    let device = Toy::device(true);
    let report = suite::run(&device, &options("neg"), |_, _| {})?;
    let failure = report.failures.iter().find(|f| f.dtype == "f32").ok_or("the suite is blind")?;
    let (_, again) = suite::replay(&device, &failure.case.parse()?)?;
    assert_eq!(again.as_ref(), Some(failure));
    Ok(())
}
