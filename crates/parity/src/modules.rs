//! How many kernels a run compiles: a driver takes milliseconds for each, so texts depend on ops, dtypes and ranks, never on
//! shapes, strides or numbers.

use consort::{Device, Kind};

/// Modules that the ops themselves need, and per hundred cases those of the expressions that they draw.
const MAX_MODULES: usize = 3000;
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

/// Says how many a CUDA device compiled, and whether these are not too many.
pub(crate) fn check(device: &Device, n_cases: usize, n_modules: usize) -> bool {
    let limit = limit(n_cases);
    if device.info().kind == Kind::Cuda {
        println!("{device}: {n_modules} modules compiled, at most {limit}");
    }
    if n_modules > limit {
        eprintln!("{device}: {n_modules} modules are too many: a kernel's text depends on what should be a parameter");
    }
    n_modules <= limit
}

fn limit(n_cases: usize) -> usize {
    MAX_MODULES + n_cases / 100 * MAX_PER_HUNDRED
}

#[cfg(test)]
mod tests {
    use super::{check, limit};

    #[test]
    fn too_many_modules_are_a_failure() {
        let device = consort::device::cpu();
        assert!(check(&device, 2600, limit(2600)) && !check(&device, 2600, limit(2600) + 1));
    }
}
