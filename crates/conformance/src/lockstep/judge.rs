//! The verdict on one op: the reference device's bits, and where they differ the bounds of the contract.

use tensor_core::expr::Value;
use tensor_core::op::Tolerance;
use tensor_core::{Device, Element, HostData, HostView, Layout, Meta, Op, Result, Tensor, Tensors, execute, execute_on};

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
        let is_arbiter = reference::is_reference(device);
        Self {
            label: device.label().to_string(),
            device: (!is_arbiter).then(|| device.clone()),
            arbiter: reference::device(candidate.info().accuracy),
        }
    }

    pub(super) fn verdict(&self, op: &Op, inputs: &[Observed], got: &[HostData], outputs: &[Meta]) -> Verdict {
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
                return unstated(device, got, &want);
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

    /// Whether the candidate gives back what was sent.
    pub(super) fn round_trip(&self, sent: &Observed, got: &HostData) -> Verdict {
        if same_bits(got, &sent.data) {
            return Verdict::Identical;
        }
        let meta = Meta::new(sent.layout.shape().clone(), sent.data.dtype());
        match place(&self.arbiter, sent) {
            Ok(x) => held(std::slice::from_ref(got), &[meta], vec![reference::cells(&x)]),
            Err(error) => Verdict::Unjudged(error.to_string(), 0.0),
        }
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
            text.push_str(&format!(", {low:?} to {high:?}"));
        }
        if n_nan > 0 {
            text.push_str(&format!(", {n_nan} NaN"));
        }
        text
    }
}

/// Which random numbers an op draws, in words.
pub(super) fn key(op: &Op) -> Option<String> {
    match op {
        Op::Random(op) => Some(format!("seed {}, offset {}", op.key.seed, op.key.offset)),
        _ => None,
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

/// A user's own op that differs from the reference device's: how far, since nothing says how far it may be.
fn unstated(device: &Device, got: &[HostData], want: &[HostData]) -> Verdict {
    let mut max_ulps: f64 = 0.0;
    for (got, want) in got.iter().zip(want) {
        let cells: Vec<Cell> = want.to_f64().into_iter().map(|value| Value::Real(anywhere(value))).collect();
        for (got, cell) in got.to_f64().into_iter().zip(cells) {
            let Value::Real(want) = cell else { continue };
            let ulps = (got - want.value).abs() / tensor_core::expr::ulp(want.value, tensor_core::DType::F32);
            max_ulps = max_ulps.max(ulps);
        }
    }
    Verdict::Unjudged(format!("it states no tolerance, and {device} gives other bits"), max_ulps)
}

/// Equal but for the sign of zero and the payload of NaN.
fn same_bits(a: &HostData, b: &HostData) -> bool {
    fn same<T: Element>(a: &[T], b: &[T]) -> bool {
        // What is not equal to itself is NaN.
        a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a == b || a != a && b != b)
    }
    match (a, b) {
        (HostData::F64(a), HostData::F64(b)) => same(a, b),
        (HostData::F32(a), HostData::F32(b)) => same(a, b),
        (HostData::F16(a), HostData::F16(b)) => same(a, b),
        (HostData::BF16(a), HostData::BF16(b)) => same(a, b),
        _ => a == b,
    }
}
