//! The last line of `--json`.

use conformance::suite::{DeviceReport, Report, Seen};
use serde_json::{Map, Value, json};

/// Counts over all devices and per device, and the largest errors per op.
pub(crate) fn of(report: &Report) -> Value {
    let devices: Vec<Value> = report.devices.iter().map(device).collect();
    let counts = report.devices.iter().map(DeviceReport::counts);
    let sums = counts.fold([0; 5], |sum, own| std::array::from_fn(|i| sum[i] + own[i]));
    let mut ops: Vec<&str> = report.devices.iter().flat_map(|d| d.rows.iter().map(|row| row.op.as_str())).collect();
    ops.sort_unstable();
    ops.dedup();
    let by_device = report.devices.iter().map(|d| (d.device.clone(), max_ulp(d)));
    let mut all = json!({
        "devices": devices,
        "absent": report.absent,
        "seed": report.seed,
        "ops": ops.len(),
        "failures": report.devices.iter().map(|d| d.failures.len()).sum::<usize>(),
        "specification": report.specification,
        "max_ulp": by_device.collect::<Map<_, _>>(),
    });
    count(&mut all, sums);
    all
}

fn device(report: &DeviceReport) -> Value {
    let max_ulp = max_ulp(report);
    let mut all = json!({
        "device": report.device,
        "name": report.name,
        "emulated": report.emulated,
        "accuracy": report.accuracy,
        "ops": max_ulp.as_object().map_or(0, Map::len),
        "failures": report.failures,
        "fixed": report.fixed,
        "max_ulp": max_ulp,
    });
    count(&mut all, report.counts());
    all
}

fn count(object: &mut Value, counts: [usize; 5]) {
    for (name, n) in ["cases", "passed", "deviated", "not_run", "failed"].into_iter().zip(counts) {
        object[name] = n.into();
    }
}

/// Per op over all dtypes; `null` where nothing was judged.
fn max_ulp(report: &DeviceReport) -> Value {
    let mut ops = Map::new();
    for row in &report.rows {
        let op = ops.entry(row.op.clone()).or_insert_with(|| json!({ "forward": null, "gradient": null }));
        for (name, seen) in [("forward", &row.forward), ("gradient", &row.gradient)] {
            op[name] = larger(&op[name], seen);
        }
    }
    Value::Object(ops)
}

fn larger(known: &Value, seen: &Seen) -> Value {
    if seen.cases == 0 { known.clone() } else { json!(known.as_f64().unwrap_or(0.0).max(seen.max_ulps)) }
}
