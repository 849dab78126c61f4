//! Holds what a backend computed against the reference.
//!
//! The reference's cells carry all that a result may be off by, the rounding to the stored type included; nothing is added
//! here. The sign of zero and the payload of a NaN are free.

use std::fmt;

use tensor_core::expr::{Bounded, Value, ulp};
use tensor_core::op::Tolerance;
use tensor_core::{DType, Element, HostData, Shape};

use crate::reference::Cell;

#[cfg(test)]
mod tests;

/// What an output that is right showed, over all its elements.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Agreement {
    /// The largest |got − value| in units in the last place of the dtype at the value, of elements that are larger than
    /// their bound; 0 for integers and truth values.
    pub max_ulps: f64,
    /// The largest |got − value| / bound, where the bound is positive and finite: 1 uses the promise up.
    pub max_used: f64,
    /// The flat index of the element that is furthest off, in ulps; `None` when all are exact.
    pub worst: Option<usize>,
}

/// An output with wrong elements: the one that exceeds its bound the most, the first of equals.
#[derive(Clone, Debug, PartialEq)]
pub struct Breach {
    /// Its index; no axes when the lengths differ.
    pub element: Vec<usize>,
    /// What the backend computed.
    pub got: String,
    /// What the reference computed.
    pub want: String,
    /// |got − want|; NaN where that is no number.
    pub off: f64,
    /// The largest distance allowed.
    pub bound: f64,
    /// The distance in units in the last place of the dtype at `want`.
    pub ulps: f64,
    /// How many elements are wrong.
    pub n_wrong: usize,
    /// How many elements the output should have.
    pub n: usize,
    /// How many it has.
    pub n_got: usize,
}

impl fmt::Display for Breach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.n_got != self.n {
            return write!(f, "the output has {}, not {}", self.got, self.want);
        }
        write!(f, "element {:?} is {}, not {}", self.element, self.got, self.want)?;
        if self.off.is_finite() {
            write!(f, " (off by {:.1e}, allowed {:.1e})", self.off, self.bound)?;
        }
        let verb = if self.n_wrong == 1 { "is" } else { "are" };
        write!(f, "; {} of {} elements {verb} wrong", self.n_wrong, self.n)
    }
}

/// Whether every element of `got`, row-major in `shape`, is as close to its cell as the cell allows.
///
/// NaN must meet NaN and an infinity the same infinity; an infinite bound allows anything. With `integers` (the case's
/// data are small integers) a float whose value is an integer must be that integer, rounded to the dtype.
///
/// # Errors
/// The worst element. A length that differs is a breach, too.
pub fn compare(got: &HostData, shape: &Shape, want: &[Cell], integers: bool) -> Result<Agreement, Breach> {
    if got.len() != want.len() {
        return Err(Breach {
            element: Vec::new(),
            got: elements(got.len()),
            want: elements(want.len()),
            off: f64::NAN,
            bound: 0.0,
            ulps: f64::NAN,
            n_wrong: want.len(),
            n: want.len(),
            n_got: got.len(),
        });
    }
    match got {
        HostData::F64(v) => floats(v, shape, want, integers),
        HostData::F32(v) => floats(v, shape, want, integers),
        HostData::F16(v) => floats(v, shape, want, integers),
        HostData::BF16(v) => floats(v, shape, want, integers),
        HostData::I64(v) => discrete(v, |v| v, shape, want),
        HostData::I32(v) => discrete(v, i64::from, shape, want),
        HostData::U8(v) => discrete(v, i64::from, shape, want),
        HostData::Bool(v) => discrete(v, i64::from, shape, want),
    }
}

/// The cells with what the op's contract allows beyond the running bounds: its scale, or units in the last place.
pub fn allowed(cells: &[Cell], tolerance: Tolerance, dtype: DType) -> Vec<Cell> {
    let widened = |x: Bounded| {
        let error = match tolerance {
            Tolerance::Exact | Tolerance::Elementwise | Tolerance::Unstated => x.error,
            Tolerance::Sum { scale } | Tolerance::Product { scale } | Tolerance::Decomposed { scale } => {
                scale.max(1.0) * x.error
            }
            _ if !x.value.is_finite() => x.error,
            Tolerance::Ulps(ulps) => x.error.max(ulps * ulp(x.value, dtype)),
            Tolerance::Absolute { epsilons } => {
                // What is stored in fewer bits is rounded once more.
                let stored = if dtype.compute() == dtype { 0.0 } else { 0.5 * ulp(x.value, dtype) };
                x.error.max(epsilons * dtype.compute().epsilon() + stored)
            }
        };
        Bounded { error, ..x }
    };
    let cell = |cell: &Cell| match *cell {
        Value::Real(x) if dtype.is_float() => Value::Real(widened(x)),
        other => other,
    };
    cells.iter().map(cell).collect()
}

fn elements(n: usize) -> String {
    format!("{n} element{}", if n == 1 { "" } else { "s" })
}

