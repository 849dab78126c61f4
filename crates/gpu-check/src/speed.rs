//! What the device is and how fast: everything beside a ceiling that was measured in the same process.

use std::time::{Duration, Instant};

use serde_json::Value;
use tensor_core::Result;

use crate::device::Subject;
use crate::record::Record;

pub(crate) mod bandwidth;
mod ceiling;
pub(crate) mod convolution;
pub(crate) mod overhead;
pub(crate) mod products;
pub(crate) mod training;

/// What the driver says of the device.
pub(crate) fn device(subject: &Subject, record: &mut Record) -> Result<()> {
    let properties = subject.driver.properties();
    let (major, minor) = properties.capability;
    record.table("Properties", &["", ""]);
    let rows: [(&str, Value); 6] = [
        ("name", properties.name.clone().into()),
        ("capability", format!("sm_{major}{minor}").into()),
        ("multiprocessors", properties.n_multiprocessors.into()),
        ("shared bytes of a block", properties.max_shared_bytes.into()),
        ("memory in bytes", properties.total_bytes.into()),
        ("free bytes", subject.driver.free_bytes()?.into()),
    ];
    rows.into_iter().for_each(|(name, value)| record.row(vec![name.into(), value]));
    Ok(())
}

/// Rounds of a measurement, of which the median counts.
const N_ROUNDS: usize = 5;
/// How long a round takes: many launches, so that waiting at its end costs nothing.
const ROUND: Duration = Duration::from_millis(20);

/// Seconds that the device takes for what a call starts: many calls between two waits.
pub(crate) fn seconds(subject: &Subject, mut call: impl FnMut() -> Result<()>) -> Result<f64> {
    let mut round = |n: u32| -> Result<f64> {
        let start = Instant::now();
        (0..n).try_for_each(|_| call())?;
        subject.driver.synchronize()?;
        Ok(start.elapsed().as_secs_f64())
    };
    // Texts are compiled and memory is taken from the driver by the first.
    round(1)?;
    if subject.is_emulated {
        return round(1);
    }
    let mut n = 1u32;
    let mut took = round(n)?;
    while took < ROUND.as_secs_f64() / 2.0 && n < 1 << 20 {
        n *= 2;
        took = round(n)?;
    }
    let n = ((ROUND.as_secs_f64() / took * f64::from(n)).ceil() as u32).max(1);
    let mut times = (0..N_ROUNDS).map(|_| Ok(round(n)? / f64::from(n))).collect::<Result<Vec<f64>>>()?;
    times.sort_by(f64::total_cmp);
    Ok(times[times.len() / 2])
}
