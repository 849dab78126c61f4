//! What the host spends on an op before the device works: ops on a driver that does nothing.
//!
//! `cargo run --release -p backend-cuda --example launch_overhead`, with the number of rounds as an argument.

use std::time::Instant;

use backend_cuda::on_driver;
use tensor_core::{Result, Tensor};

#[path = "../tests/seam/nothing.rs"]
mod nothing;

use nothing::Nothing;

fn main() -> Result<()> {
    let n_rounds: u32 = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(20_000);
    let driver = Nothing::new();
    let device = on_driver(driver.clone(), 0, true);
    let (x, y) = (Tensor::ones([64, 64], &device)?, Tensor::ones([64], &device)?);
    let (x, y) = (&x, &y);
    type Work<'a> = Box<dyn Fn() -> Result<Tensor> + 'a>;
    let works: [(&str, Work<'_>); 8] = [
        ("exp", Box::new(|| x.exp())),
        ("add", Box::new(|| x.add(x))),
        ("add, broadcast", Box::new(|| x.add(y))),
        ("mul by a number", Box::new(|| x.mul(0.5))),
        ("sum", Box::new(|| x.sum(1))),
        ("matmul", Box::new(|| x.matmul(x))),
        ("softmax", Box::new(|| x.softmax(1))),
        ("rand", Box::new(|| Tensor::rand([64, 64], &device))),
    ];
    println!("{:<16} {:>9} {:>9}", "", "launches", "µs per op");
    for (name, work) in works {
        // Text and module are made once.
        work()?;
        let (launches, start) = (driver.n_launches(), Instant::now());
        for _ in 0..n_rounds {
            work()?;
        }
        let micros = start.elapsed().as_secs_f64() * 1e6 / f64::from(n_rounds);
        let launches = (driver.n_launches() - launches) as f64 / f64::from(n_rounds);
        println!("{name:<16} {launches:>9} {micros:>9.2}");
    }
    Ok(())
}