/// One element's verdict.
struct Verdict {
    is_right: bool,
    /// |got − want|; NaN where that is no number.
    off: f64,
    bound: f64,
    ulps: f64,
    /// Whether the bound is smaller than the value: of what may as well be 0, units in the last place say nothing.
    is_certain: bool,
}

/// The worst so far.
#[derive(Default)]
struct Tally {
    agreement: Agreement,
    n_wrong: usize,
    worst_wrong: Option<(usize, f64, Verdict)>,
}

impl Tally {
    fn add(&mut self, i: usize, verdict: Verdict) {
        if !verdict.is_right {
            self.n_wrong += 1;
            // A NaN or infinity where none should be is worse than any distance.
            let excess = if verdict.off.is_finite() { verdict.off / verdict.bound } else { f64::INFINITY };
            if self.worst_wrong.as_ref().is_none_or(|&(_, worst, _)| excess > worst) {
                self.worst_wrong = Some((i, excess, verdict));
            }
            return;
        }
        if !verdict.off.is_finite() || !verdict.bound.is_finite() {
            return;
        }
        if verdict.is_certain && verdict.ulps > self.agreement.max_ulps {
            self.agreement.max_ulps = verdict.ulps;
            self.agreement.worst = Some(i);
        }
        if verdict.bound > 0.0 {
            self.agreement.max_used = self.agreement.max_used.max(verdict.off / verdict.bound);
        }
    }

    fn end<T: fmt::Debug>(self, got: &[T], shape: &Shape, want: &[Cell]) -> Result<Agreement, Breach> {
        let Some((i, _, Verdict { off, bound, ulps, .. })) = self.worst_wrong else { return Ok(self.agreement) };
        Err(Breach {
            element: unravel(i, shape),
            got: format!("{:?}", got[i]),
            want: match want[i] {
                Value::Real(v) => format!("{:?}", v.value),
                Value::Int(v) => v.to_string(),
            },
            off,
            bound,
            ulps,
            n_wrong: self.n_wrong,
            n: want.len(),
            n_got: got.len(),
        })
    }
}

fn floats<T: Element>(got: &[T], shape: &Shape, want: &[Cell], integers: bool) -> Result<Agreement, Breach> {
    let mut tally = Tally::default();
    for (i, (g, cell)) in got.iter().zip(want).enumerate() {
        let want = match *cell {
            Value::Real(v) => v,
            Value::Int(v) => Bounded { value: v as f64, error: 0.0 },
        };
        tally.add(i, judge(g.to_f64(), want, T::DTYPE, integers, |v| T::from_f64(v).to_f64()));
    }
    tally.end(got, shape, want)
}

fn judge(got: f64, want: Bounded, dtype: DType, integers: bool, round: impl Fn(f64) -> f64) -> Verdict {
    let Bounded { value, error } = want;
    let bound = if error.is_nan() { f64::INFINITY } else { error };
    let off = if got == value { 0.0 } else { (got - value).abs() };
    let ulps = off / ulp(value, dtype);
    let is_certain = bound < value.abs();
    let is_same = got == value || got.is_nan() && value.is_nan();
    // Up to 2/ε every integer has its own number.
    let is_integer = value.fract() == 0.0 && value.abs() <= 2.0 / dtype.compute().epsilon();
    if bound.is_infinite() || is_same {
        Verdict { is_right: true, off, bound, ulps, is_certain }
    } else if integers && is_integer {
        Verdict { is_right: got == round(value), off, bound: (round(value) - value).abs(), ulps, is_certain }
    } else {
        // An infinite value has no neighbours, whatever its bound.
        Verdict { is_right: value.is_finite() && off <= bound, off, bound, ulps, is_certain }
    }
}

/// Integers and truth values, which have no units in the last place.
fn discrete<T: Copy + fmt::Debug>(
    got: &[T],
    int: impl Fn(T) -> i64,
    shape: &Shape,
    want: &[Cell],
) -> Result<Agreement, Breach> {
    let mut tally = Tally::default();
    for (i, (&g, cell)) in got.iter().zip(want).enumerate() {
        let got = int(g);
        let (off, bound) = match *cell {
            Value::Int(want) => (got.abs_diff(want) as f64, 0.0),
            Value::Real(want) => ((got as f64 - want.value).abs(), want.error),
        };
        tally
            .add(i, Verdict { is_right: off <= bound || bound.is_infinite(), off, bound, ulps: 0.0, is_certain: true });
    }
    tally.end(got, shape, want)
}

/// The index of the `i`-th element, row-major.
pub(crate) fn unravel(mut i: usize, shape: &Shape) -> Vec<usize> {
    let mut index = vec![0; shape.rank()];
    for (at, &n) in index.iter_mut().zip(shape.iter()).rev() {
        *at = i % n.max(1);
        i /= n.max(1);
    }
    index
}
