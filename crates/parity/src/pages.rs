//! The pages that are generated: docs/parity.md from what was measured, docs/ops.md from the contracts.

use std::path::{Path, PathBuf};

use conformance::suite::{self, Report};

/// A page of the repository.
fn page(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name)
}

fn read(name: &str) -> String {
    std::fs::read_to_string(page(name)).unwrap_or_default()
}

fn write(name: &str, text: &str) -> Result<(), String> {
    if read(name) == text {
        return Ok(());
    }
    std::fs::write(page(name), text).map_err(|e| format!("docs/{name}: {e}"))?;
    eprintln!("docs/{name}: rewritten");
    Ok(())
}

/// Writes both pages.
pub(crate) fn bless(report: &Report) -> Result<(), String> {
    write("parity.md", &report.markdown(&read("parity.md")))?;
    ops(true).map(drop)
}

/// Holds docs/parity.md against a run.
pub(crate) fn parity(report: &Report) -> Result<bool, String> {
    let stale = report.stale(&read("parity.md"));
    for difference in &stale {
        eprintln!("docs/parity.md: {difference}");
    }
    if !stale.is_empty() {
        eprintln!("docs/parity.md is out of date; run `cargo xtask parity --bless`");
    }
    Ok(stale.is_empty())
}

/// Holds docs/ops.md against the contracts, or rewrites it.
pub(crate) fn ops(bless: bool) -> Result<bool, String> {
    let text = suite::ops_page();
    if bless {
        write("ops.md", &text)?;
    } else if read("ops.md") != text {
        eprintln!("docs/ops.md is out of date; run `cargo xtask docs --bless`");
        return Ok(false);
    }
    Ok(true)
}
