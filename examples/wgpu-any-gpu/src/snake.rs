//! An op of one's own: its signature, its kernels and its derivative.

use std::sync::Arc;

use consort::op::{CustomKernel, HostArray, Meta, Metas, WgslKernel};
use consort::prelude::*;
use consort::{CustomOp, HostData, Kind};

/// x + sin²(a·x)/a of f32, which learns what repeats (Ziyin, Hartwig and Ueda, 2020).
#[derive(Debug)]
struct Snake {
    a: f32,
}

/// The op, with a = 2.
pub(crate) fn snake(x: &Tensor) -> Result<Tensor> {
    Ok(consort::custom(Arc::new(Snake { a: 2.0 }), &[x])?.remove(0))
}

impl CustomOp for Snake {
    fn name(&self) -> &str {
        "snake"
    }

    // What is let through here is all that the kernels will see.
    fn infer(&self, inputs: &[Meta]) -> Result<Metas> {
        match inputs {
            [x] if x.dtype == DType::F32 => Ok([x.clone()].into_iter().collect()),
            _ => Err(Error::dtype("snake", format!("takes one tensor of f32: inputs {inputs:?}"))),
        }
    }

    // One kernel per kind of device. A text is compiled when it is first used.
    fn kernel(&self, kind: Kind) -> Option<CustomKernel> {
        let a = self.a;
        let on_gpu = move |inputs: &[Meta], _: &[Meta]| {
            let n = inputs[0].shape.len();
            Ok(WgslKernel {
                text: include_str!("snake.wgsl"),
                entry: "snake",
                groups: [n.div_ceil(64) as u32, 1, 1],
                numbers: vec![n as u32, a.to_bits()],
            })
        };
        let on_cpu = move |inputs: &[HostArray], _: &[Meta]| match &inputs[0].data {
            HostData::F32(x) => Ok(vec![HostData::F32(x.iter().map(|&x| x + (a * x).sin().powi(2) / a).collect())]),
            _ => Err(Error::dtype("snake", "infer lets f32 through alone")),
        };
        match kind {
            Kind::Wgpu => Some(CustomKernel::Wgsl(Arc::new(on_gpu))),
            Kind::Cpu => Some(CustomKernel::Rust(Arc::new(on_cpu))),
            _ => None,
        }
    }

    // 1 + sin(2a·x), written with ops: it runs on every device, and has derivatives of its own.
    fn derivative(&self, inputs: &[&Tensor], _: &[Tensor], grads: &[Tensor]) -> Result<Vec<Option<Tensor>>> {
        let slope = inputs[0].mul(2.0 * f64::from(self.a))?.sin()?.add(1.0)?;
        Ok(vec![Some(slope.mul(&grads[0])?)])
    }
}
