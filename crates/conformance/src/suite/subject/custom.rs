//! An op of a user's own.

use std::sync::Arc;

use tensor_core::op::{CustomKernel, PtxKernel, PtxLaunch};
use tensor_core::{CustomOp, DType, Error, HostData, Kind, Meta, Metas, Result, Tensor, custom};

use super::{small, subject};
use crate::suite::case::Call;
use crate::suite::case::Subject;
use crate::suite::input::{Input, floats};

/// x³ in Rust, with a derivative in ops.
#[derive(Debug)]
struct Cube;

impl CustomOp for Cube {
    fn name(&self) -> &str {
        "cube"
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Metas> {
        match inputs {
            [x] if matches!(x.dtype, DType::F32 | DType::F64) => Ok(inputs.iter().cloned().collect()),
            _ => Err(Error::dtype("cube", "needs one input of f32 or f64")),
        }
    }

    fn kernel(&self, kind: Kind) -> Option<CustomKernel> {
        let cube = |x: f64| x * x * x;
        match kind {
            Kind::Cpu => Some(CustomKernel::Rust(Arc::new(move |inputs, outputs| {
                let values = inputs[0].data.to_f64().into_iter().map(cube);
                Ok::<Vec<HostData>, Error>(vec![floats(outputs[0].dtype, values)])
            }))),
            Kind::Cuda => Some(CustomKernel::Ptx(PtxKernel {
                text: include_str!("cube.ptx"),
                launch: Arc::new(|inputs, _| {
                    let n = inputs[0].shape.len();
                    Ok(PtxLaunch {
                        entry: if inputs[0].dtype == DType::F32 { "cube_f32" } else { "cube_f64" },
                        grid: [n.div_ceil(128) as u32, 1, 1],
                        block: [128, 1, 1],
                        shared_bytes: 0,
                        numbers: vec![n as u64],
                    })
                }),
            })),
            _ => None,
        }
    }

    fn derivative(&self, inputs: &[&Tensor], _: &[Tensor], grads: &[Tensor]) -> Result<Vec<Option<Tensor>>> {
        Ok(vec![Some(inputs[0].square()?.mul(3.0)?.mul(&grads[0])?)])
    }
}

pub(super) fn subjects() -> Vec<Subject> {
    vec![subject("custom", "custom(op, inputs)", |draw, _| {
        let rank = draw.pick(&[1, 2, 0, 3]);
        // Of small numbers: nothing is promised for an op whose tolerance is not stated.
        let inputs = vec![Input::within(&small(draw, rank), -2.0, 2.0)];
        Call::many("x³", inputs, |_, x| custom(Arc::new(Cube), &[&x[0]]))
    })]
}
