//! docs/parity.md: what each device was seen to do, coarse enough to hold on the next machine, too.
//!
//! Errors are rounded up to powers of two. Their largest ones are those of single cases, and differ between
//! processors with and without fused multiply-adds: a page is stale only when one is exceeded fourfold.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use tensor_core::DType;

use super::whole::grouped;
use super::{DeviceReport, Report, Row, Seen};

const HEAD: &str = "\
# Parity: what was measured

`cargo xtask parity --bless` writes this page; `cargo xtask parity --check`, part of continuous integration, holds it against a
run. Each op is run on generated cases and compared with a naive reference in f64. What is allowed follows from the op's
contract ([ops.md](ops.md)) and the accuracy of the device's arithmetic; the numbers here are what was *seen*: the largest error
of any element of any case in units in the last place of the dtype, rounded up to a power of two, first of values, then of
derivatives. Where terms cancel, a small result has many such units without being wrong; the bound, not this number, is what a
device is held to. `0` is exact, a blank cell is a dtype that the op does not take.

";

/// How far a measurement may exceed the page: processors differ.
const SLACK: f64 = 4.0;

/// The page, with the sections of devices that did not run taken over from the old one.
pub(super) fn page(report: &Report, old: &str) -> String {
    let mut sections: BTreeMap<String, String> =
        sections(old).into_iter().map(|(name, text)| (name.to_string(), text.to_string())).collect();
    for device in &report.devices {
        sections.insert(kind(device).to_string(), section(report, device));
    }
    let sections: Vec<String> = sections.values().map(|text| text.trim_end().to_string() + "\n").collect();
    HEAD.to_string() + &sections.join("\n")
}

/// `cuda` of `cuda:0`.
fn kind(device: &DeviceReport) -> &str {
    device.device.split(':').next().unwrap_or_default()
}

/// The parts of a page by their titles.
fn sections(page: &str) -> Vec<(&str, &str)> {
    let starts: Vec<usize> = page.match_indices("\n## ").map(|(at, _)| at + 1).collect();
    let ends = starts.iter().skip(1).copied().chain([page.len()]);
    let parts = starts.iter().zip(ends).map(|(&start, end)| &page[start..end]);
    parts.map(|part| (part.lines().next().unwrap_or_default().trim_start_matches("## "), part)).collect()
}

fn section(report: &Report, device: &DeviceReport) -> String {
    let mut text = format!("## {}\n\n", kind(device));
    let emulated = if device.emulated { ", emulated" } else { "" };
    let _ =
        writeln!(text, "Measured on {} ({}){emulated}; held to {}.", device.name, device.capability, device.accuracy);
    let _ = writeln!(text, "{}\n", counted(report, device));
    for d in &device.deviations {
        let _ = writeln!(text, "- `{}` {}: {}; instead: {}", d.op, d.dtype, d.reason, d.observed);
    }
    if !device.deviations.is_empty() {
        text.push('\n');
    }
    let dtypes = DType::ALL.map(DType::name);
    let _ = writeln!(text, "| op | {} |\n|---{}|", dtypes.join(" | "), "|---".repeat(dtypes.len()));
    for (op, cells) in cells(device) {
        let line = dtypes.map(|dtype| cells.get(dtype).map_or_else(String::new, |cell| cell.text()));
        let _ = writeln!(text, "| `{op}` | {} |", line.join(" | "));
    }
    text
}

/// The line with the counts, in which nothing depends on the machine.
fn counted(report: &Report, device: &DeviceReport) -> String {
    let [cases, passed, deviated, not_run, failed] = device.counts().map(grouped);
    format!(
        "{cases} cases from seed {}: {passed} passed, {deviated} deviated, {not_run} not run, {failed} failed.",
        report.seed
    )
}

/// What a cell of the table says.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Cell {
    forward: Option<f64>,
    gradient: Option<f64>,
}

impl Cell {
    fn of(row: &Row) -> Self {
        let seen = |seen: &Seen| (seen.cases > 0).then(|| coarse(seen.max_ulps));
        Self { forward: seen(&row.forward), gradient: seen(&row.gradient) }
    }

    fn text(&self) -> String {
        let number = |v: Option<f64>| v.map_or_else(|| "not run".into(), written);
        match self.gradient {
            Some(gradient) => format!("{} / {}", number(self.forward), written(gradient)),
            None => number(self.forward),
        }
    }

    fn read(text: &str) -> Option<Self> {
        let number = |text: &str| match text.trim() {
            "not run" => Some(None),
            "½" => Some(Some(0.5)),
            number => match number.strip_prefix("2^") {
                Some(exponent) => Some(Some(2f64.powi(exponent.parse().ok()?))),
                None => Some(Some(number.parse().ok()?)),
            },
        };
        Some(match text.split_once('/') {
            Some((forward, gradient)) => Self { forward: number(forward)?, gradient: number(gradient)? },
            None => Self { forward: number(text)?, gradient: None },
        })
    }

    /// Whether `seen` goes well with this one.
    fn covers(&self, seen: &Self) -> bool {
        let covers = |page: Option<f64>, seen: Option<f64>| match (page, seen) {
            (Some(page), Some(seen)) => seen <= SLACK * page,
            (page, seen) => page == seen,
        };
        covers(self.forward, seen.forward) && covers(self.gradient, seen.gradient)
    }
}

