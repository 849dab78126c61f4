//! Every kernel of the ladder of matrix products, whatever the shape would choose.
#![cfg(feature = "emulator")]

use backend_cuda::{Choice, Emulated, Rung, emulated};
use conformance::suite;
use ptx_emulator::{MmaMode, Options, Order};
use tensor_core::Tensor;

const LADDER: [Rung; 3] = [Rung::Tile { is_small: false }, Rung::Tile { is_small: true }, Rung::Mma];

fn check(settings: &Emulated, pattern: &str, cases: usize) -> Result<(), String> {
    let options = suite::Options { cases, seed: 3, pattern: Some(pattern.into()), ..Default::default() };
    let report = suite::run(&emulated(settings), &options, |_, _| {})?;
    assert!(report.failures.is_empty(), "{:?}: {report}", settings.matmul);
    Ok(())
}

#[test]
fn each_kernel_keeps_the_contract() -> Result<(), String> {
    for (rung, parts) in LADDER.into_iter().flat_map(|rung| [(rung, 1), (rung, 3)]) {
        let options = Options { order: Order::Seeded(5), mma: MmaMode::Hopper, ..Options::default() };
        check(&Emulated { matmul: Some(Choice { rung, parts }), options, ..Emulated::default() }, "matmul*", 80)?;
    }
    Ok(())
}

/// Tensor cores for f32, held to what the device says of itself: factors of 11 bits.
#[test]
fn tf32_keeps_the_contract_of_its_factors() -> Result<(), String> {
    for (mma, parts) in [(MmaMode::Ieee, 1), (MmaMode::Hopper, 3)] {
        let options = Options { order: Order::Seeded(7), mma, ..Options::default() };
        let matmul = Some(Choice { rung: Rung::Mma, parts });
        let settings = Emulated { matmul, tf32: true, options, ..Emulated::default() };
        check(&settings, "matmul*", 150)?;
        check(&settings, "conv*", 150)?;
    }
    Ok(())
}

/// Products of f32 round their factors where that is allowed, and nowhere else.
#[test]
fn tf32_is_asked_for() -> tensor_core::Result<()> {
    let ulp = 2f32.powi(-11);
    for (tf32, capability, expected) in
        [(true, (8, 0), 256.0), (true, (7, 5), 256.0 * (1.0 + ulp / 2.0)), (false, (9, 0), 256.0 * (1.0 + ulp / 2.0))]
    {
        let device = emulated(&Emulated { tf32, capability, ..Emulated::default() });
        let info = device.info();
        assert_eq!(info.accuracy.tf32, tf32 && capability >= (8, 0), "{info:?}");
        assert_eq!(info.label, if tf32 { "cuda-tf32-emulated:0" } else { "cuda-emulated:0" });
        // A quarter of a unit of TF32 above 1 is lost in it.
        let x = Tensor::full([128, 256], 1.0 + f64::from(ulp) / 2.0, &device)?;
        let product = x.matmul(&Tensor::ones([256, 64], &device)?)?.to_vec::<f32>()?;
        assert!(product.iter().all(|&y| y == expected), "{tf32} {capability:?}: {}", product[0]);
    }
    Ok(())
}
