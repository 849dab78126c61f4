//! What the PyTorch scripts printed: a line of JSON per measurement.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;

#[derive(Deserialize)]
struct Line {
    workload: String,
    us_per_step: f64,
}

/// Microseconds by what was measured; lines of another kind are left out, and a file that cannot be read gives none.
pub(crate) fn read(path: &Path) -> BTreeMap<String, f64> {
    parse(&std::fs::read_to_string(path).unwrap_or_default())
}

fn parse(text: &str) -> BTreeMap<String, f64> {
    let lines = text.lines().filter_map(|line| serde_json::from_str::<Line>(line).ok());
    lines.map(|line| (line.workload, line.us_per_step)).collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn measurements_are_found_among_other_lines() {
        let text = "a warning\n{\"impl\":\"torch\",\"workload\":\"gpt\",\"us_per_step\":12.5,\"steps\":60}\n{}\n";
        assert_eq!(super::parse(text).into_iter().collect::<Vec<_>>(), [("gpt".to_string(), 12.5)]);
    }
}
