//! Faults that kernels really have, each caught in the op that has it.

use tensor_core::{ConvOptions, PoolOptions};

use super::*;
use crate::saboteur::{self, Fault};

/// Runs a program on a device with the fault; gives the op that the error names, or nothing.
fn culprit(fault: Fault, program: fn(&Device) -> Result<()>) -> Option<String> {
    program(&cpu()).expect("the program is right");
    let (device, log, _folder) = watched(&saboteur::device(&cpu(), fault), false);
    let error = program(&device).err()?;
    let findings = log.findings();
    assert_eq!(findings.len(), 1, "{error}");
    assert!(error.to_string().contains(" breaks the contract: "), "{error}");
    Some(findings[0].op.clone())
}

#[test]
fn each_fault_is_named_where_it_shows() {
    let cases: &[(Fault, &str, fn(&Device) -> Result<()>)] = &[
        (Fault::OffByTenTolerances, "matmul", |d| ramp(&[3, 4], d)?.matmul(&ramp(&[4, 5], d)?).map(drop)),
        (Fault::IgnoresAStride, "exp", |d| ramp(&[3, 4], d)?.t()?.exp().map(drop)),
        (Fault::IgnoresAnOffset, "sum", |d| ramp(&[6, 4], d)?.narrow(0, 2, 3)?.sum(0).map(drop)),
        (Fault::IgnoresASign, "copy", |d| ramp(&[5], d)?.flip(0)?.contiguous().map(drop)),
        (Fault::DropsTheLastElement, "exp", |d| ramp(&[5], d)?.exp().map(drop)),
        (Fault::SkipsATail, "sum", |d| ramp(&[2, 40], d)?.sum(1).map(drop)),
        (Fault::WrongFoldSeed, "max", |d| ramp(&[4], d)?.sub(2.0)?.max(0).map(drop)),
        (Fault::TakesTheLastTie, "argmax", |d| Tensor::ones([4], d)?.argmax(0).map(drop)),
        (Fault::ForgetsARepeatedIndex, "scatter_add", |d| {
            let index = Tensor::from_vec(vec![1i64, 1], [2], d)?;
            Tensor::zeros([3], d)?.scatter_add(0, &index, &Tensor::ones([2], d)?).map(drop)
        }),
        (Fault::SwapsOperands, "sub", |d| ramp(&[4], d)?.sub(&Tensor::ones([4], d)?).map(drop)),
        (Fault::IgnoresGroups, "conv1d", |d| {
            let options = ConvOptions::default().groups(2usize);
            ramp(&[1, 4, 6], d)?.conv1d(&ramp(&[2, 2, 3], d)?, None, &options).map(drop)
        }),
        (Fault::SwapsPadding, "max_pool", |d| {
            ramp(&[1, 1, 7], d)?.max_pool1d(&PoolOptions::new(3).padding([(0, 1)])).map(drop)
        }),
        (Fault::RoundsThroughF16, "mul", |d| ramp(&[4], d)?.mul(&ramp(&[4], d)?).map(drop)),
        (Fault::MultipliesInTf32, "matmul", |d| ramp(&[3, 4], d)?.matmul(&ramp(&[4, 5], d)?).map(drop)),
        (Fault::FastExp, "exp", |d| ramp(&[9], d)?.exp().map(drop)),
        (Fault::ChangesAnInput, "exp", |d| ramp(&[4], d)?.exp().map(drop)),
        (Fault::DrawsOtherNumbers, "randn", |d| Tensor::randn([4], d).map(drop)),
    ];
    for &(fault, op, program) in cases {
        assert_eq!(culprit(fault, program).as_deref(), Some(op), "{fault}");
    }
}
