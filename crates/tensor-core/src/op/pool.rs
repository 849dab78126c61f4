//! Pooling over windows of the trailing spatial axes.

use smallvec::smallvec;

use super::{Contract, Keeps, Meta, Metas, NUMBERS, Record, Window, exactly, float, not_bool, one};
use crate::{DType, Dims, Error, Result, Shape};

/// What is taken of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PoolKind {
    /// The largest; NaN propagates; padding never wins. Two outputs: values, and i32 positions in the spatial
    /// plane (row-major), of equals the first.
    Max,
    /// The mean; `count_padding` says whether padded zeros count in the divisor.
    Avg {
        /// Divide by the kernel's size always, or by the elements that are really there.
        count_padding: bool,
    },
}

/// Input [N, C, spatial…] → [N, C, spatial′…] (twice for the maximum: values and positions).
#[derive(Clone, Debug)]
pub struct Pool {
    /// Maximum or average.
    pub kind: PoolKind,
    /// The window's sizes.
    pub kernel: Dims,
    /// Its movement.
    pub window: Window,
}

impl Pool {
    fn op_name(&self) -> &'static str {
        match self.kind {
            PoolKind::Max => "max_pool",
            PoolKind::Avg { .. } => "avg_pool",
        }
    }

    fn shape(&self, op: &'static str, x: &Shape) -> Result<Shape> {
        if x.rank() != self.window.rank() + 2 {
            return Err(Error::shape(
                op,
                format!("input must be [N, C, spatial..] with {} spatial axes: input {x}", self.window.rank()),
            ));
        }
        for (axis, &k) in self.kernel.iter().enumerate() {
            let (before, after) = (self.window.before[axis], self.window.after[axis]);
            if before.max(after) > k / 2 {
                return Err(Error::value(
                    op,
                    format!(
                        "padding must be at most half the kernel: padding ({before}, {after}), kernel {k} on spatial axis {axis}"
                    ),
                ));
            }
        }
        let spatial = self.window.output(op, &x[2..], &self.kernel)?;
        for (axis, &n_windows) in spatial.iter().enumerate() {
            let (n, dilation, before) = (x[axis + 2], self.window.dilation[axis], self.window.before[axis]);
            // Padding is at most half a window, so that only taps further apart than the input is long can miss it.
            let is_within = |at: usize| (before..before + n).contains(&at);
            let is_outside =
                |w: usize| !(0..self.kernel[axis]).any(|k| is_within(w * self.window.stride[axis] + k * dilation));
            let needs_element = self.kind != PoolKind::Avg { count_padding: true };
            if needs_element && dilation > n && (0..n_windows).any(is_outside) {
                return Err(Error::value(
                    op,
                    format!(
                        "a window lies in the padding alone: input {n}, dilation {dilation}, before {before} on spatial axis {axis}"
                    ),
                ));
            }
        }
        Ok(x[..2].iter().copied().chain(spatial).collect())
    }
}

impl Record for Pool {
    fn name(&self) -> &str {
        self.op_name()
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Metas> {
        let [x] = exactly(inputs, self.op_name())?;
        let shape = self.shape(self.op_name(), &x.shape)?;
        match self.kind {
            PoolKind::Max => {
                not_bool(self.op_name(), "input", x.dtype)?;
                let plane = x.shape[2..].iter().fold(1usize, |n, &size| n.saturating_mul(size));
                if plane > i32::MAX as usize {
                    return Err(Error::shape(
                        self.op_name(),
                        format!(
                            "positions in the spatial plane are i32: input {}, elements of a plane {plane}, limit {}; pool \
                             parts of it",
                            x.shape,
                            i32::MAX
                        ),
                    ));
                }
                Ok(smallvec![Meta::new(shape.clone(), x.dtype), Meta::new(shape, DType::I32)])
            }
            PoolKind::Avg { .. } => {
                float(self.op_name(), "input", x.dtype)?;
                one(shape, x.dtype)
            }
        }
    }

    fn contract(&self) -> Contract {
        match self.kind {
            PoolKind::Max => Contract { dtypes: NUMBERS, ..Contract::exact() },
            PoolKind::Avg { .. } => Contract::sums(&DType::FLOATS),
        }
    }

    fn keeps(&self) -> Keeps {
        match self.kind {
            PoolKind::Max => Keeps { inputs: 0, outputs: 0b10 },
            PoolKind::Avg { .. } => Keeps::NOTHING,
        }
    }
}

/// Input: grad [N, C, spatial′…]; gives [N, C, spatial…], the adjoint of the average pool.
#[derive(Clone, Debug)]
pub struct AvgPoolGrad {
    /// The pool that this is the adjoint of; its kind is an average.
    pub pool: Pool,
    /// The spatial sizes of the result.
    pub spatial: Dims,
}

impl Record for AvgPoolGrad {
    fn name(&self) -> &str {
        "avg_pool_grad"
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Metas> {
        let [g] = exactly(inputs, "avg_pool_grad")?;
        float("avg_pool_grad", "grad", g.dtype)?;
        let x: Shape = g.shape.iter().take(2).copied().chain(self.spatial.iter().copied()).collect();
        let expected = self.pool.shape("avg_pool_grad", &x)?;
        if expected != g.shape {
            return Err(Error::shape("avg_pool_grad", format!("grad must be {expected}: grad {}", g.shape)));
        }
        one(x, g.dtype)
    }

    fn contract(&self) -> Contract {
        Contract::sums(&DType::FLOATS)
    }
}
