//! The suite on the emulator, which checks every access of every kernel.
#![cfg(feature = "emulator")]

use backend_cuda::{Emulated, emulated};
use conformance::suite;
use ptx_emulator::{Approximation, MmaMode, Options, Order};

fn check(settings: &Emulated, cases: usize, seed: u64) -> Result<(), String> {
    let options = suite::Options { cases, seed, ..Default::default() };
    let report = suite::run(&emulated(settings), &options, |_, _| {})?;
    assert!(report.failures.is_empty(), "{report}");
    Ok(())
}

#[test]
fn kernels_keep_the_contracts() -> Result<(), String> {
    check(&Emulated::default(), 2500, 0)
}

/// Memory that is handed out again holds nothing, blocks run in another order, approximations are off by what they may be.
#[test]
fn kernels_keep_the_contracts_whatever_is_left_open() -> Result<(), String> {
    let options = Options {
        order: Order::Seeded(7),
        approximation: Approximation::Perturbed(7),
        mma: MmaMode::Hopper,
        ..Options::default()
    };
    check(&Emulated { pooling: true, options, ..Emulated::default() }, 2500, 1)
}
