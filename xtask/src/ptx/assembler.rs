//! NVIDIA's ptxas: where it is, how it comes here, what it says.

use crate::process::{self, Result};
use crate::ptx::usage::{self, Usage};
use crate::setup;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The compute capabilities to assemble for: Turing, Ampere, Hopper.
pub(super) const TARGETS: [u32; 3] = [75, 80, 90];
/// The package on PyPI that holds the program, and where in it.
const PACKAGE: &str = "nvidia-cuda-nvcc==13.0.88";
const IN_PACKAGE: &str = "nvidia/cu13/bin/ptxas";
/// Where the package is unpacked.
const FOLDER: &str = "target/ptxas";

/// The program.
pub(super) struct Assembler(PathBuf);

impl Assembler {
    /// The program that CONSORT_PTXAS names, else that on the PATH, else that below target/, which `install` puts there.
    pub(super) fn find_or_install(install: bool) -> Result<Option<Self>> {
        if let Some(path) = std::env::var_os("CONSORT_PTXAS").filter(|path| !path.is_empty()) {
            let named = Self(path.into());
            return if named.works() {
                Ok(Some(named))
            } else {
                Err(format!("CONSORT_PTXAS does not run: {}", named.0.display()).into())
            };
        }
        let installed = || Self(process::root().join(FOLDER).join(IN_PACKAGE));
        let found = [Self("ptxas".into()), installed()].into_iter().find(Self::works);
        if found.is_some() || !install {
            return Ok(found);
        }
        download()?;
        let installed = installed();
        if installed.works() {
            Ok(Some(installed))
        } else {
            Err(format!("{PACKAGE} has no {IN_PACKAGE} that runs").into())
        }
    }

    fn works(&self) -> bool {
        process::succeeds(Command::new(&self.0).arg("--version"))
    }

    /// The line that names the release.
    pub(super) fn version(&self) -> Result<String> {
        let output = Command::new(&self.0).arg("--version").output()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        Ok(text.lines().find(|line| line.contains("release")).unwrap_or("ptxas of unknown release").to_string())
    }

    /// What each entry of a text needs at most, for the target that it names and each of [`TARGETS`] above.
    pub(super) fn assemble(&self, path: &Path) -> Result<Vec<(String, Usage)>> {
        let text = std::fs::read_to_string(path)?;
        let lowest = usage::target(&text).ok_or_else(|| format!("{} names no target", path.display()))?;
        let above = TARGETS.into_iter().filter(|&target| target > lowest);
        let mut found = Vec::new();
        for target in [lowest].into_iter().chain(above) {
            let mut command = Command::new(&self.0);
            command.args(["--verbose", "--warn-on-spills", &format!("--gpu-name=sm_{target}"), "--output-file"]);
            let output = command.arg("/dev/null").arg(path).output()?;
            let said = String::from_utf8_lossy(&output.stderr);
            if !output.status.success() {
                return Err(format!("{} is refused for sm_{target}: {}", path.display(), said.trim()).into());
            }
            found.extend(usage::parse(&said).map_err(|e| format!("{} for sm_{target}: {e}", path.display()))?);
        }
        Ok(found)
    }
}

/// Unpacks the package: nothing is installed into the system's Python.
fn download() -> Result {
    let python = setup::python();
    if !process::succeeds(Command::new(&python).args(["-m", "pip", "--version"])) {
        setup::install(&["python3", "python3-pip"])?;
    }
    let folder = process::root().join(FOLDER);
    let mut pip = Command::new(&python);
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--upgrade"]);
    // Debian's pip wants to be told, even where the target is a folder of ours.
    pip.env("PIP_BREAK_SYSTEM_PACKAGES", "1").env("PIP_ROOT_USER_ACTION", "ignore");
    process::run(pip.arg("--target").arg(folder).arg(PACKAGE))
}
