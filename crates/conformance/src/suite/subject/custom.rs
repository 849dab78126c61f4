//! An op of a user's own.

use std::sync::Arc;

use tensor_core::op::{CustomKernel, PtxKernel, PtxLaunch, WgslKernel};
use tensor_core::{CustomOp, DType, Error, HostData, Kind, Meta, Metas, Result, Tensor, custom};

use super::{small, subject};
use crate::suite::case::Call;
use crate::suite::case::Subject;
use crate::suite::input::{Input, floats};

/// x² in kernels of a user's own, with a derivative in ops.
#[derive(Debug)]
struct Square;

impl CustomOp for Square {
    fn name(&self) -> &str {
        "square"
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Metas> {
        match inputs {
            [x] if matches!(x.dtype, DType::F32 | DType::F64) => Ok(inputs.iter().cloned().collect()),
            _ => Err(Error::dtype("square", "needs one input of f32 or f64")),
        }
    }

    fn kernel(&self, kind: Kind) -> Option<CustomKernel> {
        let square = |x: f64| x * x;
        match kind {
            Kind::Cpu => Some(CustomKernel::Rust(Arc::new(move |inputs, outputs| {
                let values = inputs[0].data.to_f64().into_iter().map(square);
                Ok::<Vec<HostData>, Error>(vec![floats(outputs[0].dtype, values)])
            }))),
            Kind::Cuda => Some(CustomKernel::Ptx(PtxKernel {
                text: include_str!("square.ptx"),
                launch: Arc::new(|inputs, _| {
                    let n = inputs[0].shape.len();
                    Ok(PtxLaunch {
                        entry: if inputs[0].dtype == DType::F32 { "square_f32" } else { "square_f64" },
                        grid: [n.div_ceil(128) as u32, 1, 1],
                        block: [128, 1, 1],
                        shared_bytes: 0,
                        numbers: vec![n as u64],
                    })
                }),
            })),
            Kind::Wgpu => Some(CustomKernel::Wgsl(Arc::new(|inputs, _| {
                let n = inputs[0].shape.len();
                let is_single = inputs[0].dtype == DType::F32;
                Ok(WgslKernel {
                    text: if is_single { include_str!("square.wgsl") } else { include_str!("square_double.wgsl") },
                    entry: "square",
                    groups: [n.div_ceil(64) as u32, 1, 1],
                    numbers: vec![n as u32],
                })
            }))),
            Kind::Other => None,
        }
    }

    fn derivative(&self, inputs: &[&Tensor], _: &[Tensor], grads: &[Tensor]) -> Result<Vec<Option<Tensor>>> {
        Ok(vec![Some(inputs[0].mul(2.0)?.mul(&grads[0])?)])
    }
}

pub(super) fn subjects() -> Vec<Subject> {
    vec![subject("custom", "custom(op, inputs)", |draw, _| {
        let rank = draw.pick(&[1, 2, 0, 3]);
        // Of small numbers: nothing is promised for an op whose tolerance is not stated.
        let inputs = vec![Input::within(&small(draw, rank), -2.0, 2.0)];
        Call::many("x²", inputs, |_, x| custom(Arc::new(Square), &[&x[0]]))
    })]
}
