//! The command line.

use std::path::PathBuf;
use std::process::{Command, Output};

fn folder(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

fn emulator(folder: &PathBuf, args: &str) -> (i32, String, String) {
    let Output { status, stdout, stderr } =
        Command::new(env!("CARGO_BIN_EXE_ptx-emulator")).current_dir(folder).args(args.split(' ')).output().unwrap();
    (status.code().unwrap(), String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap())
}

const SCALE: &str = ".version 7.8
.target sm_80
.address_size 64
.visible .entry scale(.param .u64 x, .param .u64 y, .param .f32 by, .param .u32 n) {
    .reg .b32 %r<4>; .reg .b64 %rd<6>; .reg .f32 %f<4>; .reg .pred %p;
    mov.u32 %r1, %tid.x;
    ld.param.u32 %r2, [n];
    setp.ge.u32 %p, %r1, %r2;
    @%p ret;
    ld.param.u64 %rd1, [x];
    ld.param.u64 %rd2, [y];
    ld.param.f32 %f1, [by];
    mul.wide.u32 %rd3, %r1, 4;
    add.s64 %rd4, %rd1, %rd3;
    add.s64 %rd5, %rd2, %rd3;
    ld.global.f32 %f2, [%rd4];
    mul.rn.f32 %f3, %f1, %f2;
    st.global.f32 [%rd5], %f3;
    ret;
}
";

/// A file of NumPy's that holds f32.
fn npy(values: &[f32]) -> Vec<u8> {
    let header = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({},), }}", values.len());
    let mut file = b"\x93NUMPY\x01\x00".to_vec();
    file.extend(((header.len() + 1) as u16).to_le_bytes());
    file.extend(header.bytes());
    file.push(b'\n');
    file.extend(values.iter().flat_map(|value| value.to_le_bytes()));
    file
}

#[test]
fn runs_and_saves() {
    let folder = folder("run");
    std::fs::write(folder.join("scale.ptx"), SCALE).unwrap();
    std::fs::write(folder.join("x.npy"), npy(&[1.0, 2.0, 3.0])).unwrap();
    let (code, out, err) = emulator(
        &folder,
        "run scale.ptx --entry scale --grid 1 --block 32,1,1 --arg x.npy --arg uninit:f32[3] --arg f32:1.5 --arg u32:3 --save 1=y.npy --stats --strict",
    );
    assert_eq!((code, err.as_str()), (0, ""));
    assert!(out.starts_with("scale: clean\nblocks 1\nwarp instructions 14\n"), "{out}");
    let saved = std::fs::read(folder.join("y.npy")).unwrap();
    assert!(saved.len() % 64 == 12 && saved.starts_with(b"\x93NUMPY"));
    assert!(String::from_utf8_lossy(&saved).contains("{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }"));
    assert_eq!(saved[saved.len() - 12..], npy(&[1.5, 3.0, 4.5])[npy(&[0.0; 3]).len() - 12..]);
}

#[test]
fn findings_exit_with_one() {
    let folder = folder("finding");
    std::fs::write(folder.join("scale.ptx"), SCALE).unwrap();
    let run = "run scale.ptx --entry scale --grid 1 --block 32 --arg f32[3] --arg f32[3] --arg f32:1 --arg u32:4";
    let (code, out, _) = emulator(&folder, run);
    assert_eq!(code, 1);
    assert!(
        out.starts_with(
            "scale: out-of-bounds: read of 4 bytes beside everything in global memory\n  at line 16: ld.global.f32"
        ),
        "{out}"
    );
    assert!(out.contains("x of 12 bytes, offset 12"), "{out}");
    let (code, out, _) = emulator(&folder, &format!("{run} --json --seed 4"));
    assert_eq!(code, 1);
    assert!(out.starts_with("{\"clean\": false, \"report\": {\"finding\": \"out-of-bounds\""), "{out}");
    assert!(
        out.contains("\"line\": 16") && out.contains("\"thread\": [3, 0, 0]") && out.contains("\"seed\": 4"),
        "{out}"
    );
}

