//! Picking, adding and writing by index or mask. Indices are i64 or i32, count from 0, and are never negative.

use std::sync::OnceLock;

use smallvec::SmallVec;

use super::movement::{IntoRange, resolve};
use super::{Operand, first};
use crate::expr::build;
use crate::op::{Gather, Map, Pad, ScatterAdd};
use crate::{DType, Dims, Error, Expr, IntoAxis, Number, Op, Result, Sym, Tensor, execute, zip_n};

impl Tensor {
    /// A vector of indices along `axis`, repeated (stride 0) along the other axes.
    fn along(&self, axis: usize, index: &Tensor) -> Result<Tensor> {
        let mut dims = Dims::from_elem(1, self.rank());
        dims[axis] = index.len();
        let column = index.reshape(&dims[..])?;
        let mut dims = Dims::from_slice(self.dims());
        dims[axis] = index.len();
        column.expand(&dims[..])
    }

    /// The slices of `axis` at these indices; the index's shape takes the axis's place. `embedding` is axis 0.
    ///
    /// # Errors
    /// If the axis is out of range or the index is not i64 or i32. An index out of range is an error on the CPU.
    pub fn index_select(&self, axis: impl IntoAxis, index: &Tensor) -> Result<Tensor> {
        let axis = axis.resolve_axis("index_select", self.rank())?;
        let picked = first(execute(&Op::Gather(Gather { axis }), &[self, &self.along(axis, index)?]))?;
        if index.rank() == 1 {
            return Ok(picked);
        }
        let d = self.dims();
        let dims: Dims = d[..axis].iter().chain(index.dims()).chain(&d[axis + 1..]).copied().collect();
        picked.reshape(&dims[..])
    }

    /// y[.., j, ..] = x[.., index[.., j, ..], ..] along `axis`: y has the index's shape.
    ///
    /// # Errors
    /// If the index has another rank, is larger off the axis, or is not i64 or i32. An index out of range is an error
    /// on the CPU.
    pub fn gather(&self, axis: impl IntoAxis, index: &Tensor) -> Result<Tensor> {
        let axis = axis.resolve_axis("gather", self.rank())?;
        first(execute(&Op::Gather(Gather { axis }), &[self, index]))
    }

    /// This tensor with source[.., j, ..] added at [.., index[.., j, ..], ..] along `axis`; repeated indices add up.
    ///
    /// # Errors
    /// If index and source differ in shape, have another rank than this tensor, or are larger off the axis.
    pub fn scatter_add(&self, axis: impl IntoAxis, index: &Tensor, source: &Tensor) -> Result<Tensor> {
        let axis = axis.resolve_axis("scatter_add", self.rank())?;
        first(execute(&Op::ScatterAdd(ScatterAdd { axis }), &[self, index, source]))
    }

    /// This tensor with the j-th slice of `source` along `axis` added to the slice at `index[j]`; repeated indices add up.
    ///
    /// # Errors
    /// If the index is not a vector of i64 or i32, or the source does not have this tensor's shape with as many slices.
    pub fn index_add(&self, axis: impl IntoAxis, index: &Tensor, source: &Tensor) -> Result<Tensor> {
        let axis = axis.resolve_axis("index_add", self.rank())?;
        if index.rank() != 1 {
            return Err(Error::shape("index_add", format!("the index must be a vector: index {}", index.shape())));
        }
        self.scatter_add(axis, &self.along(axis, index)?, source)
    }

