//! What a case feeds to an op: values from the contract's domain, and the layouts that they lie in.

use std::fmt;

use tensor_core::op::Edge;
use tensor_core::{DType, Device, Element, HostData, Result, Tensor};

/// What an input holds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Content {
    /// Numbers of the case's dtype from the contract's domain, and its special values.
    Data,
    /// Numbers of the case's dtype between these, without special values.
    Within(f64, f64),
    /// Positions below a size, i64 or i32.
    Index(usize, DType),
    /// Truth values.
    Mask,
}

/// An input of a call.
#[derive(Clone, Debug, PartialEq)]
pub struct Input {
    /// The sizes.
    pub dims: Vec<usize>,
    /// What it holds.
    pub content: Content,
}

impl Input {
    /// Numbers of the case's dtype.
    pub fn data(dims: &[usize]) -> Self {
        Self { dims: dims.to_vec(), content: Content::Data }
    }

    /// Numbers of the case's dtype between these.
    pub fn within(dims: &[usize], low: f64, high: f64) -> Self {
        Self { dims: dims.to_vec(), content: Content::Within(low, high) }
    }

    /// Positions below `n`.
    pub fn index(dims: &[usize], n: usize, dtype: DType) -> Self {
        Self { dims: dims.to_vec(), content: Content::Index(n, dtype) }
    }

    /// Truth values.
    pub fn mask(dims: &[usize]) -> Self {
        Self { dims: dims.to_vec(), content: Content::Mask }
    }

    /// Its dtype in a case of that dtype.
    pub fn dtype(&self, dtype: DType) -> DType {
        match self.content {
            Content::Data | Content::Within(..) => dtype,
            Content::Index(_, index) => index,
            Content::Mask => DType::Bool,
        }
    }
}

/// How an input's elements lie in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Layout {
    /// Row-major from the first element on.
    Contiguous,
    /// The axes in reverse order.
    Transposed,
    /// Every other element of the last axis, from an offset on, of something larger along the first.
    Sliced,
    /// One axis with stride 0.
    Broadcast,
    /// Every axis backwards: negative strides.
    Flipped,
    /// Row-major from an offset on that is no multiple of a vector.
    Offset,
}

impl Layout {
    /// Each of them.
    pub const ALL: [Self; 6] =
        [Self::Contiguous, Self::Transposed, Self::Sliced, Self::Broadcast, Self::Flipped, Self::Offset];

    /// The name in reports and reproductions.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Contiguous => "contiguous",
            Self::Transposed => "transposed",
            Self::Sliced => "sliced",
            Self::Broadcast => "broadcast",
            Self::Flipped => "flipped",
            Self::Offset => "offset",
        }
    }

    /// The sizes of what is uploaded, of which [`Layout::view`] is a view of size `dims`.
    fn base(self, dims: &[usize]) -> Vec<usize> {
        let mut base = dims.to_vec();
        match self {
            Self::Contiguous | Self::Flipped => {}
            Self::Transposed => base.reverse(),
            Self::Sliced => {
                if let Some(last) = base.last_mut() {
                    *last = 2 * *last + 1;
                }
                if let [first, _, ..] = &mut base[..] {
                    *first += 2;
                }
            }
            Self::Broadcast => {
                if let Some(n) = base.iter_mut().find(|n| **n > 1) {
                    *n = 1;
                }
            }
            Self::Offset => base = vec![dims.iter().product::<usize>() + 3],
        }
        base
    }

    /// The view of size `dims` of what has the size [`Layout::base`].
    fn view(self, base: &Tensor, dims: &[usize]) -> Result<Tensor> {
        match self {
            Self::Contiguous => Ok(base.clone()),
            Self::Transposed => base.permute((0..dims.len()).rev().collect::<Vec<_>>()),
            Self::Sliced if dims.is_empty() => Ok(base.clone()),
            Self::Sliced => {
                let x = if dims.len() > 1 { base.narrow(0, 1, dims[0])? } else { base.clone() };
                x.slice(-1, 1..(1 + 2 * dims[dims.len() - 1]) as i64, 2)
            }
            Self::Broadcast => base.expand(dims),
            Self::Flipped => base.flip(..),
            Self::Offset => base.narrow(0, 3, dims.iter().product())?.reshape(dims),
        }
    }
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Which values fill the data of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fill {
    /// Integers from −2 to 2: sums and products of them are exact.
    Integers,
    /// Anything of the domain.
    Domain,
    /// The same, strewn with the contract's special values.
    Edges,
}

/// Where numbers come from: the contract's domain and special values.
#[derive(Clone, Copy, Debug)]
pub struct Source {
    /// Which values.
    pub fill: Fill,
    /// From which others follow.
    pub seed: u64,
    /// The domain.
    pub domain: (f64, f64),
    /// The special values.
    pub edges: &'static [Edge],
}

