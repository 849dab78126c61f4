//! How many kernels a run compiles: a driver takes milliseconds for each, so texts depend on ops, dtypes and ranks, never on
//! shapes, strides or numbers.

use consort::{Device, Kind};

/// Modules that the ops themselves need, and per hundred cases those of the expressions that they draw.
const MAX_MODULES: usize = 4000;
const MAX_PER_HUNDRED: usize = 60;

/// Kernels that all GPU backends of this build compiled so far.
pub(crate) fn compiled() -> usize {
    #[cfg(feature = "cuda")]
    let cuda = consort::device::cuda_modules();
    #[cfg(not(feature = "cuda"))]
    let cuda = 0;
    #[cfg(feature = "wgpu")]
    let wgpu = consort::device::wgpu_kernels();
    #[cfg(not(feature = "wgpu"))]
    let wgpu = 0;
    cuda + wgpu
}

/// Says how many a GPU compiled, and whether these are some and not too many.
pub(crate) fn check(device: &Device, n_cases: usize, n_modules: usize) -> bool {
    let is_gpu = matches!(device.info().kind, Kind::Cuda | Kind::Wgpu);
    if is_gpu {
        println!("{device}: {n_modules} modules compiled, at most {}", limit(n_cases));
    }
    let verdict = judged(is_gpu, n_cases, n_modules);
    if let Err(why) = verdict {
        eprintln!("{device}: {n_modules} modules: {why}");
    }
    verdict.is_ok()
}

fn judged(is_gpu: bool, n_cases: usize, n_modules: usize) -> Result<(), &'static str> {
    match n_modules {
        0 if is_gpu => Err("none is counted"),
        n if n > limit(n_cases) => Err("a kernel's text depends on what should be a parameter"),
        _ => Ok(()),
    }
}

fn limit(n_cases: usize) -> usize {
    MAX_MODULES + n_cases / 100 * MAX_PER_HUNDRED
}

#[cfg(test)]
mod tests {
    use super::{judged, limit};

    #[test]
    fn too_many_modules_are_a_failure() {
        assert!(judged(true, 2600, limit(2600)).is_ok() && judged(true, 2600, limit(2600) + 1).is_err());
        assert!(judged(true, 2600, 0).is_err() && judged(false, 2600, 0).is_ok());
    }
}
