//! The page for readers.

use std::fmt::Write;

use serde_json::Value;

use crate::report::{Report, SectionReport, Table};

/// The whole run: a summary, then a section each.
pub(crate) fn page(report: &Report) -> String {
    let mut page = String::from("# What a GPU showed\n\n");
    if report.emulated {
        page.push_str("**The emulator, not a GPU: nothing here is a measurement.**\n\n");
    }
    let _ = writeln!(page, "gpu-check {}, {:.0} s in all.\n", report.version, report.seconds);
    page.push_str("| section | | seconds | failures | cut |\n|---|---|---|---|---|\n");
    for SectionReport { name, state, seconds, found, .. } in &report.sections {
        let (failures, cut) = (found.failures.len(), found.cut.len());
        let _ = writeln!(page, "| [{name}](#{name}) | {} | {seconds:.1} | {failures} | {cut} |", state.word());
    }
    report.sections.iter().for_each(|found| section(&mut page, found));
    page
}

fn section(page: &mut String, section: &SectionReport) {
    let SectionReport { name, title, found, .. } = section;
    let _ = writeln!(page, "\n## {name}\n\n{title}.");
    for (heading, lines) in [("Failures", &found.failures), ("Cut", &found.cut), ("Notes", &found.notes)] {
        if !lines.is_empty() {
            let _ = writeln!(page, "\n{heading}:\n");
            lines.iter().for_each(|line| page.push_str(&format!("- {}\n", line.replace('\n', "\n  "))));
        }
    }
    found.tables.iter().for_each(|found| table(page, found));
}

fn table(page: &mut String, Table { title, columns, rows }: &Table) {
    let _ = writeln!(page, "\n{title}:\n\n| {} |", columns.join(" | "));
    page.push_str(&"|---".repeat(columns.len()));
    page.push_str("|\n");
    for row in rows {
        let cells: Vec<String> = row.iter().map(cell).collect();
        let _ = writeln!(page, "| {} |", cells.join(" | "));
    }
}

fn cell(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.replace('|', "\\|"),
        Value::Number(n) => n.as_f64().map_or_else(|| n.to_string(), |x| x.to_string()),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{Found, State};

    #[test]
    fn a_page_has_what_was_found() {
        let rows = vec![vec![Value::from("a|b"), Value::from(2.0), Value::Null]];
        let columns = ["op", "µs", "ratio"].map(String::from).to_vec();
        let found = Found {
            failures: vec!["wrong".into()],
            tables: vec![Table { title: "Times".into(), columns, rows }],
            ..Found::default()
        };
        let (name, title) = ("maps".to_string(), "Maps".to_string());
        let section = SectionReport { name, title, state: State::Failed, seconds: 1.0, budget_seconds: 2, found };
        let report = Report { version: "0".into(), emulated: false, seconds: 1.0, sections: vec![section] };
        let page = page(&report);
        for part in ["| [maps](#maps) | FAILED | 1.0 | 1 | 0 |", "- wrong\n", "| a\\|b | 2 |  |", "|---|---|---|\n"] {
            assert!(page.contains(part), "{part} in {page}");
        }
    }
}
