//! `cargo xtask tidy`: what a compiler cannot check, from tables of rules.
//!
//! A finding is one line, `file:line: rule: message`. Rules read files one at a time, as tokens ([`rust`]) or as text
//! ([`text`]), or the packages of the workspace ([`crates`]).

mod crates;
mod rust;
mod source;
#[cfg(test)]
mod tests;
mod text;

use crate::process::{Result, root};
use crate::workspace;
use source::Source;
use std::fmt;

/// Check the repository for what the compiler does not see
///
/// Quarantined `unsafe`, unfinished or hidden code, the direction of dependencies, long files, broken links, and more.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Name the rules; check nothing
    #[arg(long)]
    list: bool,
}

/// Something that a rule objects to.
#[derive(Debug)]
struct Finding {
    path: String,
    line: usize,
    rule: &'static str,
    message: String,
    /// A warning does not fail the check.
    warning: bool,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, line, rule, message, warning } = self;
        write!(f, "{path}:{line}: {}{rule}: {message}", if *warning { "warning: " } else { "" })
    }
}

pub(crate) fn run(args: &Args) -> Result {
    if args.list {
        let rules = rust::RULES.iter().chain(text::RULES).map(|rule| (rule.name, rule.what));
        for (name, what) in rules.chain(crates::RULES.iter().copied()) {
            println!("{name:<18} {what}");
        }
        return Ok(());
    }

    let files = source::walk(root())?;
    let mut findings: Vec<Finding> = files.iter().flat_map(check).collect();
    findings.extend(crates::check(&workspace::packages()?));
    findings.sort_by(|a, b| (&a.path, a.line).cmp(&(&b.path, b.line)));
    findings.iter().for_each(|finding| println!("{finding}"));

    let errors = findings.iter().filter(|finding| !finding.warning).count();
    println!("tidy: {} files, {errors} errors, {} warnings", files.len(), findings.len() - errors);
    if errors == 0 { Ok(()) } else { Err(format!("tidy found {errors} errors").into()) }
}

/// A rule about single files.
struct Rule {
    name: &'static str,
    what: &'static str,
    /// The line of each finding, and what it says.
    find: fn(&Source) -> Vec<(usize, String)>,
    warning: bool,
}

/// What all rules about single files find in one.
fn check(file: &Source) -> Vec<Finding> {
    let rules = rust::RULES.iter().chain(text::RULES);
    rules
        .flat_map(|rule| {
            let findings = (rule.find)(file).into_iter();
            findings.map(|(line, message)| Finding {
                path: file.path.clone(),
                line,
                rule: rule.name,
                message,
                warning: rule.warning,
            })
        })
        .collect()
}