/// The next power of two from ½ on; 0 stays.
fn coarse(ulps: f64) -> f64 {
    if ulps == 0.0 { 0.0 } else { 2f64.powi(ulps.log2().ceil().max(-1.0) as i32) }
}

fn written(ulps: f64) -> String {
    match ulps {
        0.5 => "½".into(),
        u if u >= 65_536.0 => format!("2^{}", u.log2()),
        u => u.to_string(),
    }
}

fn cells(device: &DeviceReport) -> BTreeMap<&str, BTreeMap<&str, Cell>> {
    let mut cells: BTreeMap<&str, BTreeMap<&str, Cell>> = BTreeMap::new();
    for row in &device.rows {
        cells.entry(&row.op).or_default().insert(&row.dtype, Cell::of(row));
    }
    cells
}

/// The table of a section.
fn read(section: &str) -> BTreeMap<&str, BTreeMap<&str, Cell>> {
    let row = |line| -> Option<_> {
        let (op, cells) = str::strip_prefix(line, "| `")?.split_once("` |")?;
        let cells =
            cells.split('|').zip(DType::ALL).filter_map(|(text, dtype)| Some((dtype.name(), Cell::read(text)?)));
        Some((op, cells.collect()))
    };
    section.lines().filter_map(row).collect()
}

/// What the page says otherwise than a run.
pub(super) fn differences(report: &Report, page: &str) -> Vec<String> {
    let sections = sections(page);
    report.devices.iter().flat_map(|device| differences_of(report, device, &sections)).collect()
}

fn differences_of(report: &Report, device: &DeviceReport, sections: &[(&str, &str)]) -> Vec<String> {
    let name = kind(device);
    let Some((_, section)) = sections.iter().find(|(title, _)| *title == name) else {
        return vec![format!("{name}: the page has no section of that name")];
    };
    let (page, seen) = (read(section), cells(device));
    let mut found = Vec::new();
    if !section.contains(&counted(report, device)) {
        found.push(format!("{name}: the run has {}", counted(report, device)));
    }
    let unknown = page.keys().filter(|op| !seen.contains_key(*op));
    found.extend(unknown.map(|op| format!("{name}: {op} is on the page, but was not run")));
    for (op, seen) in seen {
        match page.get(op) {
            None => found.push(format!("{name}: {op} is not on the page")),
            Some(page) if !page.keys().eq(seen.keys()) => found.push(format!("{name}: {op}: the dtypes differ")),
            Some(page) => {
                let worse = seen.iter().filter(|(dtype, cell)| !page[*dtype].covers(cell));
                found.extend(worse.map(|(dtype, cell)| {
                    format!("{name}: {op} {dtype}: the page says {}, seen {}", page[dtype].text(), cell.text())
                }));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(ulps: f64, gradient: Option<f64>) -> Report {
        let seen = |ulps: f64| Seen { max_ulps: ulps, cases: 3, ..Seen::default() };
        let row = Row {
            op: "exp".into(),
            dtype: "f32".into(),
            cases: 3,
            passed: 3,
            forward: seen(ulps),
            gradient: gradient.map(seen).unwrap_or_default(),
            ..Row::default()
        };
        let device = DeviceReport {
            device: "cpu".into(),
            name: "a processor".into(),
            emulated: false,
            capability: "some instructions".into(),
            accuracy: "IEEE arithmetic".into(),
            rows: vec![row],
            deviations: Vec::new(),
            failures: Vec::new(),
            fixed: Vec::new(),
        };
        Report { devices: vec![device], ..Report::default() }
    }

    #[test]
    fn a_page_is_stale_when_its_ops_differ_or_an_error_is_exceeded_fourfold() {
        let page = report(0.7, Some(3.0)).markdown("");
        assert!(page.contains("| `exp` |  | 1 / 4 |"), "{page}");
        for (seen, stale) in [
            (report(0.7, Some(3.0)), ""),
            (report(0.0, Some(16.0)), ""),
            (report(4.1, Some(3.0)), "cpu: exp f32: the page says 1 / 4, seen 8 / 4"),
            (report(0.7, None), "cpu: exp f32: the page says 1 / 4, seen 1"),
        ] {
            assert_eq!(seen.stale(&page).join("\n"), stale);
        }
        assert_eq!(report(0.7, None).stale("\n## cuda\n"), ["cpu: the page has no section of that name"]);
    }

    #[test]
    fn sections_of_other_devices_stay() {
        let old = "# Old\n\n## cuda\n\n| `exp` | 2^20 |\n";
        let page = report(0.7, None).markdown(old);
        assert!(page.starts_with(HEAD) && page.contains("## cpu\n") && page.ends_with("## cuda\n\n| `exp` | 2^20 |\n"));
        assert_eq!(report(0.7, None).markdown(&page), page);
    }

    #[test]
    fn numbers_are_read_back() {
        for (ulps, text) in [(0.0, "0"), (0.2, "½"), (0.9, "1"), (5.0, "8"), (1e6, "2^20")] {
            let cell = Cell { forward: Some(coarse(ulps)), gradient: None };
            assert_eq!((cell.text().as_str(), Cell::read(text)), (text, Some(cell)));
        }
        assert_eq!(Cell::read(" "), None);
    }
}
