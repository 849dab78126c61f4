//! The program as its user sees it.
#![forbid(unsafe_code)]

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

/// The program in a folder of its own.
fn digits(folder: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_digits"));
    command.current_dir(folder).args(args).env_remove("CONSORT_DEVICE");
    command
}

fn run(folder: &Path, args: &[&str]) -> Output {
    digits(folder, args).output().expect("the program starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("text")
}

/// The object on the last line of standard output.
fn summary(output: &Output) -> Value {
    let stdout = text(&output.stdout);
    serde_json::from_str(stdout.lines().last().expect("a line")).expect("JSON")
}

fn files(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(folder)
        .map(|entries| entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("text")).collect())
        .unwrap_or_default();
    names.sort();
    names
}

#[test]
fn a_short_training_shows_and_saves_what_was_learnt() {
    let folder = tempfile::tempdir().unwrap();
    let output = run(folder.path(), &["--model", "mlp", "--epochs", "3", "--json"]);
    assert!(output.status.success(), "{}", text(&output.stderr));

    let summary = summary(&output);
    assert_eq!((&summary["device"], &summary["model"]), (&"cpu".into(), &"mlp".into()));
    assert_eq!((&summary["epochs"], &summary["interrupted"]), (&3.into(), &false.into()));
    assert!(summary["test_accuracy"].as_f64().unwrap() > 0.6, "{summary}");
    let first = summary["history"][0]["train_loss"].as_f64().unwrap();
    assert!(summary["train_loss"].as_f64().unwrap() < first, "{summary}");
    assert!(summary["seconds"].as_f64().unwrap() > 0.0 && summary["samples_per_second"].as_f64().unwrap() > 0.0);

    let stdout = text(&output.stdout);
    for part in ["Confusion matrix", "guesses", "recognised", "█"] {
        assert!(stdout.contains(part), "{stdout}");
    }
    assert!(!stdout.contains('\x1b'), "no colours where there is no terminal");
    // Plain lines instead of a bar, where standard error is no terminal.
    let stderr = text(&output.stderr);
    let lines: Vec<_> = stderr.lines().collect();
    assert_eq!(lines.len(), 3, "{stderr}");
    for (line, part) in lines.iter().zip(["epoch   1/3", "epoch   2/3", "epoch   3/3"]) {
        assert!(line.starts_with(part) && line.contains("images/s") && line.contains("ETA"), "{line}");
    }

    assert_eq!(files(&folder.path().join("runs/digits")), ["curve.svg", "model.safetensors"]);
    let svg = std::fs::read_to_string(folder.path().join("runs/digits/curve.svg")).unwrap();
    assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>") && svg.contains("accuracy"));
}

#[test]
fn the_same_seed_gives_the_same_file() {
    for model in ["mlp", "cnn"] {
        let bytes = ["1", "1", "2"].map(|seed| {
            let folder = tempfile::tempdir().unwrap();
            let output = run(folder.path(), &["--model", model, "--epochs", "1", "--seed", seed, "--out", "here"]);
            assert!(output.status.success(), "{}", text(&output.stderr));
            std::fs::read(folder.path().join("here/model.safetensors")).unwrap()
        });
        assert!(bytes[0] == bytes[1], "{model}: the same seed");
        assert!(bytes[0] != bytes[2], "{model}: another seed");
    }
}

#[test]
fn bad_arguments_are_refused_before_any_work() {
    for (args, want) in [
        (&["--device", "abacus"][..], "name is unknown: \"abacus\""),
        (&["--device", "cuda:0"], "error: cuda"),
        (&["--out", "file"], "error: --out: the folder cannot be written to: file: "),
        (&["--out", "file/deeper"], "error: --out: the folder cannot be written to: file/deeper: "),
        (&["--epochs", "0"], "must be at least 1"),
        (&["--batch-size", "0"], "must be at least 1"),
        (&["--batch-size", "many"], "invalid value 'many'"),
        (&["--model", "rnn"], "possible values: mlp, cnn"),
        (&["--seed", "-1"], "error"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("file"), "a file").unwrap();
        let output = run(folder.path(), args);
        assert!(!output.status.success(), "{args:?}");
        let stderr = text(&output.stderr);
        assert!(stderr.contains(want), "{args:?}: {stderr}");
        assert!(output.stdout.is_empty() && !stderr.contains("epoch "), "{args:?}: nothing was trained");
        assert_eq!(files(folder.path()), ["file"], "{args:?}: nothing was written");
    }
    // The variable counts where no device is named, and is an error where it names none.
    let folder = tempfile::tempdir().unwrap();
    let output = digits(folder.path(), &["--epochs", "1"]).env("CONSORT_DEVICE", "abacus").output().unwrap();
    assert!(!output.status.success() && text(&output.stderr).contains("CONSORT_DEVICE"));
}

#[test]
fn a_training_that_nobody_listens_to_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let (reader, writer) = std::io::pipe().unwrap();
    let mut command = digits(folder.path(), &["--model", "mlp", "--epochs", "1", "--json"]);
    command.stdout(writer.try_clone().unwrap()).stderr(writer);
    let mut child = command.spawn().unwrap();
    // The last ends of the pipe but the program's own.
    drop((command, reader));
    assert!(child.wait().unwrap().success());
    assert_eq!(files(&folder.path().join("runs/digits")), ["curve.svg", "model.safetensors"]);
}

/// `/dev/full` takes nothing, like a full disk.
#[cfg(target_os = "linux")]
#[test]
fn output_that_cannot_be_written_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = digits(folder.path(), &["--model", "mlp", "--epochs", "1"]);
    let output = command.stdout(std::fs::File::create("/dev/full").unwrap()).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let stderr = text(&output.stderr);
    assert!(stderr.contains("error: stdout: cannot be written to: No space left on device"), "{stderr}");
}

/// As many epochs as can be written down are a long training and no overflow.
#[cfg(unix)]
#[test]
fn any_number_of_epochs_can_be_begun() {
    use std::io::{BufRead, BufReader};
    let folder = tempfile::tempdir().unwrap();
    let mut command = digits(folder.path(), &["--model", "mlp", "--epochs", &usize::MAX.to_string()]);
    let mut child = command.stderr(std::process::Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stderr.take().unwrap()).read_line(&mut line).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(line.starts_with("epoch   1/"), "{line}");
    assert!(files(&folder.path().join("runs/digits")).is_empty(), "a killed training leaves no half a file");
}

/// Ctrl-C is a signal only on Unix.
#[cfg(unix)]
#[test]
fn an_interrupt_keeps_what_was_trained() {
    use std::io::{BufRead, BufReader, Read};
    use std::process::Stdio;

    let folder = tempfile::tempdir().unwrap();
    let mut child = digits(folder.path(), &["--model", "mlp", "--epochs", "100000", "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    lines.read_line(&mut line).unwrap();
    assert!(line.starts_with("epoch   1/100000"), "{line}");
    let sent = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(sent.success());
    lines.read_to_string(&mut line).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{line}");
    assert!(line.contains("stopping after this step"), "{line}");

    let summary = summary(&output);
    assert_eq!(summary["interrupted"], true);
    assert!(summary["epochs"].as_u64().unwrap() >= 1);
    assert_eq!(files(&folder.path().join("runs/digits")), ["curve.svg", "model.safetensors"]);
}
