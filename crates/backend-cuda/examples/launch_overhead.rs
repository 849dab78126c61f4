//! What the host spends on an op before the device works: ops on a driver that does nothing.
//!
//! `cargo run --release -p backend-cuda --example launch_overhead`, with the number of rounds as an argument.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

use backend_cuda::driver::{Address, Driver, Function, Launch, Properties};
use backend_cuda::on_driver;
use tensor_core::{Result, Tensor};

/// Gives addresses away and launches nothing.
struct Nothing {
    properties: Properties,
    next: AtomicU64,
    n_launches: AtomicU64,
}

impl Driver for Nothing {
    fn properties(&self) -> &Properties {
        &self.properties
    }

    fn free_bytes(&self) -> Result<u64> {
        Ok(self.properties.total_bytes)
    }

    fn load(&self, _: &str, _: &str) -> Result<Function> {
        Ok(Function(0))
    }

    fn alloc(&self, len_bytes: usize) -> Result<Option<Address>> {
        Ok(Some(self.next.fetch_add(len_bytes as u64, Relaxed)))
    }

    fn free(&self, _: Address) -> Result<()> {
        Ok(())
    }

    fn upload(&self, _: Address, _: &[u8]) -> Result<()> {
        Ok(())
    }

    fn download(&self, _: Address, bytes: &mut [u8]) -> Result<()> {
        bytes.fill(0);
        Ok(())
    }

    fn copy(&self, _: Address, _: Address, _: usize) -> Result<()> {
        Ok(())
    }

    fn launch(&self, _: Launch<'_>) -> Result<()> {
        self.n_launches.fetch_add(1, Relaxed);
        Ok(())
    }

    fn synchronize(&self) -> Result<()> {
        Ok(())
    }
}

fn main() -> Result<()> {
    let n_rounds: u32 = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(20_000);
    let properties = Properties {
        name: "nothing".into(),
        capability: (9, 0),
        n_multiprocessors: 132,
        max_shared_bytes: 227 << 10,
        total_bytes: 1 << 40,
        is_hardware: false,
    };
    let driver = Arc::new(Nothing { properties, next: AtomicU64::new(1 << 20), n_launches: AtomicU64::new(0) });
    let device = on_driver(driver.clone(), 0, true);
    let (x, y) = (Tensor::ones([64, 64], &device)?, Tensor::ones([64], &device)?);
    let (x, y) = (&x, &y);
    type Work<'a> = Box<dyn Fn() -> Result<Tensor> + 'a>;
    let works: [(&str, Work<'_>); 7] = [
        ("exp", Box::new(|| x.exp())),
        ("add", Box::new(|| x.add(x))),
        ("add, broadcast", Box::new(|| x.add(y))),
        ("mul by a number", Box::new(|| x.mul(0.5))),
        ("sum", Box::new(|| x.sum(1))),
        ("matmul", Box::new(|| x.matmul(x))),
        ("softmax", Box::new(|| x.softmax(1))),
    ];
    println!("{:<16} {:>9} {:>9}", "", "launches", "µs per op");
    for (name, work) in works {
        // Text and module are made once.
        work()?;
        let (launches, start) = (driver.n_launches.load(Relaxed), Instant::now());
        for _ in 0..n_rounds {
            work()?;
        }
        let micros = start.elapsed().as_secs_f64() * 1e6 / f64::from(n_rounds);
        let launches = (driver.n_launches.load(Relaxed) - launches) as f64 / f64::from(n_rounds);
        println!("{name:<16} {launches:>9} {micros:>9.2}");
    }
    Ok(())
}