#[test]
fn check_and_list() {
    let folder = folder("check");
    std::fs::write(folder.join("scale.ptx"), SCALE).unwrap();
    std::fs::write(folder.join("bad.ptx"), SCALE.replace("mul.rn.f32", "mul.rn.f33")).unwrap();
    std::fs::write(folder.join("loose.ptx"), SCALE.replace("mul.rn.f32", "mul.f32")).unwrap();
    assert_eq!(emulator(&folder, "check scale.ptx"), (0, "scale.ptx: 1 kernels, no errors\n".into(), String::new()));
    let (code, out, _) = emulator(&folder, "check bad.ptx");
    assert_eq!((code, out.as_str()), (1, "bad.ptx:17:5: mul: expected one of .lo, .hi, .wide\n"));
    assert_eq!(emulator(&folder, "check loose.ptx").0, 0);
    assert_eq!(emulator(&folder, "check loose.ptx --strict").0, 1);
    let (code, out, _) = emulator(&folder, "list scale.ptx");
    assert_eq!(code, 0);
    assert!(out.starts_with("scale.ptx: PTX 7.8 for sm_80\nscale: 15 instructions, 11 registers, 0 bytes of shared and 0 of local memory\n  0: x .u64, 8 bytes at 0\n"), "{out}");
}

#[test]
fn bad_usage_exits_with_two() {
    let folder = folder("usage");
    std::fs::write(folder.join("scale.ptx"), SCALE).unwrap();
    for (args, expected) in [
        ("", "unknown command ``: expected run, check or list"),
        ("run missing.ptx --entry k --grid 1 --block 1", "missing.ptx: "),
        ("run scale.ptx --entry other --grid 1 --block 1", "other: no such kernel: the file has scale"),
        ("run scale.ptx --entry scale --grid 1 --block 1", "scale: takes 4 arguments: found 0"),
        ("run scale.ptx --entry scale --grid 1,x --block 1", "--grid x: expected a number"),
        (
            "run scale.ptx --entry scale --grid 1 --block 1 --arg null --arg null --arg f32:1 --arg f33:1",
            "--arg f33:1: expected a number of type f33",
        ),
        (
            "run scale.ptx --entry scale --grid 1 --block 2000 --arg null --arg null --arg f32:1 --arg u32:1",
            "scale: block [2000, 1, 1]: every axis",
        ),
        ("run scale.ptx --frobnicate", "unknown argument `--frobnicate`"),
    ] {
        let (code, _, err) = emulator(&folder, args);
        assert_eq!(code, 2, "{args}");
        assert!(err.starts_with(&format!("ptx-emulator: {expected}")), "{args}: {err}");
    }
}

/// What the README shows is what the command says.
#[test]
fn the_readme_shows_a_race() {
    let readme = include_str!("../../README.md");
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let run = "run examples/neighbours.ptx --entry neighbours --grid 1 --block 64 --arg i32[64]";
    assert!(readme.contains(&format!("cargo run -q -- {run}")));
    let (code, out, _) = emulator(&folder, run);
    assert_eq!(code, 1);
    let shown: String = out.lines().map(|line| format!("    {line}\n")).collect();
    assert!(readme.contains(&shown), "{out}");
    let text = std::fs::read_to_string(folder.join("examples/neighbours.ptx")).unwrap();
    let mended: Vec<_> = (1..).zip(text.lines()).map(|(n, line)| if n == 22 { "bar.sync 0;" } else { line }).collect();
    let scratch = self::folder("readme");
    std::fs::write(scratch.join("neighbours.ptx"), mended.join("\n")).unwrap();
    let (code, out, _) = emulator(&scratch, &run.replace("examples/", ""));
    assert_eq!((code, out.as_str()), (0, "neighbours: clean\n"));
}
