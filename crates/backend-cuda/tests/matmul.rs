//! Every kernel of the ladder of matrix products, whatever the shape would choose.
#![cfg(feature = "emulator")]

use backend_cuda::{Choice, Emulated, Rung, emulated};
use conformance::suite;
use ptx_emulator::{MmaMode, Options, Order};

const LADDER: [Rung; 3] = [Rung::Tile { is_small: false }, Rung::Tile { is_small: true }, Rung::Mma];

fn check(settings: &Emulated, cases: usize) -> Result<(), String> {
    let options = suite::Options { cases, seed: 3, pattern: Some("matmul*".into()), ..Default::default() };
    let report = suite::run(&emulated(settings), &options, |_, _| {})?;
    assert!(report.failures.is_empty(), "{:?}: {report}", settings.matmul);
    Ok(())
}

#[test]
fn each_kernel_keeps_the_contract() -> Result<(), String> {
    for (rung, parts) in LADDER.into_iter().flat_map(|rung| [(rung, 1), (rung, 3)]) {
        let options = Options { order: Order::Seeded(5), mma: MmaMode::Hopper, ..Options::default() };
        check(&Emulated { matmul: Some(Choice { rung, parts }), options, ..Emulated::default() }, 80)?;
    }
    Ok(())
}
