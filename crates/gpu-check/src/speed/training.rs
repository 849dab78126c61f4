//! The six training steps of the benchmark.

use serde_json::Value;
use tensor_core::Result;
use training::{Protocol, WORKLOADS};

use crate::device::Subject;
use crate::record::{Record, number};

pub(crate) fn run(subject: &Subject, record: &mut Record) -> Result<()> {
    record.table(
        "A step: rows gathered, forward, loss, backward, Adam, loss read (µs)",
        &["network", "median", "least", "most", "steps", "PyTorch", "ratio"],
    );
    for (name, step) in WORKLOADS {
        if subject.is_emulated && *name != "seed" {
            record.cut(format!("{name}: not on the emulator"));
            continue;
        }
        if !record.has_time_for(name) {
            continue;
        }
        let protocol = subject.size(Protocol::BRIEF, Protocol::QUICK);
        let mut micros = match step(&subject.device, &protocol) {
            Ok(micros) => micros,
            Err(error) => {
                record.fail(format!("{name}: {error}"));
                continue;
            }
        };
        micros.sort_by(f64::total_cmp);
        let median = micros[micros.len() / 2];
        let [torch, ratio] = record.beside_torch(name, median / 1e6);
        let numbers = [median, micros[0], micros[micros.len() - 1]].map(number);
        let row: Vec<Value> = std::iter::once(Value::from(*name)).chain(numbers).collect();
        record.row([row, vec![micros.len().into(), torch, ratio]].concat());
    }
    Ok(())
}