    /// This tensor with a range along `axis` replaced by `source`, which broadcasts to it: a new tensor.
    ///
    /// # Errors
    /// If the axis or the range is out of range, the source does not broadcast, or the dtypes differ.
    pub fn slice_assign<'a>(
        &self,
        axis: impl IntoAxis,
        range: impl IntoRange,
        source: impl Into<Operand<'a>>,
    ) -> Result<Tensor> {
        let axis = axis.resolve_axis("slice_assign", self.rank())?;
        let size = self.dims()[axis];
        let range = resolve("slice_assign", range, size)?;
        let mut dims = Dims::from_slice(self.dims());
        dims[axis] = range.len();
        let source = match source.into() {
            Operand::Tensor(x) => x.expand(&dims[..])?,
            Operand::Number(v) => Self::full((), v, (self.place(), self.dtype()))?.expand(&dims[..])?,
        };
        let parts = [self.cut(axis, 0, range.start, 1)?, source, self.cut(axis, range.end, size - range.end, 1)?];
        let parts: SmallVec<[&Tensor; 3]> = parts.iter().filter(|x| x.dims()[axis] > 0).collect();
        if parts.is_empty() { Ok(self.clone()) } else { Self::cat(&parts, axis) }
    }

    /// `value` where the mask is true, else this tensor's element. The mask broadcasts to this tensor.
    ///
    /// # Errors
    /// If the mask is not bool or does not broadcast, or a float value meets an integer tensor.
    pub fn masked_fill(&self, mask: &Tensor, value: impl Into<Number>) -> Result<Tensor> {
        static FLOAT: OnceLock<Expr> = OnceLock::new();
        static INT: OnceLock<Expr> = OnceLock::new();
        if self.shape().broadcast(mask.shape()).as_ref() != Some(self.shape()) {
            return Err(Error::shape(
                "masked_fill",
                format!("the mask must broadcast to the input: input {}, mask {}", self.shape(), mask.shape()),
            ));
        }
        let value = value.into();
        let expr = match value {
            Number::Float(_) => FLOAT.get_or_init(|| build(|[x, mask]| mask.select(Sym::parameter(0), x))),
            Number::Int(_) => INT.get_or_init(|| build(|[x, mask]| mask.select(Sym::int_parameter(0), x))),
        };
        let expr = Expr { code: expr.code.clone(), args: SmallVec::from_slice(&[value]) };
        first(execute(&Op::Map(Map::new("masked_fill", expr)), &[self, mask]))
    }

    /// A new last axis of `n` (→ f32): 1 at the index, else 0; all 0 for an index out of range.
    ///
    /// # Errors
    /// If this tensor is not of an integer dtype.
    pub fn one_hot(&self, n: usize) -> Result<Tensor> {
        if !self.dtype().is_int() {
            return Err(Error::dtype(
                "one_hot",
                format!("needs an integer dtype: input {}; cast it with .cast(..)", self.dtype()),
            ));
        }
        let classes = Self::arange(0, n as i64, 1, (self.place(), self.dtype()))?;
        super::map::zip_named("one_hot", &self.unsqueeze(-1)?, &classes, |i, class| i.eq(class).cast(DType::F32))
    }

    /// The last two axes' positions: row [m, 1] and column [n]; and the number of a diagonal, one next to the matrix for those
    /// further off. In i32 where that fits: some GPUs do not compute in i64.
    fn positions(&self, op: &'static str, k: i64) -> Result<(Tensor, Tensor, i64)> {
        let &[.., m, n] = self.dims() else {
            return Err(Error::shape(op, format!("needs two axes or more: input {}", self.shape())));
        };
        let place = (self.place(), if m.max(n) < i32::MAX as usize / 2 { DType::I32 } else { DType::I64 });
        let (m, n) = (m as i64, n as i64);
        Ok((Self::arange(0, m, 1, place)?.unsqueeze(-1)?, Self::arange(0, n, 1, place)?, k.clamp(-m, n)))
    }

    /// The lower triangle of the last two axes: 0 above the `k`-th diagonal (0 the main one, positive above it).
    ///
    /// # Errors
    /// If there are fewer than two axes, or the dtype is bool.
    pub fn tril(&self, k: i64) -> Result<Tensor> {
        let (row, column, k) = self.positions("tril", k)?;
        zip_n([self, &row, &column], |[x, row, column]| column.le(row + k).select(x, 0))
    }

    /// The upper triangle of the last two axes: 0 below the `k`-th diagonal.
    ///
    /// # Errors
    /// If there are fewer than two axes, or the dtype is bool.
    pub fn triu(&self, k: i64) -> Result<Tensor> {
        let (row, column, k) = self.positions("triu", k)?;
        zip_n([self, &row, &column], |[x, row, column]| column.ge(row + k).select(x, 0))
    }

    /// Of a vector: the matrix with it on the `k`-th diagonal. Of a matrix: its `k`-th diagonal.
    ///
    /// # Errors
    /// If this is neither a vector nor a matrix.
    pub fn diag(&self, k: i64) -> Result<Tensor> {
        let (down, right) = (k.min(0).unsigned_abs() as usize, k.max(0) as usize);
        match *self.dims() {
            [n] => {
                // The elements of a diagonal lie one row and one column apart.
                let side = n.checked_add(down.max(right)).filter(|side| side.checked_mul(*side).is_some());
                let side = side.ok_or_else(|| {
                    Error::shape("diag", format!("the number of elements overflows: input {}, k {k}", self.shape()))
                })?;
                let (total, start) = (side * side, (down * side + right).min(side * side));
                let span = if n == 0 { 0 } else { (n - 1) * (side + 1) + 1 };
                let pad = Pad {
                    before: Dims::from_elem(start, 1),
                    after: Dims::from_elem(total - start - span, 1),
                    interior: Dims::from_elem(side, 1),
                    value: Number::Int(0),
                };
                self.run(&Op::Pad(pad))?.reshape([side, side])
            }
            [m, n] => {
                let len = m.saturating_sub(down).min(n.saturating_sub(right));
                let start = if len == 0 { 0 } else { down * n + right };
                self.reshape(-1)?.cut(0, start, len, n as isize + 1)
            }
            _ => Err(Error::shape("diag", format!("needs a vector or a matrix: input {}", self.shape()))),
        }
    }

    /// The positions of the elements that are not 0, [count, rank] (i64), in row-major order. Waits: the result's
    /// shape depends on the values. It has no gradient.
    ///
    /// # Errors
    /// What the device reports.
    pub fn nonzero(&self) -> Result<Tensor> {
        let truths = self.stop_gradient().cast(DType::Bool)?.to_vec::<bool>()?;
        let mut rows: Vec<i64> = Vec::new();
        let mut n = 0;
        for (i, _) in truths.iter().enumerate().filter(|&(_, &truth)| truth) {
            let (mut rest, at) = (i, rows.len());
            rows.resize(at + self.rank(), 0);
            for (axis, &size) in self.dims().iter().enumerate().rev() {
                rows[at + axis] = (rest % size) as i64;
                rest /= size;
            }
            n += 1;
        }
        Self::from_vec(rows, [n, self.rank()], self.place())
    }
}
