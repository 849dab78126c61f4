//! A whole training on the first adapter that wgpu finds, a software one if need be.
#![forbid(unsafe_code)]

use std::process::Command;

use consort::{Kind, device};

/// The share of test images that the network recognises at least.
const ACCURACY: f64 = 0.97;

#[test]
fn the_dense_network_recognises_97_of_100_digits_after_training_on_an_adapter() {
    if let Err(reason) = device::probe(Kind::Wgpu) {
        assert!(std::env::var_os("CI").is_none(), "{reason}");
        eprintln!("not run: {reason}");
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = Command::new(env!("CARGO_BIN_EXE_digits"));
    command.current_dir(folder.path()).env_remove("CONSORT_DEVICE");
    // Three fifths of the training by default.
    let options = ["--device", "wgpu:0", "--model", "mlp", "--epochs", "60", "--json"];
    let output = command.args(options).output().expect("the program starts");
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{stderr}");
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    let summary: serde_json::Value =
        serde_json::from_str(stdout.lines().last().expect("a line")).expect("a line of JSON");
    assert_eq!(summary["device"], "wgpu:0");
    let accuracy = summary["test_accuracy"].as_f64().expect("an accuracy");
    assert!(accuracy >= ACCURACY, "accuracy {accuracy}\n{stderr}");
}
