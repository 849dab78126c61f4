//! The suite on the emulator, which checks every access of every kernel.
#![cfg(feature = "emulator")]

use backend_cuda::{Emulated, emulated};
use conformance::suite;

/// Ops that run on CUDA so far.
const OPS: &str = "neg,abs,exp,tanh,add,mul,div,rem,pow,eq,logical_and,logical_not,cast,sigmoid,gelu";

#[test]
fn kernels_keep_the_contracts() -> Result<(), String> {
    let options = suite::Options { cases: 300, pattern: Some(OPS.into()), ..Default::default() };
    let report = suite::run(&emulated(&Emulated::default()), &options, |_, _| {})?;
    assert!(report.failures.is_empty(), "{report}");
    Ok(())
}
