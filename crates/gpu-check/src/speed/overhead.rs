//! What the host spends on an op while the device has nothing to do but keep up.

use std::time::Instant;

use tensor_core::{Result, Tensor};

use crate::device::Subject;
use crate::record::{Record, number};

/// Ops between two waits: fewer than launches that a driver takes before it makes the host wait.
const BURST: u32 = 200;

pub(crate) fn run(subject: &Subject, record: &mut Record) -> Result<()> {
    let (x, y) = (Tensor::ones([64, 64], &subject.device)?, Tensor::ones([64], &subject.device)?);
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
    record.table(
        "64 × 64 in f32: until the call returns, and until the device is done (µs per op)",
        &["op", "host", "device"],
    );
    let (n_bursts, burst) = subject.size((50, BURST), (1, 2));
    for (name, work) in works {
        if !record.has_time_for(name) {
            continue;
        }
        work()?;
        subject.driver.synchronize()?;
        let mut host = Vec::new();
        let mut all = Vec::new();
        for _ in 0..n_bursts {
            let start = Instant::now();
            (0..burst).try_for_each(|_| work().map(drop))?;
            host.push(start.elapsed().as_secs_f64() * 1e6 / f64::from(burst));
            subject.driver.synchronize()?;
            all.push(start.elapsed().as_secs_f64() * 1e6 / f64::from(burst));
        }
        let median = |mut times: Vec<f64>| {
            times.sort_by(f64::total_cmp);
            times[times.len() / 2]
        };
        record.row(vec![name.into(), number(median(host)), number(median(all))]);
    }
    Ok(())
}
