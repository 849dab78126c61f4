//! `--saboteur`: the suite is tested, too. Each fault built into a device must turn it red.

use conformance::saboteur::{self, Fault, Kill};
use conformance::suite::Options;
use consort::Device;
use serde_json::{Value, json};

/// Runs the suite against every fault on top of a device; whether it notices all of them.
pub(crate) fn run(device: &Device, options: &Options, json: bool) -> Result<bool, String> {
    println!("{} faults on {device}, each run until a check notices it", Fault::ALL.len());
    let kills = saboteur::run(device, options, print)?;
    let killed = kills.iter().filter(|kill| kill.killed_by.is_some()).count();
    println!("{killed} of {} faults noticed", kills.len());
    if json {
        println!("{}", summary(device, &kills));
    }
    Ok(killed == kills.len())
}

fn print(kill: &Kill) {
    let name = kill.fault.name();
    match &kill.killed_by {
        Some(failure) => {
            let Kill { cases, .. } = kill;
            println!("{name:<28} noticed by {} {}: {}, after {cases} cases", failure.op, failure.dtype, failure.check);
        }
        None => println!("{name:<28} SURVIVES {} cases: {}", kill.cases, kill.fault.sentence()),
    }
}

fn summary(device: &Device, kills: &[Kill]) -> Value {
    let each = kills.iter().map(|kill| {
        json!({
            "fault": kill.fault.name(),
            "killed": kill.killed_by.is_some(),
            "killed_by": kill.killed_by,
            "cases": kill.cases,
        })
    });
    json!({
        "device": device.label(),
        "faults": kills.len(),
        "killed": kills.iter().filter(|kill| kill.killed_by.is_some()).count(),
        "each": each.collect::<Vec<_>>(),
    })
}
