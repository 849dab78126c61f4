//! The verdict on one op: the reference device's bits, and where they differ the bounds of the contract.

use tensor_core::expr::ulp;
use tensor_core::op::Tolerance;
use tensor_core::{
    DType, Device, Element, HostData, HostSlice, HostView, Layout, Meta, Op, Result, Shape, Tensor, Tensors, execute,
    execute_on,
};

use crate::compare::{Agreement, allowed, compare};
use crate::reference::{self, Cell};

/// What an input was when the op ran.
pub(super) struct Observed {
    /// The name that the program gave its storage.
    pub(super) name: Option<String>,
    pub(super) layout: Layout,
    /// Its elements, row-major.
    pub(super) data: HostData,
}

/// What the candidate did.
pub(super) struct Run<'a> {
    /// `None` for an upload, whose output is its input.
    pub(super) op: Option<&'a Op>,
    pub(super) inputs: &'a [Observed],
    pub(super) got: &'a [HostData],
    pub(super) outputs: &'a [Meta],
}

/// What became of the judging.
pub(super) enum Verdict {
    /// The reference device gives the same bits.
    Identical,
    /// Within the contract.
    Within(Agreement),
    /// Nothing to judge by, and the largest distance from the reference device's result where there is one.
    Unjudged(String, f64),
    /// Against the contract.
    Breach(Evidence),
}

/// What is wrong, and what would have been right.
pub(super) struct Evidence {
    pub(super) text: String,
    /// Per output.
    pub(super) want: Vec<Vec<Cell>>,
}

pub(super) struct Judge {
    pub(super) label: String,
    /// `None` where the reference device is the arbiter's like.
    device: Option<Device>,
    arbiter: Device,
}

impl Judge {
    pub(super) fn new(device: &Device, candidate: &Device) -> Self {
        let number = HostView { shape: &Shape::default(), data: HostSlice::F64(&[0.0]) };
        let is_arbiter = device.backend().upload(number).is_ok_and(|storage| storage.is::<Vec<Cell>>());
        Self {
            label: device.label().to_string(),
            device: (!is_arbiter).then(|| device.clone()),
            arbiter: reference::device(candidate.info().accuracy),
        }
    }

    pub(super) fn verdict(&self, op: &Op, ran: &Run<'_>) -> Verdict {
        let &Run { inputs, got, outputs, .. } = ran;
        if got.len() != outputs.len() {
            let text = format!("it gives {} of {} outputs", got.len(), outputs.len());
            return Verdict::Breach(Evidence { text, want: Vec::new() });
        }
        let tolerance = op.record().contract().tolerance;
        if let Some(device) = &self.device
            && let Ok(want) = run(device, op, inputs).and_then(|y| y.iter().map(Tensor::to_host).collect::<Result<_>>())
        {
            let want: Vec<HostData> = want;
            if got.iter().zip(&want).all(|(got, want)| same_bits(got, want)) {
                return Verdict::Identical;
            }
            if tolerance == Tolerance::Unstated {
                let reason = format!("it states no tolerance, and {device} gives other bits");
                return Verdict::Unjudged(reason, apart(got, &want));
            }
        } else if tolerance == Tolerance::Unstated {
            return Verdict::Unjudged(format!("{} does not run it, and it states no tolerance", self.label), 0.0);
        }
        match run(&self.arbiter, op, inputs) {
            Ok(results) => {
                let cells = |(y, meta): (&Tensor, &Meta)| allowed(&reference::cells(y), tolerance, meta.dtype);
                held(got, outputs, results.iter().zip(outputs).map(cells).collect())
            }
            Err(error) if error.is_unsupported() => Verdict::Unjudged(error.to_string(), 0.0),
            Err(error) => {
                let text = format!("it gives a result where this error is due: {error}");
                Verdict::Breach(Evidence { text, want: Vec::new() })
            }
        }
    }

    /// The breach by an op that writes over what it reads: inputs, by number, as they are after it.
    pub(super) fn changed_input(&self, inputs: &[Observed], after: &[(usize, HostData)]) -> Option<Verdict> {
        let (i, now) = after.iter().find(|(i, now)| !same_bits(now, &inputs[*i].data))?;
        let was = reference::cells(&place(&self.arbiter, &inputs[*i]).ok()?);
        let breach = compare(now, inputs[*i].layout.shape(), &was, false).err()?;
        Some(Verdict::Breach(Evidence { text: format!("it changes input {i}: {breach}"), want: Vec::new() }))
    }

    /// Whether the candidate gives back what was sent.
    pub(super) fn round_trip(&self, ran: &Run<'_>) -> Verdict {
        if same_bits(&ran.got[0], &ran.inputs[0].data) {
            return Verdict::Identical;
        }
        match place(&self.arbiter, &ran.inputs[0]) {
            Ok(x) => held(ran.got, ran.outputs, vec![reference::cells(&x)]),
            Err(error) => Verdict::Unjudged(error.to_string(), 0.0),
        }
    }
}

