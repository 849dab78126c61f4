//! A short training on the CUDA kernels, emulated.
#![forbid(unsafe_code)]

use std::process::Command;

#[test]
fn the_network_learns_on_the_kernels_and_on_the_processor() {
    let losses = ["cpu", "cuda-emulated:0"].map(|device| {
        let folder = tempfile::tempdir().expect("a folder");
        let mut command = Command::new(env!("CARGO_BIN_EXE_digits"));
        command.current_dir(folder.path()).env_remove("CONSORT_DEVICE");
        let options = ["--device", device, "--model", "mlp", "--epochs", "1", "--batch-size", "256", "--json"];
        let output = command.args(options).output().expect("the program starts");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
        let summary: serde_json::Value =
            serde_json::from_str(stdout.lines().last().expect("a line")).expect("a line of JSON");
        assert_eq!(summary["device"], device);
        summary["train_loss"].as_f64().expect("a loss")
    });
    // How close the kernels follow the reference is golden training's to judge; better than chance shows that they learn.
    assert!(losses.iter().all(|&loss| loss < 10f64.ln()), "{losses:?}");
}