/// Numbers without pattern (splitmix64).
pub(crate) fn mixed(seed: u64, i: u64) -> u64 {
    let mut z = seed.wrapping_mul(0xd134_2543_de82_ef95).wrapping_add((i + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

impl Source {
    fn float(&self, random: u64, dtype: DType, (low, high): (f64, f64), is_data: bool) -> f64 {
        let part = (random >> 40) as f64 / (1u64 << 24) as f64;
        match self.fill {
            Fill::Edges if is_data && random.is_multiple_of(8) && !self.edges.is_empty() => {
                let edge = self.edges[(random >> 8) as usize % self.edges.len()].values(dtype);
                edge[(random >> 20) as usize % edge.len()]
            }
            Fill::Integers if low <= -1.0 && high >= 1.0 => (random >> 3) as f64 % 5.0 - 2.0,
            Fill::Integers | Fill::Domain | Fill::Edges => low + part * (high - low),
        }
    }

    fn integer(&self, random: u64, dtype: DType) -> i64 {
        let (low, high) = match dtype {
            DType::I32 => (i64::from(i32::MIN), i64::from(i32::MAX)),
            DType::U8 => (0, 255),
            _ => (i64::MIN, i64::MAX),
        };
        match self.fill {
            Fill::Edges if random.is_multiple_of(4) => {
                [low, high, 0, -1, low + 1, high - 1][(random >> 8) as usize % 6]
            }
            Fill::Integers => (random >> 3) as i64 % 5 - if dtype == DType::U8 { 0 } else { 2 },
            Fill::Domain | Fill::Edges => (random >> 3) as i64 % 201 - if dtype == DType::U8 { 0 } else { 100 },
        }
    }

    /// `n` values for an input; `stream` tells inputs apart.
    pub fn values(&self, input: &Input, dtype: DType, n: usize, stream: u64) -> HostData {
        let randoms = (0..n as u64).map(|i| mixed(self.seed.wrapping_add(stream << 32), i));
        match input.content {
            Content::Mask => HostData::Bool(randoms.map(|r| r >> 17 & 1 == 1).collect()),
            Content::Index(below, index) => integers(index, randoms.map(|r| ((r >> 9) % below.max(1) as u64) as i64)),
            Content::Data if dtype == DType::Bool => HostData::Bool(randoms.map(|r| r >> 17 & 1 == 1).collect()),
            Content::Data | Content::Within(..) if dtype.is_float() => {
                let (range, is_data) = match input.content {
                    Content::Within(low, high) => ((low, high), false),
                    _ => (self.domain, true),
                };
                floats(dtype, randoms.map(|r| self.float(r, dtype, range, is_data)))
            }
            Content::Within(low, high) => {
                let span = (high - low).max(0.0) as u64 + 1;
                integers(dtype, randoms.map(|r| low as i64 + ((r >> 9) % span) as i64))
            }
            Content::Data => integers(dtype, randoms.map(|r| self.integer(r, dtype))),
        }
    }
}

fn of<T: Element>(values: impl Iterator<Item = T>) -> HostData {
    T::into_host(values.collect())
}

/// Values of a float type, rounded to it.
pub(crate) fn floats(dtype: DType, values: impl Iterator<Item = f64>) -> HostData {
    match dtype {
        DType::F32 => of(values.map(|v| v as f32)),
        DType::F16 => of(values.map(half::f16::from_f64)),
        DType::BF16 => of(values.map(half::bf16::from_f64)),
        _ => of(values),
    }
}

pub(crate) fn integers(dtype: DType, values: impl Iterator<Item = i64>) -> HostData {
    match dtype {
        DType::I32 => of(values.map(|v| v as i32)),
        DType::U8 => of(values.map(|v| v as u8)),
        DType::Bool => of(values.map(|v| v != 0)),
        _ => of(values),
    }
}

/// An input's values, ready to be put on devices.
pub struct Prepared {
    values: HostData,
    base: Vec<usize>,
    dims: Vec<usize>,
    layout: Layout,
}

impl Prepared {
    /// The values and the layout of an input; `stream` tells inputs apart.
    pub fn new(input: &Input, dtype: DType, layout: Layout, source: &Source, stream: u64) -> Self {
        let base = layout.base(&input.dims);
        let n = base.iter().product();
        Self { values: source.values(input, dtype, n, stream), base, dims: input.dims.clone(), layout }
    }

    /// Values that are given, row-major.
    pub(super) fn given(values: HostData, dims: &[usize]) -> Self {
        Self { values, base: dims.to_vec(), dims: dims.to_vec(), layout: Layout::Contiguous }
    }

    /// The input on a device, in its layout.
    ///
    /// # Errors
    /// What the device reports.
    pub fn on(&self, device: &Device) -> Result<Tensor> {
        let base = Tensor::from_host(self.values.as_slice(), &self.base[..], (device, self.values.dtype()))?;
        self.layout.view(&base, &self.dims)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_layout_gives_the_sizes_asked_for() -> Result<()> {
        let device = crate::reference::device(Default::default());
        let source = Source { fill: Fill::Domain, seed: 7, domain: (-4.0, 4.0), edges: &[] };
        for dims in [vec![], vec![0], vec![1], vec![5], vec![2, 3], vec![3, 0, 2], vec![2, 1, 3, 2]] {
            for layout in Layout::ALL {
                let x = Prepared::new(&Input::data(&dims), DType::F32, layout, &source, 0).on(&device)?;
                assert_eq!(x.dims(), dims, "{layout}");
                let strides = x.layout().strides();
                match layout {
                    Layout::Broadcast if dims == [2, 3] => assert_eq!(strides, [0, 1]),
                    Layout::Flipped if dims == [2, 3] => assert_eq!(strides, [-3, -1]),
                    Layout::Sliced if dims == [2, 3] => assert_eq!((strides, x.layout().offset()), (&[7, 2][..], 8)),
                    Layout::Transposed if dims == [2, 3] => assert_eq!(strides, [1, 2]),
                    _ => {}
                }
            }
        }
        Ok(())
    }
}
