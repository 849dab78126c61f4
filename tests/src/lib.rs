//! What the integration tests share: a naive host array to compute expected values with, and comparisons whose
//! tolerance comes from the element type and the length of the sums, never from a test.
#![forbid(unsafe_code)]

pub mod oracle;

use consort::{DType, Device, Result, Tensor};

/// A row-major f64 array on the host.
#[derive(Clone, Debug, PartialEq)]
pub struct Grid {
    /// The sizes.
    pub dims: Vec<usize>,
    /// The values.
    pub values: Vec<f64>,
}

impl Grid {
    /// An array of the value at each index.
    pub fn from_fn(dims: &[usize], f: impl Fn(&[usize]) -> f64) -> Self {
        let n: usize = dims.iter().product();
        let mut index = vec![0; dims.len()];
        let mut values = Vec::with_capacity(n);
        for _ in 0..n {
            values.push(f(&index));
            for (i, &n) in index.iter_mut().zip(dims).rev() {
                *i += 1;
                if *i < n {
                    break;
                }
                *i = 0;
            }
        }
        Self { dims: dims.to_vec(), values }
    }

    /// An array counting 0, 1, 2, …
    pub fn count(dims: &[usize]) -> Self {
        let n: usize = dims.iter().product();
        Self { dims: dims.to_vec(), values: (0..n).map(|i| i as f64).collect() }
    }

    /// The value at an index.
    pub fn at(&self, index: &[usize]) -> f64 {
        assert_eq!(index.len(), self.dims.len());
        let flat = index.iter().zip(&self.dims).fold(0, |flat, (&i, &n)| flat * n + i);
        self.values[flat]
    }

    /// The array of `f` of each value.
    pub fn map(&self, f: impl FnMut(f64) -> f64) -> Self {
        Self { dims: self.dims.clone(), values: self.values.iter().copied().map(f).collect() }
    }

    /// The same values as a tensor.
    pub fn tensor(&self, device: &Device, dtype: DType) -> Result<Tensor> {
        Tensor::from_slice(&self.values, &self.dims[..], device)?.cast(dtype)
    }
}

/// Steele, Lea and Flood's SplitMix64, seeded with the FNV-1a hash of a text: what tests draw from.
pub struct Rng(u64);

impl Rng {
    /// The numbers of a name.
    pub fn new(name: &str) -> Self {
        Self(name.bytes().fold(0xCBF2_9CE4_8422_2325, |h, b| (h ^ u64::from(b)).wrapping_mul(0x100_0000_01B3)))
    }

    /// One of 0..n.
    pub fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ z >> 31) % n as u64) as usize
    }

    /// One of low..=high.
    pub fn within(&mut self, low: i64, high: i64) -> i64 {
        low + self.below((high - low + 1) as usize) as i64
    }
}

/// The index of the i-th element in row-major order.
pub fn unravel(mut i: usize, dims: &[usize]) -> Vec<usize> {
    let mut index = vec![0; dims.len()];
    for (axis, &n) in dims.iter().enumerate().rev() {
        index[axis] = i % n;
        i /= n;
    }
    index
}

/// The elements as f64, whatever their type.
pub fn values(x: &Tensor) -> Vec<f64> {
    x.cast(DType::F64).and_then(|x| x.to_vec::<f64>()).expect("a tensor can be read")
}

/// Panics unless shape and values agree to the rounding of `terms` operations in the tensor's dtype, relative to `scale`
/// (the largest magnitude that entered the sums); NaN and infinities must agree exactly.
#[track_caller]
pub fn assert_close(name: &str, got: &Tensor, want: &Grid, terms: usize, scale: f64) {
    assert_eq!(got.dims(), want.dims, "{name}: shape");
    let tolerance = got.dtype().epsilon() * 4.0 * (terms as f64).max(1.0) * scale.max(f64::MIN_POSITIVE);
    for (i, (&g, &w)) in values(got).iter().zip(&want.values).enumerate() {
        let same = g == w || (g.is_nan() && w.is_nan()) || (g - w).abs() <= tolerance;
        assert!(same, "{name}: at {:?}: got {g:?}, want {w:?}, tolerance {tolerance:e}", unravel(i, &want.dims));
    }
}

/// Panics unless shape and values agree exactly.
#[track_caller]
pub fn assert_exact(name: &str, got: &Tensor, dims: &[usize], want: &[f64]) {
    let want = Grid { dims: dims.to_vec(), values: want.to_vec() };
    assert_eq!(got.dims(), want.dims, "{name}: shape");
    for (i, (&g, &w)) in values(got).iter().zip(&want.values).enumerate() {
        assert!(g == w || (g.is_nan() && w.is_nan()), "{name}: at {:?}: got {g:?}, want {w:?}", unravel(i, dims));
    }
}
