//! Times matrix products of the sizes that the six steps take, in billions of operations per second.

use std::time::Instant;

use consort::prelude::*;

/// M, K, N.
const SIZES: &[(usize, usize, usize)] = &[
    (128, 784, 256),
    (256, 784, 1024),
    (256, 1024, 1024),
    (1024, 256, 784),
    (1024, 256, 1024),
    (768, 128, 384),
    (768, 128, 512),
    (768, 512, 128),
    (512, 768, 128),
    (128, 768, 384),
    (1024, 1024, 1024),
];

fn main() -> Result<()> {
    let device = consort::device::cpu();
    println!("{:>6} {:>6} {:>6}  {:>6} {:>6} {:>6} {:>6}", "m", "k", "n", "a·b", "aᵀ·b", "a·bᵀ", "aᵀ·bᵀ");
    for &(m, k, n) in SIZES {
        print!("{m:>6} {k:>6} {n:>6} ");
        for form in 0..4 {
            let operand = |rows, cols, is_transposed| -> Result<Tensor> {
                match is_transposed {
                    true => Tensor::rand([cols, rows], &device)?.transpose(0, 1),
                    false => Tensor::rand([rows, cols], &device),
                }
            };
            let (a, b) = (operand(m, k, form % 2 == 1)?, operand(k, n, form >= 2)?);
            let mut seconds: Vec<f64> = Vec::new();
            for _ in 0..40 {
                let start = Instant::now();
                a.matmul(&b)?;
                seconds.push(start.elapsed().as_secs_f64());
            }
            seconds.sort_by(f64::total_cmp);
            print!(" {:>6.0}", 2e-9 * (m * k * n) as f64 / seconds[4]);
        }
        println!();
    }
    Ok(())
}
