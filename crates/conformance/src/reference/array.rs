//! Row-major values on the host, each with its bound.

use tensor_core::expr::{Bounded, Bounds, Value};
use tensor_core::{DType, Element, HostSlice, Tensor};

/// One element: a real with its bound (bool is 0 or 1), or an integer.
pub type Cell = Value<Bounded>;

/// A row-major array.
#[derive(Clone, Debug)]
pub struct Array {
    /// The sizes.
    pub dims: Vec<usize>,
    /// The element type that the cells stand for.
    pub dtype: DType,
    /// The elements.
    pub cells: Vec<Cell>,
}

impl Array {
    /// The elements of a tensor of the reference, in row-major order.
    pub fn of(x: &Tensor) -> Self {
        let storage: &Vec<Cell> = x.storage().downcast_ref().expect("invariant: a tensor of the reference");
        let layout = x.layout();
        let cells = indices(x.dims())
            .map(|index| {
                let step: isize = index.iter().zip(layout.strides()).map(|(&i, &s)| i as isize * s).sum();
                storage[layout.offset().wrapping_add_signed(step)]
            })
            .collect();
        Self { dims: x.dims().to_vec(), dtype: x.dtype(), cells }
    }

    /// An array of the cell at each index.
    pub fn from_fn(dims: &[usize], dtype: DType, f: impl FnMut(Vec<usize>) -> Cell) -> Self {
        Self { dims: dims.to_vec(), dtype, cells: indices(dims).map(f).collect() }
    }

    /// The element at an index.
    pub fn at(&self, index: &[usize]) -> Cell {
        self.cells[self.position(index)]
    }

    /// The element at an index into a shape that this one broadcasts to.
    pub fn broadcast_at(&self, index: &[usize]) -> Cell {
        let lead = index.len() - self.dims.len();
        let own: Vec<usize> = index[lead..].iter().zip(&self.dims).map(|(&i, &n)| if n == 1 { 0 } else { i }).collect();
        self.at(&own)
    }

    /// Where an index lies in `cells`.
    pub fn position(&self, index: &[usize]) -> usize {
        assert_eq!(index.len(), self.dims.len(), "invariant: an index per axis");
        index.iter().zip(&self.dims).fold(0, |position, (&i, &n)| position * n + i)
    }

    /// The elements as they are stored in `dtype`: 16-bit floats are rounded.
    pub fn stored(mut self, bounds: &Bounds, dtype: DType) -> Self {
        for cell in &mut self.cells {
            if let Value::Real(v) = cell {
                *v = bounds.stored(*v, dtype);
            }
        }
        self.dtype = dtype;
        self
    }
}

/// Every index of a shape in row-major order.
pub(super) fn indices(dims: &[usize]) -> impl Iterator<Item = Vec<usize>> {
    let dims = dims.to_vec();
    let n: usize = dims.iter().product();
    (0..n).map(move |mut i| {
        let mut index = vec![0; dims.len()];
        for (axis, &n) in dims.iter().enumerate().rev() {
            index[axis] = i % n;
            i /= n;
        }
        index
    })
}

/// Exact cells of host values.
pub(super) fn from_host(values: HostSlice<'_>) -> Vec<Cell> {
    fn reals<T: Element>(values: &[T]) -> Vec<Cell> {
        values.iter().map(|v| super::exact(v.to_f64())).collect()
    }
    match values {
        HostSlice::F64(v) => reals(v),
        HostSlice::F32(v) => reals(v),
        HostSlice::F16(v) => reals(v),
        HostSlice::BF16(v) => reals(v),
        HostSlice::Bool(v) => reals(v),
        HostSlice::I64(v) => v.iter().map(|&v| Value::Int(v)).collect(),
        HostSlice::I32(v) => v.iter().map(|&v| Value::Int(v.into())).collect(),
        HostSlice::U8(v) => v.iter().map(|&v| Value::Int(v.into())).collect(),
    }
}
