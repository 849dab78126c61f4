//! `cargo xtask setup`: what this machine has of what the project uses.

use crate::process::{self, Result, cargo, succeeds};
use std::path::Path;
use std::process::Command;

/// A program that the project uses.
struct Tool {
    name: &'static str,
    used_for: &'static str,
    required: bool,
    /// Whether continuous integration installs it where it is missing.
    in_ci: bool,
    probe: fn() -> bool,
    /// The Debian packages that hold it.
    system_packages: &'static [&'static str],
    /// What to do where it is missing.
    remedy: &'static str,
}

const TOOLS: &[Tool] = &[
    Tool {
        name: "C linker",
        used_for: "every build",
        required: true,
        in_ci: true,
        probe: || succeeds(Command::new("cc").arg("--version")),
        system_packages: &["gcc"],
        remedy: "install gcc or clang",
    },
    Tool {
        name: "rustfmt",
        used_for: "cargo xtask ci",
        required: false,
        in_ci: false,
        probe: || succeeds(&mut cargo(["fmt", "--version"])),
        system_packages: &[],
        remedy: "rustup component add rustfmt",
    },
    Tool {
        name: "clippy",
        used_for: "cargo xtask ci",
        required: false,
        in_ci: false,
        probe: || succeeds(&mut cargo(["clippy", "--version"])),
        system_packages: &[],
        remedy: "rustup component add clippy",
    },
    Tool {
        name: "cargo-nextest",
        used_for: "faster tests",
        required: false,
        in_ci: false,
        probe: has_nextest,
        system_packages: &[],
        remedy: "cargo install cargo-nextest --locked",
    },
    Tool {
        name: "cargo-deny",
        used_for: "the dependency policy of deny.toml",
        required: false,
        in_ci: false,
        probe: || succeeds(&mut cargo(["deny", "--version"])),
        system_packages: &[],
        remedy: "cargo install cargo-deny --locked",
    },
    Tool {
        name: "Vulkan",
        used_for: "the feature wgpu; a driver for any processor will do",
        required: false,
        in_ci: true,
        probe: has_vulkan,
        system_packages: &["libvulkan1", "mesa-vulkan-drivers"],
        remedy: "install a Vulkan driver and its loader (libvulkan1, mesa-vulkan-drivers)",
    },
    Tool {
        name: "python3",
        used_for: "comparing with PyTorch",
        required: false,
        in_ci: false,
        probe: || succeeds(Command::new(python()).arg("--version")),
        system_packages: &["python3"],
        remedy: "install Python 3, or set CONSORT_PYTHON to an interpreter",
    },
    Tool {
        name: "PyTorch",
        used_for: "the other column of cargo xtask bench",
        required: false,
        in_ci: false,
        probe: has_torch,
        system_packages: &[],
        remedy: "install torch for python3, or set CONSORT_PYTHON to an interpreter that has it",
    },
];

/// Say what this machine has of what the project uses
///
/// Nothing is installed without --install, except in continuous integration (CI=true), where missing required system
/// packages are.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Install the missing system packages with apt-get
    #[arg(long)]
    install: bool,
}

pub(crate) fn run(args: &Args) -> Result {
    let (mut missing_required, mut packages) = (Vec::new(), Vec::new());
    for tool in TOOLS {
        let present = (tool.probe)();
        let state = match (present, tool.required) {
            (true, _) => "found",
            (false, true) => "MISSING",
            (false, false) => "absent",
        };
        print!("{:<14} {state:<8} for {}", tool.name, tool.used_for);
        println!("{}", if present { String::new() } else { format!("; to have it: {}", tool.remedy) });
        if !present {
            if args.install || (tool.in_ci && process::in_ci()) {
                packages.extend(tool.system_packages);
            }
            missing_required.extend(Some(tool.name).filter(|_| tool.required));
        }
    }
    if !packages.is_empty() {
        return install(&packages);
    }
    if missing_required.is_empty() {
        Ok(())
    } else {
        let names = missing_required.join(", ");
        Err(format!("missing: {names}; `cargo xtask setup --install` installs system packages").into())
    }
}

/// The set-up that building and testing need: nothing where the required tools are there.
pub(crate) fn prepare() -> Result {
    let is_needed = |tool: &&Tool| tool.required || (tool.in_ci && process::in_ci());
    let missing = TOOLS.iter().filter(is_needed).any(|tool| !(tool.probe)());
    if missing { run(&Args { install: false }) } else { Ok(()) }
}

/// Whether cargo-nextest is installed.
pub(crate) fn has_nextest() -> bool {
    succeeds(&mut cargo(["nextest", "--version"]))
}

/// Whether there are Vulkan's loader and a driver; only looked for on Linux, other systems have interfaces of their own.
fn has_vulkan() -> bool {
    let folders = ["/usr/share/vulkan/icd.d", "/etc/vulkan/icd.d"];
    let has_driver =
        folders.iter().any(|folder| std::fs::read_dir(folder).is_ok_and(|mut files| files.next().is_some()));
    let loaders = ["/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib"];
    let has_loader = loaders.iter().any(|folder| Path::new(folder).join("libvulkan.so.1").exists());
    !cfg!(target_os = "linux") || (has_driver && has_loader)
}

/// The Python interpreter to compare with: CONSORT_PYTHON, else python3.
pub(crate) fn python() -> String {
    std::env::var("CONSORT_PYTHON").unwrap_or_else(|_| "python3".into())
}

/// Whether that interpreter can import torch (looked up, not loaded).
pub(crate) fn has_torch() -> bool {
    let program = "import importlib.util as u, sys; sys.exit(u.find_spec('torch') is None)";
    succeeds(Command::new(python()).args(["-c", program]))
}

/// Installs system packages with apt-get, through sudo where need be.
pub(crate) fn install(packages: &[&str]) -> Result {
    let as_root = Command::new("id").arg("-u").output().is_ok_and(|id| id.stdout.trim_ascii() == b"0");
    let apt = |args: &[&str]| {
        let mut command = Command::new(if as_root { "apt-get" } else { "sudo" });
        if !as_root {
            command.arg("apt-get");
        }
        process::run(command.args(args).env("DEBIAN_FRONTEND", "noninteractive"))
    };
    apt(&["update"])?;
    apt(&[&["install", "--yes", "--no-install-recommends"], packages].concat())
}
