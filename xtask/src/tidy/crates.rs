//! Rules about the packages of the workspace and what they depend on.

use super::Finding;
use crate::workspace::{Package, relative};

/// The rules and what they ask, as in the tables of the other rules.
pub(super) const RULES: &[(&str, &str)] = &[
    ("crate-layers", "dependencies point one way: tensor-core ← backends, nn, data ← consort ← examples"),
    ("crate-description", "every package says what it is"),
];

/// What a package of the workspace may depend on there, tests aside. A name ending in `*` stands for all that start so.
const LAYERS: &[(&str, &[&str])] = &[
    ("crates/tensor-core", &[]),
    ("crates/backend-*", &["ptx-emulator", "tensor-core"]),
    ("crates/nn-derive", &[]),
    ("crates/ptx-emulator", &[]),
    ("crates/conformance", &["nn", "tensor-core"]),
    ("crates/gpu-check", &["backend-cuda", "conformance", "nn", "ptx-emulator", "tensor-core", "training"]),
    ("crates/parity", &["conformance", "consort"]),
    ("crates/nn", &["nn-derive", "tensor-core"]),
    ("crates/data", &["tensor-core"]),
    ("crates/consort", &["backend-*", "conformance", "data", "nn", "tensor-core"]),
    ("examples/lockstep", &["conformance", "consort"]),
    ("examples/*", &["consort"]),
    ("benches/*", &["consort"]),
    ("tests", &["*"]),
    ("xtask", &[]),
];

pub(super) fn check(packages: &[Package]) -> Vec<Finding> {
    packages.iter().flat_map(check_one).collect()
}

fn check_one(package: &Package) -> Vec<Finding> {
    let find =
        |rule, message| Finding { path: relative(&package.manifest_path), line: 1, rule, message, warning: false };
    let mut findings = Vec::new();
    if package.description.as_deref().unwrap_or_default().is_empty() {
        findings.push(find("crate-description", format!("`{}` has no description", package.name)));
    }
    let folder = package.folder();
    let Some((_, allowed)) = LAYERS.iter().find(|(of, _)| matches(of, &folder)) else {
        findings.push(find("crate-layers", format!("`{folder}` has no row in tidy's table of layers")));
        return findings;
    };
    let local = package.dependencies.iter().filter(|d| d.path.is_some() && d.kind.as_deref() != Some("dev"));
    let wrong = local.filter(|dependency| !allowed.iter().any(|name| matches(name, &dependency.name)));
    findings.extend(wrong.map(|dependency| {
        find("crate-layers", format!("`{}` must not depend on `{}`", package.name, dependency.name))
    }));
    findings
}

fn matches(pattern: &str, name: &str) -> bool {
    pattern.strip_suffix('*').map_or(pattern == name, |start| name.starts_with(start))
}
