//! `cargo xtask docs`: the documentation builds without a warning, and what is generated in it is fresh.

mod side_by_side;

use crate::parity::PARITY;
use crate::process::{self, Result, cargo, root};
use crate::workspace;
use std::fs;

/// Build the documentation, and check that generated parts of it are up to date
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Rewrite the generated parts
    #[arg(long)]
    bless: bool,

    /// Look at the generated parts only
    #[arg(long)]
    generated: bool,
}

/// A part of a hand-written page that is generated: the lines between `<!-- generated: NAME -->` and
/// `<!-- end of NAME -->`.
struct Generated {
    page: &'static str,
    name: &'static str,
    text: fn() -> Result<String>,
}

const GENERATED: &[Generated] = &[
    Generated { page: "ARCHITECTURE.md", name: "crates", text: crate_map },
    Generated { page: "docs/from-pytorch.md", name: "pytorch", text: || side_by_side("pytorch", "PyTorch") },
    Generated { page: "docs/from-flux.md", name: "flux", text: || side_by_side("flux", "Flux") },
];

pub(crate) fn run(args: &Args) -> Result {
    for part in GENERATED {
        refresh(part, args.bless)?;
    }
    // docs/ops.md, which needs the ops.
    process::run(cargo(PARITY).arg("--docs").args(args.bless.then_some("--bless")))?;
    if args.generated {
        return Ok(());
    }
    process::run(cargo(["doc", "--workspace", "--no-deps"]).env("RUSTDOCFLAGS", "-D warnings"))
}

fn refresh(part: &Generated, bless: bool) -> Result {
    let Generated { page, name, text } = part;
    let path = root().join(page);
    let old = fs::read_to_string(&path).map_err(|e| format!("{page}: {e}"))?;
    let new = splice(&old, name, &text()?)
        .ok_or_else(|| format!("{page}: no `<!-- generated: {name} -->` … `<!-- end of {name} -->`"))?;
    if old == new {
        return Ok(());
    }
    if !bless {
        let message = format!("{page}: the generated part `{name}` is out of date; run `cargo xtask docs --bless`");
        return Err(message.into());
    }
    eprintln!("{page}: rewrote the generated part `{name}`");
    Ok(fs::write(&path, new)?)
}

/// The page with the named part replaced; nothing where the page does not mark it.
fn splice(page: &str, name: &str, text: &str) -> Option<String> {
    let (before, rest) = page.split_once(&format!("<!-- generated: {name} -->\n"))?;
    let end = format!("<!-- end of {name} -->");
    let (_, after) = rest.split_once(&end)?;
    Some(format!("{before}<!-- generated: {name} -->\n{text}{end}{after}"))
}

/// The map of crates, from the descriptions in their manifests.
fn crate_map() -> Result<String> {
    let mut text = String::from("| folder | what it is |\n|---|---|\n");
    let mut packages = workspace::packages()?;
    packages.sort_by_key(|package| package.folder());
    for package in packages {
        let description = package.description.as_deref().unwrap_or_default();
        text += &format!("| [`{0}`]({0}) | {description} |\n", package.folder());
    }
    Ok(text)
}

/// Tables of another framework's code beside ours, from the test that runs ours.
fn side_by_side(language: &str, title: &str) -> Result<String> {
    let path = "tests/tests/side_by_side.rs";
    let test = fs::read_to_string(root().join(path)).map_err(|e| format!("{path}: {e}"))?;
    Ok(side_by_side::tables(&test, language, title))
}

#[cfg(test)]
mod tests {
    use super::splice;

    #[test]
    fn only_the_marked_part_is_replaced() {
        let page = "a\n<!-- generated: t -->\nold\n<!-- end of t -->\nb\n";
        let new = "a\n<!-- generated: t -->\nnew\n<!-- end of t -->\nb\n";
        assert_eq!(splice(page, "t", "new\n").as_deref(), Some(new));
        assert_eq!(splice(page, "u", "new\n"), None);
        assert_eq!(splice("<!-- generated: t -->\n", "t", "new\n"), None);
    }
}
