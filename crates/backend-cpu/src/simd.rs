//! Vector instructions, chosen at run time: a kernel is written once as plain loops, compiled for every level, and runs
//! at the best one that the processor has. The only file of this crate with `unsafe`.
//!
//! A kernel and everything it calls must be `#[inline(always)]`, so that it becomes part of the function that has the
//! instructions. All levels give the same bits: nothing here lets the compiler fuse or regroup.
#![allow(unsafe_code)]

use std::sync::OnceLock;

/// Work compiled for every level.
pub trait Kernel {
    /// What it gives.
    type Output;

    /// Does the work. Mark it `#[inline(always)]`.
    fn run(self) -> Self::Output;
}

/// A set of vector instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// What every processor of the architecture has: SSE2, or NEON.
    Baseline,
    /// x86-64-v3: 256-bit vectors and fused products.
    Avx2,
    /// x86-64-v4: 512-bit vectors and masks.
    Avx512,
}

impl Level {
    /// The name in version information.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Baseline if cfg!(target_arch = "aarch64") => "neon",
            Self::Baseline => "baseline",
            Self::Avx2 => "avx2",
            Self::Avx512 => "avx512",
        }
    }
}

/// The best level of this processor, or a lower one named by `CONSORT_SIMD` (`baseline`, `avx2`, `avx512`).
#[inline]
pub fn level() -> Level {
    static LEVEL: OnceLock<Level> = OnceLock::new();
    *LEVEL.get_or_init(|| {
        let best = best();
        let wanted = match std::env::var("CONSORT_SIMD").as_deref() {
            Ok("baseline") => Level::Baseline,
            Ok("avx2") => Level::Avx2,
            _ => Level::Avx512,
        };
        best.min(wanted)
    })
}

#[cfg(target_arch = "x86_64")]
fn best() -> Level {
    use std::arch::is_x86_feature_detected as has;
    let v3 = has!("avx2") && has!("fma") && has!("bmi1") && has!("bmi2") && has!("lzcnt") && has!("f16c");
    let v4 = has!("avx512f") && has!("avx512bw") && has!("avx512cd") && has!("avx512dq") && has!("avx512vl");
    match (v3, v4) {
        (true, true) => Level::Avx512,
        (true, false) => Level::Avx2,
        (false, _) => Level::Baseline,
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn best() -> Level {
    Level::Baseline
}

/// Runs a kernel at the processor's [`level`].
#[inline(always)]
pub fn run<K: Kernel>(kernel: K) -> K::Output {
    #[cfg(target_arch = "x86_64")]
    match level() {
        // SAFETY: `level` is not above what the processor has.
        Level::Avx512 => return unsafe { avx512(kernel) },
        // SAFETY: as above.
        Level::Avx2 => return unsafe { avx2(kernel) },
        Level::Baseline => {}
    }
    kernel.run()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,bmi1,bmi2,lzcnt,f16c")]
fn avx2<K: Kernel>(kernel: K) -> K::Output {
    kernel.run()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx2,fma,bmi1,bmi2,lzcnt,f16c")]
fn avx512<K: Kernel>(kernel: K) -> K::Output {
    kernel.run()
}
