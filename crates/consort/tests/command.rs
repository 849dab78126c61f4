//! The `consort` command as its user sees it.
#![forbid(unsafe_code)]

use std::process::Command;

fn devices() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_consort"));
    command.arg("devices");
    command
}

#[test]
fn devices_are_listed_as_text_and_as_one_object() {
    let text = devices().output().expect("the command runs");
    assert!(text.status.success() && String::from_utf8_lossy(&text.stdout).contains("cpu"));
    let json = devices().arg("--json").output().expect("the command runs");
    let object: serde_json::Value = serde_json::from_slice(&json.stdout).expect("JSON");
    assert!(json.status.success() && object.is_object());
}

/// As in `consort devices | head -0`.
#[test]
fn output_that_nobody_reads_is_no_error() {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let output = devices().stdout(writer).output().expect("the command runs");
    assert!(output.status.success() && output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
}
