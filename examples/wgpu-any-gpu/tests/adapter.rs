//! The program as its user sees it, with and without an adapter.
#![forbid(unsafe_code)]

use std::process::Command;

#[test]
fn the_op_is_right_and_the_network_learns_with_it_wherever_it_runs() {
    let output =
        Command::new(env!("CARGO_BIN_EXE_wgpu-any-gpu")).args(["--epochs", "2"]).output().expect("the program starts");
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{stdout}{}", String::from_utf8_lossy(&output.stderr));
    let lines: Vec<&str> = stdout.lines().collect();
    assert!(lines[0].starts_with("adapters, ") || lines[0].starts_with("no adapter: "), "{stdout}");
    let has_adapter = lines[0].starts_with("adapters, ");
    let begin = lines.iter().position(|line| line.starts_with("on ")).expect("it says where it runs");
    assert!(lines[begin].starts_with(if has_adapter { "on wgpu:0: " } else { "on cpu" }), "{stdout}");
    assert_eq!(
        lines[begin + 1..begin + 4],
        ["kernel and processor agree", "their gradients agree", "those of a view agree"]
    );
    let recognised: usize = lines[begin + 5]
        .split("recognised ")
        .nth(1)
        .and_then(|text| text.split(' ').next())
        .and_then(|number| number.parse().ok())
        .expect("how many are recognised");
    assert!(lines.len() == begin + 6 && recognised > 250, "{stdout}");
}

#[test]
fn an_unknown_device_is_an_error_that_says_what_there_is() {
    let output = Command::new(env!("CARGO_BIN_EXE_wgpu-any-gpu"))
        .args(["--device", "gpu"])
        .output()
        .expect("the program starts");
    assert!(!output.status.success());
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(stderr.starts_with("error: device: name is unknown"), "{stderr}");
}
