//! Printing: the values (only those shown are downloaded), shape, dtype and device.

use std::fmt;

use crate::{DType, HostData, Result, Tensor};

/// A tensor with more elements than this shows only the edges of its axes.
const FULL: usize = 1000;
/// So many items at either edge.
const EDGE: usize = 3;
/// Rows wrap at this width.
const WIDTH: usize = 100;

impl fmt::Debug for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tensor({} {} {})", self.shape(), self.dtype(), self.place())
    }
}

impl fmt::Display for Tensor {
    /// The values, then `[2, 3] f32 cpu`. Waits for the device.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.shown() {
            Ok((edges, values)) => {
                let items = Items::new(&values, self.dtype());
                items.write(f, self.dims(), edges.dims(), &mut 0, 0)?;
                writeln!(f)?;
            }
            Err(error) => writeln!(f, "({error})")?,
        }
        write!(f, "{} {} {}", self.shape(), self.dtype(), self.place().physical())
    }
}

impl Tensor {
    /// The part that is printed, and its values.
    fn shown(&self) -> Result<(Tensor, HostData)> {
        let mut edges = self.stop_gradient();
        if self.len() > FULL {
            for axis in 0..self.rank() {
                let n = edges.dims()[axis];
                if n > 2 * EDGE {
                    edges = Tensor::cat(&[edges.cut(axis, 0, EDGE, 1)?, edges.cut(axis, n - EDGE, EDGE, 1)?], axis)?;
                }
            }
        }
        let values = edges.to_host()?;
        Ok((edges, values))
    }
}

/// The printed items, padded to one width.
struct Items {
    texts: Vec<String>,
    width: usize,
}

impl Items {
    fn new(values: &HostData, dtype: DType) -> Self {
        let texts: Vec<String> = match values {
            HostData::Bool(v) => v.iter().map(bool::to_string).collect(),
            HostData::I64(v) => v.iter().map(i64::to_string).collect(),
            HostData::I32(v) => v.iter().map(i32::to_string).collect(),
            HostData::U8(v) => v.iter().map(u8::to_string).collect(),
            HostData::F64(_) | HostData::F32(_) | HostData::F16(_) | HostData::BF16(_) => {
                floats(&values.to_f64(), dtype)
            }
        };
        let width = texts.iter().map(String::len).max().unwrap_or(0);
        Self { texts, width }
    }

    /// Writes one axis of the tensor of size `full[0]`, of which `shown[0]` items are there.
    fn write(
        &self,
        f: &mut fmt::Formatter<'_>,
        full: &[usize],
        shown: &[usize],
        next: &mut usize,
        depth: usize,
    ) -> fmt::Result {
        let (Some(&n_full), Some(&n)) = (full.first(), shown.first()) else {
            let text = &self.texts[*next];
            *next += 1;
            return write!(f, "{text:>width$}", width = self.width);
        };
        let is_row = full.len() == 1;
        let per_line = (WIDTH.saturating_sub(depth + 1) / (self.width + 2)).max(1);
        let new_line =
            |f: &mut fmt::Formatter<'_>, n: usize| write!(f, "{}{:indent$}", "\n".repeat(n), "", indent = depth + 1);
        f.write_str("[")?;
        for i in 0..n {
            if i > 0 {
                f.write_str(",")?;
                match is_row {
                    true if i % per_line == 0 => new_line(f, 1)?,
                    true => f.write_str(" ")?,
                    false => new_line(f, full.len() - 1)?,
                }
            }
            if n < n_full && i == n / 2 {
                f.write_str("…,")?;
                if is_row { f.write_str(" ")? } else { new_line(f, full.len() - 1)? }
            }
            self.write(f, &full[1..], &shown[1..], next, depth + 1)?;
        }
        f.write_str("]")
    }
}

/// Floats of one tensor: as few decimals as show them all, at most four; exponents where magnitudes lie far apart.
fn floats(values: &[f64], dtype: DType) -> Vec<String> {
    let finite = values.iter().copied().filter(|v| v.is_finite() && *v != 0.0).map(f64::abs);
    let (low, high) = finite.fold((f64::INFINITY, 0.0f64), |(low, high), v| (low.min(v), high.max(v)));
    let exponent = high >= 1e6 || (high > 0.0 && (high < 1e-3 || low < 1e-4 && high / low > 1e5));
    // f32's 0.1 is 0.100000001 in f64: ask at the dtype's own precision how many decimals it has.
    let slack = 4.0 * dtype.epsilon().max(1e-12);
    let is_whole = |v: f64, scale: f64| ((v * scale).round() - v * scale).abs() <= slack * (v * scale).abs();
    let decimals =
        (1..4).find(|&d| values.iter().all(|&v| !v.is_finite() || is_whole(v, 10f64.powi(d)))).unwrap_or(4) as usize;
    let text = |v: &f64| match v {
        v if !v.is_finite() => v.to_string(),
        v if exponent => format!("{v:.4e}"),
        v => format!("{v:.decimals$}"),
    };
    values.iter().map(text).collect()
}
