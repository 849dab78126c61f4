//! How fast elementwise work is: GB/s of what must be read and written, beside a plain copy of as much memory.
//!
//! `cargo run --release -p backend-cpu --example elementwise [-- FILTER]`

use std::hint::black_box;
use std::time::{Duration, Instant};

use tensor_core::{DType, Result, Tensor, zip};

/// The best time of one call, in seconds.
fn time(mut call: impl FnMut()) -> f64 {
    let mut best = f64::INFINITY;
    let end = Instant::now() + Duration::from_millis(400);
    let mut n_calls = 1u32;
    while Instant::now() < end {
        let start = Instant::now();
        (0..n_calls).for_each(|_| call());
        let seconds = start.elapsed().as_secs_f64();
        best = best.min(seconds / f64::from(n_calls));
        if seconds < 1e-3 {
            n_calls *= 2;
        }
    }
    best
}

fn main() -> Result<()> {
    let filter = std::env::args().nth(1).unwrap_or_default();
    let device = backend_cpu::device();
    println!("{}: {}", device.info().name, device.info().capability);
    println!("{:28} {:>10} {:>12} {:>9} {:>9}", "", "elements", "time", "GB/s", "of copy");
    for n in [4usize, 1 << 10, 1 << 16, 1 << 20, 1 << 24] {
        let x = Tensor::randn([n], &device)?;
        let y = Tensor::randn([n], &device)?;
        let bias = Tensor::randn([256.min(n)], &device)?;
        let wide = x.reshape([n / 256.min(n), 256.min(n)])?;
        let square = x.reshape([1 << (n.ilog2() / 2), n >> (n.ilog2() / 2)])?;
        let column = Tensor::randn([n / 256.min(n), 1], &device)?;
        let half = x.cast(DType::F16)?;
        let source = vec![1f32; n];
        let mut target = vec![0f32; n];
        let copy = 8.0 * n as f64 / time(|| black_box(&mut target).copy_from_slice(black_box(&source))) / 1e9;
        type Case<'a> = (&'a str, f64, Box<dyn Fn() -> Result<Tensor> + 'a>);
        let cases: Vec<Case<'_>> = vec![
            ("add", 12.0, Box::new(|| x.add(&y))),
            ("add number", 8.0, Box::new(|| x.add(1.5))),
            ("relu", 8.0, Box::new(|| x.relu())),
            ("exp", 8.0, Box::new(|| x.exp())),
            ("ln", 8.0, Box::new(|| x.abs()?.ln())),
            ("tanh", 8.0, Box::new(|| x.tanh())),
            ("sigmoid", 8.0, Box::new(|| x.sigmoid())),
            ("gelu", 8.0, Box::new(|| x.gelu())),
            ("gelu_tanh", 8.0, Box::new(|| x.gelu_tanh())),
            ("sin", 8.0, Box::new(|| x.sin())),
            ("pow", 12.0, Box::new(|| x.pow(&y))),
            ("select", 12.0, Box::new(|| zip(&x, &y, |x, y| x.gt(0).select(x, y)))),
            ("add row", 8.0, Box::new(|| wide.add(&bias))),
            ("add column", 8.0, Box::new(|| wide.add(&column))),
            ("transposed copy", 8.0, Box::new(|| square.t()?.contiguous())),
            ("add transposed", 12.0, Box::new(|| square.t()?.add(&y.reshape(square.t()?.dims())?))),
            ("every second", 6.0, Box::new(|| x.slice(0, .., 2)?.contiguous())),
            ("reversed", 8.0, Box::new(|| x.flip(0)?.contiguous())),
            ("add f16", 6.0, Box::new(|| half.add(&half))),
            ("cast f32 to f16", 6.0, Box::new(|| x.cast(DType::F16))),
            ("cast f32 to i64", 12.0, Box::new(|| x.cast(DType::I64))),
        ];
        for (name, bytes, call) in &cases {
            if !name.contains(&filter) || call().is_err() {
                if let Err(error) = call() {
                    println!("{name}: {error}");
                }
                continue;
            }
            let seconds = time(|| {
                black_box(call().ok());
            });
            let rate = bytes * n as f64 / seconds / 1e9;
            println!("{name:28} {n:>10} {:>9.2} µs {rate:>9.2} {:>9.2}", seconds * 1e6, rate / copy);
        }
    }
    Ok(())
}
