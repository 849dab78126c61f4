//! The workspace's packages, from `cargo metadata`.

use crate::process::{self, Result};
use serde::Deserialize;
use std::path::{Path, PathBuf};

/// One package of the workspace.
#[derive(Debug, Deserialize)]
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) description: Option<String>,
    pub(crate) manifest_path: PathBuf,
    pub(crate) dependencies: Vec<Dependency>,
    pub(crate) targets: Vec<Target>,
}

/// One line of a package's dependencies.
#[derive(Debug, Deserialize)]
pub(crate) struct Dependency {
    pub(crate) name: String,
    /// Nothing for a normal dependency, else "dev" or "build".
    pub(crate) kind: Option<String>,
    /// Set for a dependency on a package of this workspace.
    pub(crate) path: Option<PathBuf>,
}

/// Something that a package builds.
#[derive(Debug, Deserialize)]
pub(crate) struct Target {
    pub(crate) kind: Vec<String>,
}

impl Package {
    /// The package's folder, relative to the root and with forward slashes.
    pub(crate) fn folder(&self) -> String {
        let folder = self.manifest_path.parent().unwrap_or(Path::new(""));
        relative(folder)
    }

    /// Whether the package has a library, and so doc tests.
    pub(crate) fn has_library(&self) -> bool {
        let is_library = |kind: &String| matches!(kind.as_str(), "lib" | "rlib" | "proc-macro");
        self.targets.iter().any(|target| target.kind.iter().any(is_library))
    }
}

/// All packages of the workspace, by name.
pub(crate) fn packages() -> Result<Vec<Package>> {
    #[derive(Deserialize)]
    struct Metadata {
        packages: Vec<Package>,
    }
    let text = process::output(&mut process::cargo(["metadata", "--no-deps", "--format-version", "1"]))?;
    let mut packages = serde_json::from_str::<Metadata>(&text)?.packages;
    packages.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(packages)
}

/// A path below the root, relative to it and with forward slashes.
pub(crate) fn relative(path: &Path) -> String {
    let path = path.strip_prefix(process::root()).unwrap_or(path);
    path.to_string_lossy().replace('\\', "/")
}