impl Run<'_> {
    pub(super) fn name(&self) -> &str {
        self.op.map_or("upload", Op::name)
    }

    /// Which random numbers were drawn, in words.
    pub(super) fn key(&self) -> Option<String> {
        match self.op {
            Some(Op::Random(op)) => Some(format!("seed {}, offset {}", op.key.seed, op.key.offset)),
            _ => None,
        }
    }

    /// What tells breaches of an op apart: the inputs' shapes and dtypes.
    pub(super) fn signature(&self) -> Vec<Meta> {
        self.inputs.iter().map(|x| Meta::new(x.layout.shape().clone(), x.data.dtype())).collect()
    }
}

impl Observed {
    /// In words: name, shape, dtype, layout where it is not row-major, range and the number of NaN.
    pub(super) fn describe(&self, i: usize) -> String {
        let mut text = format!("input {i} {} {}", self.layout.shape(), self.data.dtype());
        if let Some(name) = &self.name {
            text.push_str(&format!(" ({name})"));
        }
        if !self.layout.is_contiguous() {
            text.push_str(&format!(" with strides {:?} from {}", self.layout.strides(), self.layout.offset()));
        }
        let values = self.data.to_f64();
        let (mut low, mut high, mut n_nan) = (f64::INFINITY, f64::NEG_INFINITY, 0);
        for v in values {
            if v.is_nan() {
                n_nan += 1;
            } else {
                (low, high) = (low.min(v), high.max(v));
            }
        }
        if low <= high {
            let dtype = self.data.dtype();
            text.push_str(&format!(", {} to {}", digits(low, dtype), digits(high, dtype)));
        }
        if n_nan > 0 {
            text.push_str(&format!(", {n_nan} NaN"));
        }
        text
    }
}

/// A number as its dtype needs it.
fn digits(v: f64, dtype: DType) -> String {
    match dtype {
        DType::F64 => format!("{v:?}"),
        DType::F32 | DType::F16 | DType::BF16 => format!("{:?}", v as f32),
        DType::I64 | DType::I32 | DType::U8 | DType::Bool => v.to_string(),
    }
}

fn place(device: &Device, x: &Observed) -> Result<Tensor> {
    let shape = x.layout.shape();
    let storage = device.backend().upload(HostView { shape, data: x.data.as_slice() })?;
    Ok(Tensor::from_storage(storage, Meta::new(shape.clone(), x.data.dtype()), device.clone()))
}

fn run(device: &Device, op: &Op, inputs: &[Observed]) -> Result<Tensors> {
    if inputs.is_empty() {
        return execute_on(device, op, &[]);
    }
    let placed = inputs.iter().map(|x| place(device, x)).collect::<Result<Vec<_>>>()?;
    execute(op, &placed.iter().collect::<Vec<_>>())
}

/// The outputs against their cells.
fn held(got: &[HostData], outputs: &[Meta], want: Vec<Vec<Cell>>) -> Verdict {
    let mut seen = Agreement::default();
    for (k, ((got, meta), cells)) in got.iter().zip(outputs).zip(&want).enumerate() {
        match compare(got, &meta.shape, cells, false) {
            Ok(agreement) => {
                seen.max_ulps = seen.max_ulps.max(agreement.max_ulps);
                seen.max_used = seen.max_used.max(agreement.max_used);
            }
            Err(breach) => {
                let text = if outputs.len() == 1 { breach.to_string() } else { format!("output {k}: {breach}") };
                return Verdict::Breach(Evidence { text, want });
            }
        }
    }
    Verdict::Within(seen)
}

/// The largest distance, in units in the last place.
fn apart(got: &[HostData], want: &[HostData]) -> f64 {
    let distances = got.iter().zip(want).flat_map(|(got, want)| {
        let dtype = want.dtype();
        let ulps = move |(got, want): (f64, f64)| (got - want).abs() / ulp(want, dtype);
        got.to_f64().into_iter().zip(want.to_f64()).map(ulps)
    });
    distances.fold(0.0, f64::max)
}

/// Equal but for the sign of zero and the payload of NaN.
fn same_bits(a: &HostData, b: &HostData) -> bool {
    fn same<T: Element>(a: &[T], b: &[T]) -> bool {
        let is_nan = |v: &T| v.partial_cmp(v).is_none();
        a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a == b || is_nan(a) && is_nan(b))
    }
    match (a, b) {
        (HostData::F64(a), HostData::F64(b)) => same(a, b),
        (HostData::F32(a), HostData::F32(b)) => same(a, b),
        (HostData::F16(a), HostData::F16(b)) => same(a, b),
        (HostData::BF16(a), HostData::BF16(b)) => same(a, b),
        _ => a == b,
    }
}
