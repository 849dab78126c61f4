//! The suite on the CPU.

use conformance::suite::{self, Options};

#[test]
fn the_cpu_keeps_every_contract() -> Result<(), String> {
    let report = suite::run(&backend_cpu::device(), &Options { cases: 4000, ..Options::default() }, |_, _| {})?;
    assert!(report.failures.is_empty(), "{report}");
    Ok(())
}
