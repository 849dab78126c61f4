//! A case's inputs: drawn from its name or given, and laid out in memory in more than one way.

use consort::{DType, Device, Element, HostData, Result, Tensor};

use crate::Rng;

/// What a case is given.
pub struct Input {
    /// `f` float, `n` integer of the run's dtype, `i` index (i64), `b` bool.
    pub kind: char,
    /// The sizes.
    pub dims: Vec<usize>,
    /// The values, row-major.
    pub values: Vec<f64>,
}

/// How a tensor's elements lie in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// Row-major.
    RowMajor,
    /// Axes in reverse order, each running backwards.
    Reversed,
    /// Every other element of a larger tensor that holds garbage elsewhere.
    Strided,
}

/// `f[2,3] rest` as kind, sizes and rest.
pub(super) fn head(spec: &str) -> (char, Vec<usize>, &str) {
    let (dims, rest) = spec[2..].split_once(']').expect("sizes in brackets");
    let dims = dims.split(',').filter(|d| !d.is_empty()).map(|d| d.parse().expect("a size")).collect();
    (spec.chars().next().expect("a kind"), dims, rest.trim())
}

/// `n` integers of low..=high, all different if asked: what `draw` in generate.py gives.
fn draw(key: &str, n: usize, low: i64, high: i64, distinct: bool) -> Vec<i64> {
    let mut rng = Rng::new(key);
    if !distinct {
        return (0..n).map(|_| rng.within(low, high)).collect();
    }
    let mut pool: Vec<i64> = (low..=high).collect();
    for i in 0..n {
        let j = i + rng.below(pool.len() - i);
        pool.swap(i, j);
    }
    pool.truncate(n);
    pool
}

/// Floats −64/32 … 64/32 drawn from a name.
pub fn drawn(key: &str, dims: &[usize]) -> Vec<f64> {
    draw(key, dims.iter().product(), -64, 64, false).into_iter().map(|v| v as f64 / 32.0).collect()
}

impl Input {
    /// `f[2,3] -124..124`, `f[2,3] -124..124 distinct` or `f[2] = 0.0 inf`.
    pub fn parse(key: &str, spec: &str) -> Self {
        let (kind, dims, rest) = head(spec);
        if let Some(values) = rest.strip_prefix('=') {
            let values = values.split_whitespace().map(|v| v.parse().expect("a number")).collect();
            return Self { kind, dims, values };
        }
        let (range, distinct) = rest.split_once(' ').map_or((rest, false), |(range, _)| (range, true));
        let (low, high) = range.split_once("..").expect("a range");
        let (low, high) = (low.parse().expect("a bound"), high.parse().expect("a bound"));
        let drawn = draw(key, dims.iter().product(), low, high, distinct);
        let unit = if kind == 'f' { 32.0 } else { 1.0 };
        Self { kind, dims, values: drawn.into_iter().map(|v| v as f64 / unit).collect() }
    }

    /// The dtype in a run of `dtype`.
    pub fn dtype(&self, dtype: DType) -> DType {
        match self.kind {
            'i' => DType::I64,
            'b' => DType::Bool,
            _ => dtype,
        }
    }

    /// Whether the dtype that it has in a run of `dtype` holds its values exactly.
    pub fn is_exact(&self, dtype: DType) -> bool {
        let held = host(&self.values, self.dtype(dtype)).to_f64();
        held.iter().zip(&self.values).all(|(a, b)| a == b || (a.is_nan() && b.is_nan()))
    }

    /// The values as a tensor that lies in memory in this way.
    ///
    /// # Errors
    /// What the device reports.
    pub fn tensor(&self, dtype: DType, layout: Layout, device: &Device) -> Result<Tensor> {
        let dtype = self.dtype(dtype);
        let upload = |values: &[f64], dims: &[usize]| Tensor::from_host(host(values, dtype).as_slice(), dims, device);
        let rank = self.dims.len();
        let at = |index: &[usize]| self.values[index.iter().zip(&self.dims).fold(0, |flat, (&i, &n)| flat * n + i)];
        match layout {
            Layout::RowMajor => upload(&self.values, &self.dims),
            Layout::Reversed => {
                let dims: Vec<usize> = self.dims.iter().rev().copied().collect();
                let stored = crate::Grid::from_fn(&dims, |i| {
                    at(&i.iter().zip(&dims).map(|(&i, &n)| n - 1 - i).rev().collect::<Vec<_>>())
                });
                let axes: Vec<usize> = (0..rank).rev().collect();
                upload(&stored.values, &dims)?.flip(..)?.permute(axes)
            }
            Layout::Strided => {
                let garbage = if dtype.is_float() { f64::NAN } else { 99.0 };
                let dims: Vec<usize> = self.dims.iter().map(|n| 2 * n + 1).collect();
                let stored = crate::Grid::from_fn(&dims, |i| {
                    let is_element = i.iter().all(|i| i % 2 == 1);
                    if is_element { at(&i.iter().map(|i| i / 2).collect::<Vec<_>>()) } else { garbage }
                });
                (0..rank).try_fold(upload(&stored.values, &dims)?, |x, axis| x.slice(axis, 1.., 2))
            }
        }
    }
}

/// Host values of a dtype.
pub fn host(values: &[f64], dtype: DType) -> HostData {
    fn all<T: Element>(values: &[f64]) -> HostData {
        T::into_host(values.iter().map(|&v| T::from_f64(v)).collect())
    }
    match dtype {
        DType::F64 => all::<f64>(values),
        DType::F32 => all::<f32>(values),
        DType::F16 => all::<half::f16>(values),
        DType::BF16 => all::<half::bf16>(values),
        DType::I64 => all::<i64>(values),
        DType::I32 => all::<i32>(values),
        DType::U8 => all::<u8>(values),
        DType::Bool => all::<bool>(values),
    }
}
