//! Pooling: the maximum through the positions it gave, the average through its adjoint.

use tensor_core::op::{AvgPoolGrad, Pool, PoolKind};
use tensor_core::{Dims, Op, Result, Tensor};

use super::{Step, run};

pub(super) fn pool(pool: &Pool, step: &mut Step<'_>) -> Result<()> {
    let g = step.g();
    let gradient = match pool.kind {
        PoolKind::Max => {
            let flat = |x: &Tensor| x.flatten(2..);
            let zeros = flat(&step.zeros_like(0)?)?;
            zeros.scatter_add(2, &flat(step.output(1))?, &flat(g)?)?.reshape(step.shape(0))?
        }
        PoolKind::Avg { .. } => {
            let spatial = Dims::from_slice(&step.shape(0)[2..]);
            run(&Op::AvgPoolGrad(AvgPoolGrad { pool: pool.clone(), spatial }), &[g])?
        }
    };
    step.give(0, gradient)
}

pub(super) fn avg_pool_grad(grad: &AvgPoolGrad, step: &mut Step<'_>) -> Result<()> {
    step.give(0, run(&Op::Pool(grad.pool.clone()), &[step.g()])?)
}
