//! Random numbers, as [`tensor_core::random`] specifies them: which thread makes an element does not matter.

use bytemuck::{cast_slice, cast_slice_mut};
use half::{bf16, f16};
use tensor_core::op::{Distribution, Random};
use tensor_core::random::{self, Key};
use tensor_core::{DType, Meta, Result, Storages, Tensor};

use crate::eval::narrow;
use crate::simd::{self, Kernel};
use crate::{Context, threads};

/// Blocks made at once: their words are next to one another in memory, then become numbers.
const BLOCKS: usize = 128;

/// Random numbers of a key.
pub(crate) fn run(op: &Random, inputs: &[&Tensor], outputs: &[Meta], cx: &Context<'_>) -> Result<Storages> {
    debug_assert!(inputs.is_empty());
    let mut out = cx.output(&outputs[0])?;
    let dtype = outputs[0].dtype;
    let per_block = random::per_block(op.distribution, dtype);
    let piece_bytes = BLOCKS * per_block * dtype.size_bytes();
    let work_ns = outputs[0].shape.len() * if matches!(op.distribution, Distribution::Normal { .. }) { 8 } else { 2 };
    // Several groups of blocks at a time, so that taking a piece is cheap.
    const GROUPS: usize = 16;
    let pieces = out.bytes_mut().chunks_mut(GROUPS * piece_bytes).enumerate();
    threads::for_each(work_ns, pieces, |(i, piece)| {
        for (j, part) in piece.chunks_mut(piece_bytes).enumerate() {
            let first = ((i * GROUPS + j) * BLOCKS) as u64;
            let key = Key { seed: op.key.seed, offset: op.key.offset.wrapping_add(first) };
            simd::run(Numbers { key, distribution: op.distribution, dtype, out: part });
        }
    });
    Ok(out.into_storages())
}

/// The numbers of at most [`BLOCKS`] blocks.
struct Numbers<'a> {
    key: Key,
    distribution: Distribution,
    dtype: DType,
    out: &'a mut [u8],
}

impl Kernel for Numbers<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let mut words = [0u32; 4 * BLOCKS];
        for (block, words) in words.chunks_exact_mut(4).enumerate() {
            words.copy_from_slice(&random::philox(self.key, block as u64));
        }
        match self.distribution {
            Distribution::Uniform { low, high } => {
                let below = random::largest_below(low, high, self.dtype);
                if self.dtype == DType::F64 {
                    let scale = high - low;
                    for (v, w) in cast_slice_mut::<u8, f64>(self.out).iter_mut().zip(words.chunks_exact(2)) {
                        *v = (random::uniform_f64([w[0], w[1]]) * scale + low).min(below);
                    }
                } else {
                    let (low, scale, below) = (low as f32, (high - low) as f32, below as f32);
                    let mut numbers = [0f32; 4 * BLOCKS];
                    for (v, &w) in numbers.iter_mut().zip(&words) {
                        *v = random::uniform_f32(w) * scale + low;
                    }
                    numbers.iter_mut().for_each(|v| *v = v.min(below));
                    store(&numbers, self.dtype, self.out);
                }
            }
            Distribution::Normal { mean, std } => {
                if self.dtype == DType::F64 {
                    for (v, w) in cast_slice_mut::<u8, f64>(self.out).chunks_mut(2).zip(words.chunks_exact(4)) {
                        let pair = random::normal_f64([w[0], w[1], w[2], w[3]]).map(|z| z * std + mean);
                        v.copy_from_slice(&pair[..v.len()]);
                    }
                } else {
                    let (mean, std) = (mean as f32, std as f32);
                    // The two numbers of a pair apart, so that the math vectorises.
                    let mut pairs = [[0f32; 2 * BLOCKS]; 2];
                    for i in 0..2 * BLOCKS {
                        let [a, b] = random::normal_f32([words[2 * i], words[2 * i + 1]]);
                        (pairs[0][i], pairs[1][i]) = (a * std + mean, b * std + mean);
                    }
                    let mut numbers = [0f32; 4 * BLOCKS];
                    for i in 0..2 * BLOCKS {
                        (numbers[2 * i], numbers[2 * i + 1]) = (pairs[0][i], pairs[1][i]);
                    }
                    store(&numbers, self.dtype, self.out);
                }
            }
            Distribution::Integer { low, high } => {
                let numbers = words.chunks_exact(2).map(|w| random::integer([w[0], w[1]], low, high));
                match self.dtype {
                    DType::I64 => spread(cast_slice_mut(self.out), numbers),
                    DType::I32 => spread(cast_slice_mut(self.out), numbers.map(|v| v as i32)),
                    _ => spread(self.out, numbers.map(|v| v as u8)),
                }
            }
            Distribution::Bernoulli { p } => {
                let truths = words.iter().map(|&w| u8::from(random::bernoulli(w, p)));
                match self.dtype {
                    DType::F64 => spread(cast_slice_mut(self.out), truths.map(f64::from)),
                    DType::F32 => spread(cast_slice_mut(self.out), truths.map(f32::from)),
                    DType::F16 => spread(cast_slice_mut(self.out), truths.map(f16::from)),
                    DType::BF16 => spread(cast_slice_mut(self.out), truths.map(bf16::from)),
                    DType::I64 => spread(cast_slice_mut(self.out), truths.map(i64::from)),
                    DType::I32 => spread(cast_slice_mut(self.out), truths.map(i32::from)),
                    DType::U8 | DType::Bool => spread(self.out, truths),
                }
            }
        }
    }
}

#[inline(always)]
fn spread<T>(out: &mut [T], numbers: impl Iterator<Item = T>) {
    out.iter_mut().zip(numbers).for_each(|(v, number)| *v = number);
}

/// f32 numbers as elements of a float type up to f32.
#[inline(always)]
fn store(numbers: &[f32], dtype: DType, out: &mut [u8]) {
    let n = out.len() / dtype.size_bytes();
    match dtype {
        DType::F16 => narrow::<f16>(&numbers[..n], cast_slice_mut(out)),
        DType::BF16 => narrow::<bf16>(&numbers[..n], cast_slice_mut(out)),
        _ => out.copy_from_slice(&cast_slice(numbers)[..out.len()]),
    }
}

#[cfg(test)]
mod tests;
