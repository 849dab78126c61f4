//! A run of the suite over several devices.

use serde::{Deserialize, Serialize};

use super::{DeviceReport, Failure, html, markdown};

/// Everything that one command found.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// From which the cases follow.
    pub seed: u64,
    /// How many cases were asked for, per device.
    pub cases: usize,
    /// What ran.
    pub devices: Vec<DeviceReport>,
    /// What could not be used, and so was not run.
    pub absent: Vec<Absent>,
    /// What is wrong with the contracts themselves, whatever the device.
    #[serde(default)]
    pub specification: Vec<Failure>,
}

/// A device that could not be used.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Absent {
    /// Its name or kind: `cuda`.
    pub device: String,
    /// Why, and what to do.
    pub reason: String,
}

impl Report {
    /// A page that needs nothing else: failures, a heat map of errors in ulps, warnings and deviations.
    pub fn html(&self) -> String {
        html::page(self)
    }

    /// docs/parity.md: the devices of this report afresh, the others as they are in `old`.
    pub fn markdown(&self, old: &str) -> String {
        markdown::page(self, old)
    }

    /// What docs/parity.md says otherwise than this report; nothing when it is fresh.
    pub fn stale(&self, page: &str) -> Vec<String> {
        markdown::differences(self, page)
    }

    /// Whether anything is wrong.
    pub fn has_failures(&self) -> bool {
        !self.specification.is_empty() || self.devices.iter().any(|device| !device.failures.is_empty())
    }
}

/// The reproduction of a case on a device.
pub fn reproduction(device: &str, case: &str) -> String {
    let quote = if device.contains('(') { "'" } else { "" };
    format!("cargo xtask parity --device {quote}{device}{quote} --replay '{case}'")
}

/// A number of ulps in at most four characters or so: `0`, `0.5`, `120`, `12k`, `3M`, `1e12`.
pub fn short(ulps: f64) -> String {
    match ulps {
        0.0 => "0".into(),
        u if u < 0.05 => "<0.1".into(),
        u if u < 9.95 => format!("{u:.1}"),
        u if u < 999.5 => format!("{u:.0}"),
        u if u < 999_500.0 => format!("{:.0}k", u / 1e3),
        u if u < 999.5e6 => format!("{:.0}M", u / 1e6),
        u => format!("{u:.0e}"),
    }
}

/// 20000 as `20,000`.
pub(super) fn grouped(n: usize) -> String {
    let digits = n.to_string();
    let lead = digits.len() % 3;
    let mut parts: Vec<&str> = Vec::new();
    if lead > 0 {
        parts.push(&digits[..lead]);
    }
    parts.extend((lead..digits.len()).step_by(3).map(|i| &digits[i..i + 3]));
    parts.join(",")
}

#[cfg(test)]
mod tests {
    use super::super::{Row, Seen};
    use super::*;

    #[test]
    fn numbers_are_short() {
        let all = [0.0, 0.01, 0.5, 9.96, 999.9, 12_345.0, 3e6, 2e12].map(short);
        assert_eq!(all, ["0", "<0.1", "0.5", "10", "1k", "12k", "3M", "2e12"]);
        assert_eq!(
            [0, 12, 999, 1000, 20_160, 1_234_567].map(grouped),
            ["0", "12", "999", "1,000", "20,160", "1,234,567"]
        );
    }

    #[test]
    fn a_promise_that_is_too_loose_is_named_when_enough_was_seen() {
        for (dtype, cases, max_used, warns) in [
            ("f32", 100, 0.05, true),
            ("f32", 99, 0.05, false),
            ("f32", 100, 0.2, false),
            ("f64", 100, 0.05, false),
            ("f16", 100, 0.0, false),
        ] {
            let seen = Seen { max_used, cases, ..Seen::default() };
            let row = Row { op: "sum".into(), dtype: dtype.into(), gradient: seen, ..Row::default() };
            let device = DeviceReport { rows: vec![row], ..DeviceReport::default() };
            let want =
                if warns { vec!["sum f32: gradient: 20 times looser than anything seen in 100 cases"] } else { vec![] };
            assert_eq!(device.warnings(), want, "{dtype} {cases} {max_used}");
        }
    }
}
