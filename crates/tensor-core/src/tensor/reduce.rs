//! Reductions. Axes are `..` (all), an index (negative counts from the end), a range or a list.

use std::sync::OnceLock;

use smallvec::{SmallVec, smallvec};

use super::first;
use crate::expr::build;
use crate::op::{ArgReduce, Map, Reduce, ReduceKind};
use crate::{DType, Dims, Error, Expr, IntoAxes, IntoAxis, Number, Op, Result, Tensor, execute};

impl Tensor {
    fn reduced(
        &self,
        name: &'static str,
        kind: ReduceKind,
        axes: impl IntoAxes,
        keepdim: bool,
        producer: Expr,
    ) -> Result<Tensor> {
        let axes = axes.resolve_axes(name, self.rank())?;
        self.run(&Op::Reduce(Reduce { name, kind, axes, keepdim, producer }))
    }

    fn float_input(&self, name: &'static str) -> Result<()> {
        if self.dtype().is_float() {
            return Ok(());
        }
        Err(Error::dtype(name, format!("needs a float dtype: input {}; cast it with .cast(..)", self.dtype())))
    }
}

macro_rules! reductions {
    ($($(#[$doc:meta])* $name:ident, $keepdim:ident = $kind:ident;)*) => { impl Tensor { $(
        $(#[$doc])*
        ///
        /// # Errors
        /// If an axis is out of range or named twice, or the dtype has no such reduction.
        pub fn $name(&self, axes: impl IntoAxes) -> Result<Tensor> {
            self.reduced(stringify!($name), ReduceKind::$kind, axes, false, Expr::identity())
        }

        #[doc = concat!("[`Tensor::", stringify!($name), "`] with the reduced axes kept at size 1.")]
        pub fn $keepdim(&self, axes: impl IntoAxes) -> Result<Tensor> {
            self.reduced(stringify!($name), ReduceKind::$kind, axes, true, Expr::identity())
        }
    )* } };
}

reductions! {
    /// Σ x over the axes; of nothing 0.
    sum, sum_keepdim = Sum;
    /// Π x over the axes; of nothing 1.
    prod, prod_keepdim = Prod;
    /// The largest over the axes; NaN propagates; of nothing an error. The first of equals has the gradient.
    max, max_keepdim = Max;
    /// The smallest over the axes; NaN propagates; of nothing an error. The first of equals has the gradient.
    min, min_keepdim = Min;
}

/// Whether any or all values are true; other dtypes ask whether they differ from 0.
macro_rules! truths {
    ($($(#[$doc:meta])* $name:ident, $keepdim:ident = $kind:ident;)*) => { impl Tensor { $(
        $(#[$doc])*
        pub fn $name(&self, axes: impl IntoAxes) -> Result<Tensor> {
            self.reduced(stringify!($name), ReduceKind::$kind, axes, false, truth(self.dtype()))
        }

        #[doc = concat!("[`Tensor::", stringify!($name), "`] with the reduced axes kept at size 1.")]
        pub fn $keepdim(&self, axes: impl IntoAxes) -> Result<Tensor> {
            self.reduced(stringify!($name), ReduceKind::$kind, axes, true, truth(self.dtype()))
        }
    )* } };
}

truths! {
    /// Whether any value over the axes is true (not 0); of nothing false.
    any, any_keepdim = Max;
    /// Whether all values over the axes are true (not 0); of nothing true.
    all, all_keepdim = Min;
}

fn truth(dtype: DType) -> Expr {
    static TRUTH: OnceLock<Expr> = OnceLock::new();
    match dtype {
        DType::Bool => Expr::identity(),
        _ => TRUTH.get_or_init(|| build(|[x]| x.cast(DType::Bool))).clone(),
    }
}

/// The expressions of the moments for one compute type; 16-bit floats are squared and summed in f32.
struct Moments {
    value: Expr,
    square: Expr,
    deviation: Expr,
}

fn moments(dtype: DType) -> &'static Moments {
    static SINGLE: OnceLock<Moments> = OnceLock::new();
    static DOUBLE: OnceLock<Moments> = OnceLock::new();
    let compute = dtype.compute();
    let cell = if compute == DType::F64 { &DOUBLE } else { &SINGLE };
    cell.get_or_init(|| Moments {
        value: build(|[x]| x.cast(compute)),
        square: build(|[x]| x.cast(compute).square()),
        deviation: build(|[x, mean]| (x.cast(compute) - mean).square()),
    })
}

/// How a sum becomes the result.
#[derive(Clone, Copy)]
enum Finish {
    Quotient(f64),
    RootOfQuotient(f64),
    Root,
}

/// Divides or takes roots in the compute type, then rounds to `dtype`.
fn finish(name: &'static str, sum: &Tensor, how: Finish, dtype: DType) -> Result<Tensor> {
    static EXPRS: [OnceLock<Expr>; 12] = [const { OnceLock::new() }; 12];
    let rounded = match dtype {
        DType::F16 => 1,
        DType::BF16 => 2,
        _ => 0,
    };
    let (kind, args): (usize, SmallVec<[Number; 2]>) = match how {
        Finish::Quotient(n) => (0, smallvec![n.into()]),
        Finish::RootOfQuotient(n) => (1, smallvec![n.into()]),
        Finish::Root => (2, smallvec![]),
    };
    let expr = EXPRS[kind * 3 + rounded].get_or_init(|| {
        build(|[x]| {
            // The slope of √ is infinite at 0, and all slopes below it are 0 there.
            let root = |x: crate::Sym| x.eq(0).select(0, x.sqrt());
            let y = match kind {
                0 => x / crate::Sym::parameter(0),
                1 => root(x / crate::Sym::parameter(0)),
                _ => root(x),
            };
            if rounded == 0 { y } else { y.cast(dtype) }
        })
    });
    sum.apply(name, expr, &args)
}

impl Tensor {
    /// How many elements the axes hold together.
    fn count(&self, axes: &[usize]) -> usize {
        axes.iter().map(|&a| self.dims()[a]).product()
    }

    /// Σ producer over the axes.
    pub(crate) fn summed(
        &self,
        name: &'static str,
        axes: &Dims,
        keepdim: bool,
        producer: &Expr,
        more: &[&Tensor],
    ) -> Result<Tensor> {
        let reduce = Reduce { name, kind: ReduceKind::Sum, axes: axes.clone(), keepdim, producer: producer.clone() };
        let inputs: SmallVec<[&Tensor; 2]> = std::iter::once(self).chain(more.iter().copied()).collect();
        first(execute(&Op::Reduce(reduce), &inputs))
    }

    fn mean_of(&self, axes: impl IntoAxes, keepdim: bool) -> Result<Tensor> {
        self.float_input("mean")?;
        let axes = axes.resolve_axes("mean", self.rank())?;
        let producer =
            if self.dtype() == self.dtype().compute() { &Expr::identity() } else { &moments(self.dtype()).value };
        let sum = self.summed("mean", &axes, keepdim, producer, &[])?;
        finish("mean", &sum, Finish::Quotient(self.count(&axes) as f64), self.dtype())
    }

    fn spread(&self, name: &'static str, axes: impl IntoAxes, correction: usize, keepdim: bool) -> Result<Tensor> {
        self.float_input(name)?;
        let axes = axes.resolve_axes(name, self.rank())?;
        let (n, m) = (self.count(&axes), moments(self.dtype()));
        // The mean stays in the compute type.
        let sum = self.summed(name, &axes, true, &m.value, &[])?;
        let mean = finish(name, &sum, Finish::Quotient(n as f64), sum.dtype())?;
        let squares = self.summed(name, &axes, keepdim, &m.deviation, &[&mean])?;
        let divisor = n.saturating_sub(correction) as f64;
        let how = if name == "std" { Finish::RootOfQuotient(divisor) } else { Finish::Quotient(divisor) };
        finish(name, &squares, how, self.dtype())
    }

    /// Σ x² / n over the axes, which stay with size 1.
    pub(crate) fn mean_square_keepdim(&self, axes: impl IntoAxes) -> Result<Tensor> {
        let axes = axes.resolve_axes("mean", self.rank())?;
        let squares = self.summed("mean", &axes, true, &moments(self.dtype()).square, &[])?;
        finish("mean", &squares, Finish::Quotient(self.count(&axes) as f64), self.dtype())
    }

    fn norm_of(&self, axes: impl IntoAxes, keepdim: bool) -> Result<Tensor> {
        self.float_input("norm")?;
        let axes = axes.resolve_axes("norm", self.rank())?;
        let squares = self.summed("norm", &axes, keepdim, &moments(self.dtype()).square, &[])?;
        finish("norm", &squares, Finish::Root, self.dtype())
    }

    /// Σ x / n over the axes; of nothing NaN.
    ///
    /// # Errors
    /// If an axis is out of range or named twice, or the dtype is not a float.
    pub fn mean(&self, axes: impl IntoAxes) -> Result<Tensor> {
        self.mean_of(axes, false)
    }

    /// [`Tensor::mean`] with the reduced axes kept at size 1.
    pub fn mean_keepdim(&self, axes: impl IntoAxes) -> Result<Tensor> {
        self.mean_of(axes, true)
    }

    /// Σ (x − mean)² / (n − correction) over the axes: correction 1 is the sample's, 0 the population's variance.
    /// Not finite where n ≤ correction.
    ///
    /// # Errors
    /// If an axis is out of range or named twice, or the dtype is not a float.
    pub fn var(&self, axes: impl IntoAxes, correction: usize) -> Result<Tensor> {
        self.spread("var", axes, correction, false)
    }

    /// [`Tensor::var`] with the reduced axes kept at size 1.
    pub fn var_keepdim(&self, axes: impl IntoAxes, correction: usize) -> Result<Tensor> {
        self.spread("var", axes, correction, true)
    }

    /// The standard deviation: the root of [`Tensor::var`].
    ///
    /// # Gradient
    /// 0 where all x are equal.
    ///
    /// # Errors
    /// If an axis is out of range or named twice, or the dtype is not a float.
    pub fn std(&self, axes: impl IntoAxes, correction: usize) -> Result<Tensor> {
        self.spread("std", axes, correction, false)
    }

    /// [`Tensor::std`] with the reduced axes kept at size 1.
    pub fn std_keepdim(&self, axes: impl IntoAxes, correction: usize) -> Result<Tensor> {
        self.spread("std", axes, correction, true)
    }

    /// √Σ x² over the axes.
    ///
    /// # Gradient
    /// x/‖x‖; 0 where all x are 0.
    ///
    /// # Errors
    /// If an axis is out of range or named twice, or the dtype is not a float.
    pub fn norm(&self, axes: impl IntoAxes) -> Result<Tensor> {
        self.norm_of(axes, false)
    }

    /// [`Tensor::norm`] with the reduced axes kept at size 1.
    pub fn norm_keepdim(&self, axes: impl IntoAxes) -> Result<Tensor> {
        self.norm_of(axes, true)
    }

    fn arg_reduced(&self, max: bool, axis: impl IntoAxis, keepdim: bool) -> Result<Tensor> {
        let axis = axis.resolve_axis(if max { "argmax" } else { "argmin" }, self.rank())?;
        self.run(&Op::ArgReduce(ArgReduce { max, axis, keepdim }))
    }

    /// The position of the largest along `axis` (→ i64): of equals the first; NaN counts as the largest.
    ///
    /// # Errors
    /// If the axis is out of range or empty, or the dtype is bool.
    pub fn argmax(&self, axis: impl IntoAxis) -> Result<Tensor> {
        self.arg_reduced(true, axis, false)
    }

    /// [`Tensor::argmax`] with the reduced axis kept at size 1.
    pub fn argmax_keepdim(&self, axis: impl IntoAxis) -> Result<Tensor> {
        self.arg_reduced(true, axis, true)
    }

    /// The position of the smallest along `axis` (→ i64): of equals the first; NaN counts as the smallest.
    ///
    /// # Errors
    /// If the axis is out of range or empty, or the dtype is bool.
    pub fn argmin(&self, axis: impl IntoAxis) -> Result<Tensor> {
        self.arg_reduced(false, axis, false)
    }

    /// [`Tensor::argmin`] with the reduced axis kept at size 1.
    pub fn argmin_keepdim(&self, axis: impl IntoAxis) -> Result<Tensor> {
        self.arg_reduced(false, axis, true)
    }

    /// ln Σ eˣ over the axes, without overflow; of nothing −∞.
    ///
    /// # Errors
    /// If an axis is out of range or named twice, or the dtype is not a float.
    pub fn logsumexp(&self, axes: impl IntoAxes) -> Result<Tensor> {
        self.logsumexp_of(axes, false)
    }

    /// [`Tensor::logsumexp`] with the reduced axes kept at size 1.
    pub fn logsumexp_keepdim(&self, axes: impl IntoAxes) -> Result<Tensor> {
        self.logsumexp_of(axes, true)
    }

    fn logsumexp_of(&self, axes: impl IntoAxes, keepdim: bool) -> Result<Tensor> {
        let name = "logsumexp";
        self.float_input(name)?;
        let axes = axes.resolve_axes(name, self.rank())?;
        if self.count(&axes) == 0 {
            return self.summed(name, &axes, keepdim, &Expr::identity(), &[])?.ln();
        }
        // The result does not depend on the shift, so that its gradient may stop here. An infinite one shifts nothing.
        let reduce = Reduce::new(name, ReduceKind::Max, &axes, true);
        let max = self.stop_gradient().run(&Op::Reduce(reduce))?;
        static SHIFT: OnceLock<Expr> = OnceLock::new();
        static SHIFTED: OnceLock<Expr> = OnceLock::new();
        static BACK: OnceLock<Expr> = OnceLock::new();
        let shift = max.apply(name, SHIFT.get_or_init(|| build(|[m]| m.is_finite().select(m, 0))), &[])?;
        let shifted = SHIFTED.get_or_init(|| build(|[x, shift]| (x - shift).exp()));
        let sum = self.summed(name, &axes, keepdim, shifted, &[&shift])?;
        let shift = if keepdim { shift } else { shift.reshape(sum.shape())? };
        let back = BACK.get_or_init(|| build(|[sum, shift]| sum.ln() + shift));
        first(execute(&Op::Map(Map::new(name, back.clone())), &[&sum, &shift]))
    }
}
