//! The command as its user sees it.
#![forbid(unsafe_code)]

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

fn run(folder: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_parity"));
    command.current_dir(folder).args(args).env_remove("CONSORT_DEVICE").output().expect("the program starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("text")
}

fn status(output: &Output) -> i32 {
    output.status.code().expect("it ended by itself")
}

/// The object on the last line of standard output.
fn summary(output: &Output) -> Value {
    let stdout = text(&output.stdout);
    serde_json::from_str(stdout.lines().last().expect("a line")).expect("JSON")
}

#[test]
fn a_run_prints_its_counts_and_writes_a_report() {
    let folder = tempfile::tempdir().unwrap();
    let args = ["--device", "cpu", "--op", "neg,add", "--cases", "200", "--json", "--report", "out"];
    let output = run(folder.path(), &args);
    assert_eq!(status(&output), 0, "{}{}", text(&output.stdout), text(&output.stderr));

    let all = summary(&output);
    let device = &all["devices"][0];
    for object in [&all, device] {
        assert_eq!((&object["ops"], &object["deviated"], &object["not_run"]), (&2.into(), &0.into(), &0.into()));
        assert_eq!((&object["failed"], &object["passed"]), (&0.into(), &object["cases"]));
        assert!(object["cases"].as_u64().unwrap() >= 200, "{object}");
    }
    assert_eq!((&device["device"], &device["emulated"]), (&"cpu".into(), &false.into()));
    assert_eq!(device["max_ulp"]["neg"]["forward"], 0.0);
    assert!(device["max_ulp"]["add"]["gradient"].is_f64());
    assert_eq!(all["max_ulp"]["cpu"], device["max_ulp"]);

    let stdout = text(&output.stdout);
    assert!(stdout.contains("cpu              found") && stdout.contains("deviated, 0 not run, 0 failed"), "{stdout}");
    let report: Value =
        serde_json::from_str(&std::fs::read_to_string(folder.path().join("out/report.json")).unwrap()).unwrap();
    assert_eq!((&report["cases"], &report["devices"][0]["device"]), (&200.into(), &"cpu".into()));
    let page = std::fs::read_to_string(folder.path().join("out/report.html")).unwrap();
    assert!(
        page.contains("data-op=\"add\"") && page.contains("--replay") && !page.contains("http"),
        "a page of its own"
    );
}

#[test]
fn the_same_seed_gives_the_same_report() {
    let folder = tempfile::tempdir().unwrap();
    let report = |name: &str, threads| {
        let args = ["--device=cpu", "--op=exp", "--cases=100", "--seed=7", "--report", name, "--threads", threads];
        assert_eq!(status(&run(folder.path(), &args)), 0);
        std::fs::read_to_string(folder.path().join(name).join("report.json")).unwrap()
    };
    assert_eq!(report("one", "1"), report("two", "2"));
}

#[test]
fn failures_exit_with_1_and_are_replayed() {
    let folder = tempfile::tempdir().unwrap();
    let device = "saboteur(off-by-ten-tolerances)";
    let output = run(folder.path(), &["--device", device, "--op", "exp", "--cases", "50", "--json"]);
    let stdout = text(&output.stdout);
    assert_eq!(status(&output), 1, "{stdout}");
    assert!(stdout.contains("FAILED exp("), "{stdout}");
    let all = summary(&output);
    assert!(all["failed"].as_u64() > Some(0) && all["not_run"].as_u64() > Some(0), "{all}");
    assert_eq!(all["devices"][0]["emulated"], true);

    let case = all["devices"][0]["failures"][0]["case"].as_str().unwrap();
    let line = format!("cargo xtask parity --device '{device}' --replay '{case}'");
    assert!(stdout.contains(&line), "{stdout}");
    assert!(std::fs::read_to_string(folder.path().join("target/parity/report.html")).unwrap().contains("Failures"));
    let again = run(folder.path(), &["--device", device, "--replay", case]);
    assert_eq!(status(&again), 1, "{}", text(&again.stdout));
    assert_eq!(status(&run(folder.path(), &["--device", "cpu", "--replay", case])), 0);
}

#[test]
fn a_fault_that_survives_exits_with_1() {
    let folder = tempfile::tempdir().unwrap();
    let output = run(folder.path(), &["--device", "cpu", "--saboteur", "--op", "neg", "--cases", "1", "--json"]);
    assert_eq!(status(&output), 1);
    let all = summary(&output);
    assert!(all["faults"].as_u64() >= Some(12) && all["killed"].as_u64() < all["faults"].as_u64(), "{all}");
    assert!(text(&output.stdout).contains("SURVIVES"));
}

#[test]
fn requests_that_cannot_be_met_exit_with_2_and_say_why() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("file"), "").unwrap();
    for (args, why) in [
        (&["--device", "tpu"][..], "--device: device: name is unknown: \"tpu\"; use auto, cpu, cuda:N"),
        (&["--device", "cpu:x"], "--device: device: name is unknown: \"cpu:x\""),
        (&["--device", "cpu:7"], "there is no device to run on: cpu: there is no device of that index: index 7"),
        (&["--device", "saboteur(lazy)"], "--device: "),
        (&["--op", "no_such_op"], "no op matches \"no_such_op\"; `--list` names them"),
        (&["--list", "--op", "no_such_op"], "no op matches \"no_such_op\""),
        (&["--require", "tpu"], "invalid value 'tpu' for '--require <DEVICE>'"),
        (&["--report", "file"], "--report: the folder cannot be used: file: "),
        (&["--report", "file/below"], "--report: the folder cannot be used: file/below: "),
        (&["--replay", "neg f32"], "not a case: \"neg f32\"; write it as `softmax f32 transposed 3.1.0.7`"),
        (&["--replay", "no_such_op f32 sliced 0"], "no op is called \"no_such_op\""),
        (&["--cases", "0"], "invalid value '0' for '--cases <N>': must be at least 1"),
        (&["--bless", "--op", "neg"], "'--bless' cannot be used with '--op <PATTERN>'"),
    ] {
        let output = run(folder.path(), args);
        let stderr = text(&output.stderr);
        assert!(status(&output) == 2 && stderr.contains(why), "{args:?}: {}: {stderr}", status(&output));
    }
}

#[cfg(not(feature = "cuda"))]
#[test]
fn a_required_device_that_is_absent_exits_with_2_and_says_why() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["cuda", "cuda-real"] {
        let output = run(folder.path(), &["--require", name]);
        let stderr = text(&output.stderr);
        assert!(stderr.contains(&format!("parity: --require: {name} is absent: cuda: ")), "{stderr}");
        assert_eq!(status(&output), 2);
    }
    let output = run(folder.path(), &["--device", "cpu,cuda", "--op", "neg", "--cases", "1"]);
    assert_eq!(status(&output), 0);
    assert!(text(&output.stdout).contains("cuda             absent    not run: cuda: "));
}

#[test]
fn ops_are_listed_and_docs_ops_is_fresh() {
    let folder = tempfile::tempdir().unwrap();
    let list = text(&run(folder.path(), &["--list"]).stdout);
    assert!(list.lines().any(|line| line.starts_with("softmax ")) && list.lines().count() >= 100, "{list}");
    let output = run(folder.path(), &["--docs"]);
    assert_eq!(status(&output), 0, "{}", text(&output.stderr));
}
