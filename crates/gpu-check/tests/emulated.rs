//! The program itself, with the emulator in the place of a GPU.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

fn gpu_check(args: &[&str], out: &Path) -> Output {
    let program = env!("CARGO_BIN_EXE_gpu-check");
    Command::new(program).args(args).arg("--out").arg(out).output().expect("the program runs")
}

fn results(out: &Path) -> Value {
    let text = std::fs::read_to_string(out.join("results.json")).expect("results.json is written");
    serde_json::from_str(&text).expect("results.json is JSON")
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn every_section_runs() {
    let out = tempfile::tempdir().expect("a folder");
    let output = gpu_check(&["--emulated"], out.path());
    assert!(output.status.success(), "{}", said(&output));
    let results = results(out.path());
    let sections = results["sections"].as_array().expect("sections");
    assert_eq!(sections.len(), 11);
    for section in sections {
        let name = &section["name"];
        assert!(matches!(section["state"].as_str(), Some("passed" | "cut")), "{section:#}");
        // What has rows has numbers in them.
        for table in section["tables"].as_array().expect("tables") {
            let rows = table["rows"].as_array().expect("rows");
            assert!(!rows.is_empty(), "{name}: {}", table["title"]);
        }
    }
    let page = std::fs::read_to_string(out.path().join("results.md")).expect("results.md is written");
    assert!(page.contains("**The emulator, not a GPU") && page.contains("## products"), "{page}");
}

#[test]
fn sections_are_chosen_and_beside_pytorch() {
    let out = tempfile::tempdir().expect("a folder");
    let torch = out.path().join("pytorch.jsonl");
    std::fs::write(&torch, "{\"workload\": \"matmul f32 32\", \"us_per_step\": 1.0}\n").expect("a file");
    let torch = torch.display().to_string();
    let output = gpu_check(&["--emulated", "--sections", "products,device", "--pytorch", &torch], out.path());
    assert!(output.status.success(), "{}", said(&output));
    let results = results(out.path());
    let names: Vec<&str> =
        results["sections"].as_array().expect("sections").iter().filter_map(|s| s["name"].as_str()).collect();
    assert_eq!(names, ["device", "products"]);
    let row = &results["sections"][1]["tables"][1]["rows"][0];
    assert!(row[0] == "f32" && row[5] == 1.0 && row[6].is_number(), "{row}");
    let unknown = gpu_check(&["--sections", "speed"], out.path());
    assert!(said(&unknown).contains("[possible values: device, corpus, "), "{}", said(&unknown));
}

/// On a machine with a GPU there is nothing to see here.
#[test]
fn without_a_gpu_it_says_why() {
    if backend_cuda::devices().is_ok() {
        return;
    }
    let out = tempfile::tempdir().expect("a folder");
    let output = gpu_check(&[], out.path());
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    assert!(said(&output).contains("gpu-check: cuda: "), "{}", said(&output));
    assert!(!out.path().join("results.json").exists());
}
