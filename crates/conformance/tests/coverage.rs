//! Every method of the tensor surface is a subject of the suite, or has a reason not to be one.

use std::path::{Path, PathBuf};

use conformance::suite;

/// Methods without a subject, and why.
const EXCEPTIONS: &[(&str, &str)] = &[
    ("from_vec from_slice from_host to_host to_vec item to copy_to", "transfers: every case makes and reads tensors"),
    ("shape dims rank len is_empty dtype device meta is_contiguous is_same", "what a tensor says of itself"),
    ("allclose", "gives a truth value; the functions that it is made of are subjects"),
    ("from_storage with_layout storage unique_storage layout place view", "for backends and interpreters"),
];

/// The files below a folder.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    entries.flat_map(|path| if path.is_dir() { sources(&path) } else { vec![path] }).collect()
}

/// Names of public functions; options are set by methods of theirs.
fn surface() -> Vec<String> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tensor-core/src");
    let files = sources(&source.join("tensor")).into_iter().chain([source.join("tensor.rs")]);
    let files = files.filter(|file| !file.ends_with("window.rs"));
    let texts = files.map(|file| std::fs::read_to_string(file).expect("a text"));
    let names = |text: String| {
        let declared = text.lines().filter_map(|line| line.trim_start().strip_prefix("pub fn "));
        declared.filter_map(|rest| rest.split(['(', '<']).next().map(str::to_string)).collect::<Vec<_>>()
    };
    texts.flat_map(names).filter(|name| !name.starts_with('$')).collect()
}

fn is_exception(name: &str) -> bool {
    EXCEPTIONS.iter().any(|(names, _)| names.split_whitespace().any(|n| n == name))
}

#[test]
fn every_method_is_a_subject() {
    let missing: Vec<String> =
        surface().into_iter().filter(|name| suite::subject(name).is_none() && !is_exception(name)).collect();
    assert!(missing.is_empty(), "no subject covers {missing:?}");
}

/// Methods that macros write: their names stand at the start of a line of a list.
#[test]
fn methods_from_lists_are_subjects() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tensor-core/src/tensor");
    let names = |file: &str, is_name: fn(&str) -> Option<&str>| -> Vec<String> {
        let text = std::fs::read_to_string(source.join(file)).expect("a text");
        text.lines().filter_map(|line| is_name(line.trim())).map(str::to_string).collect()
    };
    let mut all = names("elementwise.rs", |line| {
        line.split_once(" = |").map(|(name, _)| name).filter(|name| !name.contains('$'))
    });
    all.extend(names("order.rs", |line| {
        line.strip_suffix(';')?.split_once(" = ").map(|(name, _)| name).filter(|name| !name.contains(' '))
    }));
    let missing: Vec<&String> = all.iter().filter(|name| suite::subject(name).is_none()).collect();
    assert!(all.len() > 30 && missing.is_empty(), "no subject covers {missing:?} of {all:?}");
}

#[test]
fn no_exception_is_a_subject() {
    let names = EXCEPTIONS.iter().flat_map(|(names, _)| names.split_whitespace());
    let needless: Vec<&str> = names.filter(|name| suite::subject(name).is_some()).collect();
    assert!(needless.is_empty(), "{needless:?} are subjects");
    assert!(suite::subjects().len() >= 100);
}
