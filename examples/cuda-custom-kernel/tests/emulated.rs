//! The program as its user sees it, where there is no GPU.
#![forbid(unsafe_code)]

use std::process::{Command, Output};

fn run(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_cuda-custom-kernel")).args(args).output().expect("the program starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("text")
}

#[test]
fn the_kernel_is_right_and_can_be_trained_through() {
    let output = run(&["--device", "cuda-emulated:0", "--steps", "6"]);
    let stdout = text(&output.stdout);
    assert!(output.status.success(), "{stdout}{}", text(&output.stderr));
    let lines: Vec<&str> = stdout.lines().collect();
    assert_eq!(lines[0], "on cuda-emulated:0: PTX emulator");
    assert_eq!(
        lines[1..5],
        ["kernel and ops agree", "their gradients agree", "those of a view agree", "undoing a smoothing:"]
    );
    let losses: Vec<f64> = lines[5..]
        .iter()
        .map(|line| line.split("loss").nth(1).expect("a loss").trim().parse().expect("a number"))
        .collect();
    assert!(losses.len() == 2 && losses[1] < 0.1 * losses[0], "{losses:?}");
}

#[test]
fn a_device_without_the_kernel_says_so() {
    let output = run(&["--device", "cpu"]);
    assert!(!output.status.success());
    let stderr = text(&output.stderr);
    assert!(stderr.starts_with("error: smooth: "), "{stderr}");
}

#[test]
fn help_says_what_can_be_chosen() {
    let output = run(&["--help"]);
    assert!(output.status.success() && text(&output.stdout).contains("--device"));
}
