use super::*;
use crate::saboteur::{self, Fault};

#[test]
fn the_cpu_follows_the_reference() -> Result<()> {
    for golden in run(&backend_cpu::device())? {
        assert_eq!(golden.breach(), None, "{} {}: {:?}", golden.name, golden.dtype, golden.steps);
        let (first, last) = (golden.steps[0], golden.steps[N_STEPS - 1]);
        println!("{} {}: {first:?} .. {last:?}, used {:.3}", golden.name, golden.dtype, golden.max_used());
        assert!(last.want < first.want, "{} learns nothing: {:?}", golden.name, golden.steps);
        // What is allowed says something to the end.
        assert!(last.allowed < 5e-2 * (first.want - last.want), "{} {}: {last:?}", golden.name, golden.dtype);
    }
    Ok(())
}

#[test]
fn a_wrong_device_strays() -> Result<()> {
    for fault in [Fault::IgnoresAStride, Fault::RoundsThroughF16, Fault::DropsTheLastElement] {
        let device = saboteur::device(&backend_cpu::device(), fault);
        let strayed = run(&device)?.iter().filter(|golden| golden.breach().is_some()).count();
        assert!(strayed > 0, "{fault}");
    }
    Ok(())
}
