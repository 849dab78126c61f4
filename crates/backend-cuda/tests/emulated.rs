//! The suite on the emulator, which checks every access of every kernel.
#![cfg(feature = "emulator")]

use backend_cuda::{Emulated, emulated, on_driver};
use conformance::suite::{self, golden};

#[path = "seam/watched.rs"]
mod watched;

use watched::Watched;

/// A driver takes milliseconds for each: a text depends on ops, dtypes and ranks, never on shapes, strides or numbers.
const MAX_MODULES: usize = 6000;

fn check(settings: &Emulated, cases: usize, seed: u64) -> Result<(), String> {
    let options = suite::Options { cases, seed, ..Default::default() };
    let driver = Watched::new(settings.driver());
    let device = on_driver(driver.clone(), settings.index, settings.pooling);
    let report = suite::run(&device, &options, |_, _| {})?;
    assert!(report.failures.is_empty(), "{report}");
    let n_modules = driver.take().of("load");
    assert!(n_modules <= MAX_MODULES, "{n_modules} modules were compiled, of at most {MAX_MODULES}");
    Ok(())
}

#[test]
fn kernels_keep_the_contracts() -> Result<(), String> {
    check(&Emulated::default(), 2500, 0)
}

/// Memory that is handed out again holds nothing, blocks run in another order, approximations are off by what they may be.
#[test]
fn kernels_keep_the_contracts_whatever_is_left_open() -> Result<(), String> {
    check(&Emulated::adverse(0, 7), 2500, 1)
}

/// Whole training runs follow the reference's losses.
#[test]
fn models_train_as_on_the_reference() -> tensor_core::Result<()> {
    for run in golden::run(&emulated(&Emulated { pooling: true, ..Emulated::default() }))? {
        assert_eq!(run.breach(), None, "{} in {}", run.name, run.dtype);
    }
    Ok(())
}
