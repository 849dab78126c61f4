//! Each rule fires on a made-up text that breaks it, at the right line, and leaves its neighbours alone.

use super::source::Source;
use super::{Finding, crates};
use crate::process::root;
use crate::workspace::Package;

const LIBRARY: &str = "crates/nn/src/loss.rs";
const BACKEND: &str = "crates/backend-cpu/src/execute.rs";

fn fired(path: &str, text: &str) -> Vec<(&'static str, usize)> {
    let findings = super::check(&Source::new(path, text));
    findings.iter().map(|Finding { rule, line, .. }| (*rule, *line)).collect()
}

#[track_caller]
fn check(path: &str, text: &str, expected: &[(&str, usize)]) {
    assert_eq!(fired(path, text), expected, "in {path}:\n{text}");
}

#[test]
fn unsafe_code_stays_in_its_files() {
    let text = "fn f() {\n    unsafe { g() }\n}";
    check(LIBRARY, text, &[("unsafe", 2)]);
    check("examples/digits/src/curve.rs", text, &[("unsafe", 2)]);
    check("crates/backend-cpu/src/simd.rs", text, &[]);
    check(LIBRARY, "#![allow(unsafe_code)]", &[("unsafe", 1)]);
    check(LIBRARY, "// unsafe\nconst A: &str = \"unsafe\";", &[]);
    check("crates/nn/src/lib.rs", "//! Layers.", &[("forbid-unsafe", 1)]);
    check("crates/nn/src/lib.rs", "//! Layers.\n#![forbid(unsafe_code)]", &[]);
    check("crates/backend-cpu/src/lib.rs", "//! Kernels.", &[]);
}

#[test]
fn unfinished_code_is_found() {
    for name in ["todo", "unimplemented", "dbg"] {
        check("tests/tests/a.rs", &format!("fn f() {{\n{name}!(1)\n}}"), &[("unfinished", 2)]);
        check("tests/tests/a.rs", &format!("/// {name}!()\nfn {name}() {{}}"), &[]);
    }
    check("tests/tests/a.rs", "fn f( {", &[("rust", 1)]);
}

#[test]
fn hidden_tests_are_found() {
    check("tests/tests/a.rs", "#[test]\n#[ignore]\nfn f() {}", &[("hidden-test", 2)]);
    check("tests/tests/a.rs", "#[test]\n#[should_panic(expected = \"x\")]\nfn f() {}", &[("hidden-test", 2)]);
}

#[test]
fn libraries_do_not_unwrap() {
    let text = "fn f() {\n    g().unwrap();\n    g().expect(\"x\");\n    g().expect(\"invariant: x\");\n}";
    check(LIBRARY, text, &[("unwrap", 2), ("unwrap", 3)]);
    check("crates/nn/src/loss/tests.rs", text, &[]);
    check("crates/nn/tests/loss.rs", text, &[]);
    check("examples/digits/src/curve.rs", text, &[]);
    let test = format!("#[cfg(test)]\nmod tests {{\n{text}\n}}\nfn after() {{ h().unwrap() }}");
    check(LIBRARY, &test, &[("unwrap", 9)]);
    check(LIBRARY, "#[cfg(test)]\nmod tests;\nfn after() { h().unwrap() }", &[("unwrap", 3)]);
}

#[test]
fn backends_name_every_op() {
    let arms = |last: &str| {
        format!(
            "fn f() {{\n  match op {{\n    Op::Sort {{ .. }} => {{ a }}\n    Op::Cat(_) | Op::Pad => b,\n    {last}\n  }}\n}}"
        )
    };
    check(BACKEND, &arms("_ => c,"), &[("op-wildcard", 5)]);
    check(BACKEND, &arms("other => { c }"), &[("op-wildcard", 5)]);
    check(BACKEND, &arms("_ if d => c,"), &[("op-wildcard", 5)]);
    check(BACKEND, &arms("Op::Map(_) => match x { _ => 1 },"), &[]);
    check("examples/digits/src/curve.rs", &arms("_ => c,"), &[]);
    check(BACKEND, "fn f() { match dtype { DType::F32 => a, _ => b } }", &[]);
}

#[test]
fn long_files_are_found() {
    check(LIBRARY, &"\n".repeat(400), &[]);
    check(LIBRARY, &"\n".repeat(401), &[("long-file", 401)]);
    check(LIBRARY, &"\n".repeat(600), &[("long-file", 600)]);
    check(LIBRARY, &"\n".repeat(601), &[("too-long-file", 601)]);
    check("docs/a.md", &"\n".repeat(601), &[]);
}

#[test]
fn words_are_found() {
    let word = ["FIX", "ME"].concat();
    check(LIBRARY, &format!("\n// {word}: later"), &[("words", 2)]);
    check("docs/a.md", &format!("{word}S and A{word}"), &[]);
    check("docs/a.md", &["see /ho", "me/someone"].concat(), &[("words", 1)]);
    check("docs/a.md", &["<<<<", "<<< HEAD"].concat(), &[("words", 1)]);
}

#[test]
fn broken_links_are_found() {
    check("docs/a.md", "# A b\n[x](no-such-page.md)", &[("links", 2)]);
    check("docs/a.md", "# A `b`, c\n[x](#a-b-c) [y](#d)", &[("links", 2)]);
    check("docs/a.md", "[x](../Cargo.toml) [y](https://example.org/z)", &[]);
    check("docs/a.md", "`[x](y)`\n```\n[x](y)\n```", &[]);
}

fn package(folder: &str, description: &str, dependency: &str, kind: &str) -> Package {
    let manifest = root().join(folder).join("Cargo.toml");
    let kind = if kind.is_empty() { "null".into() } else { format!("{kind:?}") };
    let json = format!(
        r#"{{"name": {folder:?}, "description": {description:?}, "manifest_path": {manifest:?}, "targets": [],
            "dependencies": [{{"name": {dependency:?}, "kind": {kind}, "path": "/x"}}]}}"#
    );
    serde_json::from_str(&json).expect("made-up packages are valid")
}

#[test]
fn dependencies_point_one_way() {
    let check = |folder, dependency, kind, expected: &[&str]| {
        let findings = crates::check(&[package(folder, "a thing", dependency, kind)]);
        let rules: Vec<&str> = findings.iter().map(|finding| finding.rule).collect();
        assert_eq!(rules, expected, "{folder} on {dependency}");
    };
    check("crates/backend-cpu", "tensor-core", "", &[]);
    check("crates/backend-cpu", "nn", "", &["crate-layers"]);
    check("crates/tensor-core", "backend-cpu", "", &["crate-layers"]);
    check("crates/tensor-core", "backend-cpu", "build", &["crate-layers"]);
    check("crates/tensor-core", "backend-cpu", "dev", &[]);
    check("crates/consort", "backend-cuda", "", &[]);
    check("examples/digits", "nn", "", &["crate-layers"]);
    check("tools", "nn", "", &["crate-layers"]);
}

#[test]
fn packages_are_described() {
    let findings = crates::check(&[package("crates/data", "", "tensor-core", "")]);
    assert_eq!(findings.iter().map(|f| f.rule).collect::<Vec<_>>(), ["crate-description"]);
}
