//! Fused multiply-add over rows, with the processor's own instruction where it has one. The only file with `unsafe`.
#![allow(unsafe_code)]

use crate::types::Row;
use crate::value::float::bits32;

#[inline(always)]
fn rows_here(a: &Row, b: &Row, c: &Row, d: &mut Row) {
    for lane in 0..32 {
        d[lane] = bits32(f32::from_bits(a[lane]).mul_add(f32::from_bits(b[lane]), f32::from_bits(c[lane])));
    }
}

#[inline(always)]
fn product_here(a: &[f32], b: &[f32], c: &mut [f32], n: usize, k: usize) {
    let rows = c.chunks_exact_mut(n).zip(a.chunks_exact(k));
    for (c, a) in rows {
        for (a, b) in a.iter().zip(b.chunks_exact(n)) {
            for (c, b) in c.iter_mut().zip(b) {
                *c = a.mul_add(*b, *c);
            }
        }
    }
}

#[inline(always)]
fn product8_here(a: &[f32], b: &[f32], c: &mut [f32], k: usize) {
    for (c, a) in c.chunks_exact_mut(8).zip(a.chunks_exact(k)) {
        let mut sum = [0.0; 8];
        sum.copy_from_slice(c);
        for (a, b) in a.iter().zip(b.chunks_exact(8)) {
            for i in 0..8 {
                sum[i] = a.mul_add(b[i], sum[i]);
            }
        }
        c.copy_from_slice(&sum);
    }
}

#[cfg(target_arch = "x86_64")]
mod fused {
    use super::*;

    #[target_feature(enable = "avx2,fma")]
    pub(super) fn rows(a: &Row, b: &Row, c: &Row, d: &mut Row) {
        rows_here(a, b, c, d);
    }

    #[target_feature(enable = "avx2,fma")]
    pub(super) fn product(a: &[f32], b: &[f32], c: &mut [f32], n: usize, k: usize) {
        if n == 8 { product8_here(a, b, c, k) } else { product_here(a, b, c, n, k) }
    }

    pub(super) fn is_here() -> bool {
        std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("fma")
    }
}

/// d = a · b + c, rounded once, in every lane.
pub(crate) fn rows(a: &Row, b: &Row, c: &Row, d: &mut Row) {
    #[cfg(target_arch = "x86_64")]
    if fused::is_here() {
        // SAFETY: the processor has the instructions, as just asked.
        return unsafe { fused::rows(a, b, c, d) };
    }
    rows_here(a, b, c, d);
}

/// c += a · b for row-major matrices, each sum a chain of fused steps in the order of k.
pub(crate) fn product(a: &[f32], b: &[f32], c: &mut [f32], n: usize, k: usize) {
    #[cfg(target_arch = "x86_64")]
    if fused::is_here() {
        // SAFETY: the processor has the instructions, as just asked.
        return unsafe { fused::product(a, b, c, n, k) };
    }
    if n == 8 { product8_here(a, b, c, k) } else { product_here(a, b, c, n, k) }
}
