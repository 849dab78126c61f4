//! The program as its user sees it.
#![forbid(unsafe_code)]

use std::process::{Command, Output};

/// Runs the program with a folder of its own for what it saves; gives its output and how many files are there.
fn run(args: &[&str]) -> (Output, usize) {
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = Command::new(env!("CARGO_BIN_EXE_lockstep"));
    let output = command.arg("--folder").arg(folder.path()).args(args).output().expect("the program starts");
    (output, std::fs::read_dir(folder.path()).expect("a folder").count())
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("text")
}

#[test]
fn the_culprit_is_named_where_it_stops() {
    let (output, n_files) = run(&[]);
    assert_eq!(output.status.code(), Some(1));
    let stdout = text(&output.stdout);
    assert!(stdout.starts_with("training on lockstep(cpu, saboteur(off-by-ten-tolerances))\n"), "{stdout}");
    let last = stdout.lines().last().expect("a line");
    assert!(last.starts_with("stopped in step 1: "), "{last}");
    assert!(last.contains(": saboteur(off-by-ten-tolerances) breaks the contract: element ["), "{last}");
    assert!(last.contains(".safetensors") && n_files == 1, "{last}");
}

#[test]
fn a_parameter_is_called_by_its_path() {
    let (output, _) = run(&["--fault", "multiplies-in-tf32"]);
    let stdout = text(&output.stdout);
    let last = stdout.lines().last().expect("a line");
    assert!(last.starts_with("stopped in step 1: matmul: ") && last.contains(" (hidden.weight)"), "{last}");
}

#[test]
fn a_record_goes_on_and_names_all_culprits() {
    let (output, n_files) = run(&["--fault", "draws-other-numbers", "--record", "--steps", "2"]);
    let stdout = text(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{stdout}");
    assert!(stdout.contains("\n2 steps in ") && stdout.ends_with("\nwrong: bernoulli, rand\n"), "{stdout}");
    // The two kinds of weights, the dropout mask.
    assert_eq!(n_files, stdout.matches("breach, ").count(), "{stdout}");
}

#[test]
fn a_device_without_a_fault_keeps_its_contract() {
    let (output, n_files) = run(&["--fault", "none"]);
    let stdout = text(&output.stdout);
    assert!(output.status.success(), "{stdout}");
    assert!(stdout.starts_with("training on lockstep(cpu, cpu)\n"), "{stdout}");
    assert!(stdout.ends_with("every result was right\n") && n_files == 0, "{stdout}");
}

#[test]
fn an_unknown_fault_is_refused_with_the_known_ones() {
    let (output, _) = run(&["--fault", "laziness"]);
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(stderr.contains("laziness") && stderr.contains("ignores-a-stride"), "{stderr}");
    let (output, _) = run(&["--help"]);
    assert!(output.status.success() && text(&output.stdout).contains("An input is read from the start of its storage"));
}
