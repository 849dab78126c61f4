//! Which devices there are, which are asked for, and which must not be missing.

use conformance::saboteur;
use conformance::suite::Absent;
use consort::{Device, Kind, device};

/// What `--require` takes.
pub(crate) const REQUIREMENTS: [&str; 6] = ["cpu", "cuda", "cuda-real", "cuda-emulated", "wgpu", "wgpu-real"];

/// The devices to run, and those that cannot.
pub(crate) struct Selection {
    pub(crate) devices: Vec<Device>,
    pub(crate) absent: Vec<Absent>,
}

impl Selection {
    fn add(&mut self, name: &str, found: consort::Result<Device>) {
        match found {
            Ok(device) if self.devices.contains(&device) => {}
            Ok(device) => self.devices.push(device),
            Err(reason) => self.absent.push(Absent { device: name.to_string(), reason: reason.to_string() }),
        }
    }
}

/// The devices of these names, or all that are found when there are none, and the required ones.
///
/// # Errors
/// An unknown name, a required device that is absent, and nothing to run on.
pub(crate) fn select(names: &[String], required: &[String]) -> Result<Selection, String> {
    let mut selection = Selection { devices: Vec::new(), absent: Vec::new() };
    for name in names {
        selection.add(name, resolve(name)?);
        // Where the emulator stands in, a second pass sees what hardware may do and does not promise.
        if name == "cuda" && selection.devices.last().is_some_and(|device| !device.info().is_hardware) {
            selection.add(ADVERSE, resolve(ADVERSE)?);
        }
    }
    if names.is_empty() {
        for kind in [Kind::Cpu, Kind::Cuda, Kind::Wgpu] {
            match device::probe(kind) {
                Ok(found) => found.iter().for_each(|info| selection.add(&info.label, device::parse(&info.label))),
                Err(_) => selection.add(kind.name(), resolve(kind.name())?),
            }
        }
    }
    for name in required {
        require(name, &mut selection)?;
    }
    if selection.devices.is_empty() {
        let reasons: Vec<&str> = selection.absent.iter().map(|absent| absent.reason.as_str()).collect();
        return Err(format!("there is no device to run on: {}", reasons.join("; ")));
    }
    Ok(selection)
}

/// The device of a name, or the CPU with a fault as a report of the saboteur names it; `cuda` is the emulator where there is no
/// real one. The inner error says why it is absent.
fn resolve(name: &str) -> Result<consort::Result<Device>, String> {
    if let Some(fault) = name.strip_prefix("saboteur(").and_then(|rest| rest.strip_suffix(')')) {
        let fault = fault.parse().map_err(|error| format!("--device: {error}"))?;
        return Ok(Ok(saboteur::device(&device::cpu(), fault)));
    }
    let (kind, index) = name.split_once(':').unwrap_or((name, "0"));
    let known = ["auto", "cpu", "cuda", "cuda-emulated", "cuda-tf32", "cuda-tf32-emulated", "wgpu", "wgpu-modest"];
    let is_known = known.contains(&kind) && index.parse::<usize>().is_ok();
    let found = parse(name);
    match found {
        Err(error) if !is_known => Err(format!("--device: {error}")),
        Err(error) if matches!(kind, "cuda" | "cuda-tf32") => {
            Ok(parse(&format!("{kind}-emulated:{index}")).map_err(|_| error))
        }
        found => Ok(found),
    }
}

/// The emulated device that does what hardware may do and does not promise.
const ADVERSE: &str = "cuda-emulated:1";

#[cfg(feature = "emulator")]
fn parse(name: &str) -> consort::Result<Device> {
    use std::sync::OnceLock;
    static DEVICE: OnceLock<Device> = OnceLock::new();
    if name == ADVERSE {
        return Ok(DEVICE.get_or_init(|| device::emulated(&device::Emulated::adverse(1, 7))).clone());
    }
    device::parse(name)
}

#[cfg(not(feature = "emulator"))]
fn parse(name: &str) -> consort::Result<Device> {
    device::parse(name)
}

/// Adds a required device unless one like it is there.
fn require(name: &str, selection: &mut Selection) -> Result<(), String> {
    let (kind, suffix) = name.split_once('-').unwrap_or((name, ""));
    let fits = |device: &Device| {
        let info = device.info();
        let is_right = match suffix {
            "real" => info.is_hardware,
            "emulated" => !info.is_hardware,
            _ => true,
        };
        is_right && info.kind.name() == kind
    };
    if selection.devices.iter().any(fits) {
        return Ok(());
    }
    let found = if suffix == "emulated" { parse(name) } else { resolve(kind)? };
    match found {
        Ok(device) if fits(&device) => selection.devices.push(device),
        Ok(device) => {
            return Err(format!("--require: {name} is absent: there is only {device}, {}", device.info().name));
        }
        Err(reason) => return Err(format!("--require: {name} is absent: {reason}")),
    }
    Ok(())
}

/// What was found, and why the rest was not.
pub(crate) fn print(selection: &Selection) {
    for device in &selection.devices {
        let info = device.info();
        let state = match (info.is_hardware, info.kind) {
            (true, _) => "found",
            (false, Kind::Wgpu) => "software",
            (false, _) => "emulated",
        };
        println!("{:<16} {state:<9} {}, {}", info.label, info.name, info.capability);
    }
    for absent in &selection.absent {
        println!("{:<16} {:<9} not run: {}", absent.device, "absent", absent.reason);
    }
}
