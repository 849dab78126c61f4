//! The seam on the driver's library: absent, incomplete, without a device, and a fake one written in C that refuses texts,
//! runs out of memory and faults.
#![cfg(target_os = "linux")]

use std::path::{Path, PathBuf};
use std::process::Command;

use tensor_core::{Device, Result, Tensor};

/// What the child's lines begin with.
const MARK: &str = "it says: ";
/// Set for the child.
const VARIABLE: &str = "FAKE_CUDA";

/// The child: tries the devices that it finds and says what comes of it.
#[test]
fn child() {
    if std::env::var_os(VARIABLE).is_none() {
        return;
    }
    let say = |text: String| println!("\n{MARK}{text}");
    match backend_cuda::devices() {
        Ok(devices) => devices.iter().for_each(|device| try_out(device, &say)),
        Err(reason) => return say(reason.to_string()),
    }
    match backend_cuda::tf32_devices() {
        Ok(devices) => devices.iter().for_each(|d| say(format!("{d}, {:?}", d.info().accuracy.tf32))),
        Err(reason) => say(reason.to_string()),
    }
}

fn try_out(device: &Device, say: &dyn Fn(String)) {
    let said = |result: Result<Vec<f32>>| say(result.map_or_else(|e| e.to_string(), |values| format!("{values:?}")));
    say(format!("{device}, {}, {}", device.info().name, device.info().capability));
    let x = Tensor::from_vec(vec![1.0f32, 2.0, 3.0], [3], device);
    let Ok(x) = x else { return say(format!("{x:?}")) };
    said(x.to_vec());
    // Two blocks of 40 MiB are too many, one after the other is not.
    let large = || Tensor::zeros([10 << 20], device);
    let kept = large();
    said(large().and_then(|x| x.to_vec()));
    drop(kept);
    said(large().and_then(|_| x.to_vec()));
    said(x.exp().and_then(|y| y.narrow(0, 0, 1)?.to_vec()));
    said(x.to_vec());
    // Large enough for the copy lane, more often than there are buffers.
    let uploads =
        (0..6).map(|i| Tensor::from_vec(vec![i as f32; 20_000], [20_000], device)).collect::<Result<Vec<_>>>();
    said(uploads.and_then(|all| all.iter().map(|x| x.narrow(0, 19_999, 1)?.item::<f32>()).collect()));
}

/// A library of this source, called libcuda.so, in the folder.
fn library(folder: &Path, source: &str) -> PathBuf {
    let text = folder.join("fake.c");
    std::fs::write(&text, source).expect("the folder can be written to");
    let mut cc = Command::new("cc");
    cc.args(["-shared", "-fPIC", "-w", "-o"]).arg(folder.join("libcuda.so")).arg(text);
    assert!(cc.status().expect("there is a C compiler").success());
    folder.to_path_buf()
}

/// What the child says with the libraries of that folder.
fn said(folder: &Path, mode: &str) -> Vec<String> {
    let mut child = Command::new(std::env::current_exe().expect("a path"));
    child.args(["child", "--exact", "--nocapture"]).env(VARIABLE, mode).env("LD_LIBRARY_PATH", folder);
    let output = child.output().expect("the child starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.lines().filter_map(|line| line.strip_prefix(MARK)).map(String::from).collect()
}

#[test]
fn without_a_driver_the_reason_is_honest() {
    match backend_cuda::devices() {
        Ok(found) => assert!(!found.is_empty(), "no device and no reason"),
        Err(reason) => {
            assert!(reason.is_device(), "{reason}");
            let text = reason.to_string();
            assert!(text.starts_with("cuda: ") && text.contains("; "), "no remedy: {text}");
            assert_eq!(backend_cuda::devices().err().map(|e| e.to_string()), Some(text), "asked again");
        }
    }
}

#[test]
fn a_library_that_lacks_a_function_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    library(
        folder.path(),
        "int cuInit(unsigned flags) { return 0; }\nint cuGetErrorString(int e, char **t) { return 1; }",
    );
    assert_eq!(
        said(folder.path(), ""),
        ["cuda: the driver library lacks a function: cuDeviceGetCount; install a driver for CUDA 12.0 or later"]
    );
}

#[test]
fn a_driver_without_a_device_says_so() {
    let folder = tempfile::tempdir().expect("a folder");
    library(folder.path(), include_str!("driver/fake_libcuda.c"));
    assert_eq!(
        said(folder.path(), "no-device"),
        [
            "cuda: the driver refuses to start: CUDA_ERROR_NO_DEVICE (no CUDA-capable device is detected); check the driver \
          with nvidia-smi"
        ]
    );
    assert_eq!(
        said(folder.path(), "hidden"),
        ["cuda: no device: devices 0; check CUDA_VISIBLE_DEVICES, or use another device"]
    );
}

#[test]
fn a_device_goes_on_after_what_it_can_survive() {
    let folder = tempfile::tempdir().expect("a folder");
    library(folder.path(), include_str!("driver/fake_libcuda.c"));
    let values = "[1.0, 2.0, 3.0]";
    let start = ["cuda:0, Fake GPU, sm_86, 12 multiprocessors", values];

    // Kernels do nothing: a new block holds zeros.
    let said_here = said(folder.path(), "works");
    assert_eq!(said_here[..2], start);
    assert!(said_here[2].starts_with("cuda:0: out of memory: request 40.0 MiB, free 2"), "{said_here:?}");
    assert_eq!(said_here[3..7], [values, "[0.0]", values, "[0.0, 1.0, 2.0, 3.0, 4.0, 5.0]"]);
    assert_eq!(said_here[7..], ["cuda-tf32:0, true"]);

    let old = said(folder.path(), "old");
    assert_eq!(old[0], "cuda:0, Fake GPU, sm_76, 12 multiprocessors");
    assert_eq!(old[7], "cuda-tf32:0: has no tensor cores for TF32: device sm_76, least sm_80; use cuda:0");

    let refused = said(folder.path(), "refuse");
    let text = "PTX is refused: kernel map: CUDA_ERROR_INVALID_PTX (something went wrong): ptxas application ptx input, \
                line 7; error : Unknown symbol 'x'";
    assert!(refused[4].starts_with("cuda:0") && refused[4].contains(text), "{refused:?}");
    assert_eq!(refused[5], values);

    let lost = said(folder.path(), "fault");
    assert_eq!(lost[..2], start);
    let text = "the driver cannot finish its work: CUDA_ERROR_ILLEGAL_ADDRESS (something went wrong); the device's tensors \
                are gone: restart the program, or go on with another device";
    assert!(lost[4].contains(text) && lost[5].contains(text), "{lost:?}");
}
