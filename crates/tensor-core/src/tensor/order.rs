//! Running folds and sorting along an axis.

use crate::op::{Scan, ScanKind, Sort};
use crate::{Error, IntoAxis, Op, Result, Tensor, execute};

macro_rules! scans {
    ($($(#[$doc:meta])* $name:ident = $kind:ident;)*) => { impl Tensor { $(
        $(#[$doc])*
        ///
        /// # Errors
        /// If the axis is out of range, or the dtype is bool.
        pub fn $name(&self, axis: impl IntoAxis) -> Result<Tensor> {
            let axis = axis.resolve_axis(stringify!($name), self.rank())?;
            self.run(&Op::Scan(Scan { kind: ScanKind::$kind, axis, reverse: false }))
        }
    )* } };
}

scans! {
    /// y_i = x_0 + … + x_i along `axis`.
    cumsum = Sum;
    /// y_i = x_0 · … · x_i along `axis`.
    cumprod = Prod;
    /// y_i = max(x_0, …, x_i) along `axis`; from a NaN on, NaN.
    cummax = Max;
}

impl Tensor {
    /// The values in order along `axis`, and their positions before (i64). Stable; NaN last in either direction.
    ///
    /// # Errors
    /// If the axis is out of range.
    pub fn sort(&self, axis: impl IntoAxis, descending: bool) -> Result<(Tensor, Tensor)> {
        self.sorted("sort", axis, descending)
    }

    fn sorted(&self, op: &'static str, axis: impl IntoAxis, descending: bool) -> Result<(Tensor, Tensor)> {
        let axis = axis.resolve_axis(op, self.rank())?;
        let mut outputs = execute(&Op::Sort(Sort { axis, descending }), &[self])?.into_iter();
        let mut next = || outputs.next().expect("invariant: a sort has two outputs");
        Ok((next(), next()))
    }

    /// The positions of the values in order along `axis` (i64). Stable; NaN last in either direction.
    ///
    /// # Errors
    /// If the axis is out of range.
    pub fn argsort(&self, axis: impl IntoAxis, descending: bool) -> Result<Tensor> {
        Ok(self.sorted("argsort", axis, descending)?.1)
    }

    /// The `k` largest along `axis`, largest first, and their positions (i64). NaN counts as the smallest.
    ///
    /// # Errors
    /// If the axis is out of range or has fewer than `k` elements.
    pub fn topk(&self, k: usize, axis: impl IntoAxis) -> Result<(Tensor, Tensor)> {
        let axis = axis.resolve_axis("topk", self.rank())?;
        if k > self.dims()[axis] {
            return Err(Error::value(
                "topk",
                format!("k must not exceed the axis: k {k}, size {} on axis {axis}", self.dims()[axis]),
            ));
        }
        let (values, indices) = self.sorted("topk", axis, true)?;
        Ok((values.cut(axis, 0, k, 1)?, indices.cut(axis, 0, k, 1)?))
    }
}
