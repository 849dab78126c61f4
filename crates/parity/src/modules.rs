//! How many kernels a run compiles: a driver takes milliseconds for each, so texts depend on ops, dtypes and ranks, never on
//! shapes, strides or numbers.

use consort::{Device, Kind};

/// Modules that the ops themselves need, and per hundred cases those of the expressions that they draw.
const MAX_MODULES: usize = 4000;
const MAX_PER_HUNDRED: usize = 60;

/// Modules compiled so far.
#[cfg(feature = "cuda")]
pub(crate) fn compiled() -> usize {
    consort::device::cuda_modules()
}

/// Without CUDA there are none.
#[cfg(not(feature = "cuda"))]
pub(crate) fn compiled() -> usize {
    0
}

/// Says how many a CUDA device compiled, and whether these are some and not too many.
pub(crate) fn check(device: &Device, n_cases: usize, n_modules: usize) -> bool {
    let is_cuda = device.info().kind == Kind::Cuda;
    if is_cuda {
        println!("{device}: {n_modules} modules compiled, at most {}", limit(n_cases));
    }
    let verdict = judged(is_cuda, n_cases, n_modules);
    if let Err(why) = verdict {
        eprintln!("{device}: {n_modules} modules: {why}");
    }
    verdict.is_ok()
}

fn judged(is_cuda: bool, n_cases: usize, n_modules: usize) -> Result<(), &'static str> {
    match n_modules {
        0 if is_cuda => Err("none is counted"),
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
