//! `cargo xtask gpu-check`: a program for a machine with a GPU, which needs nothing there but the driver.

use crate::process::{self, Result, root};
use std::path::Path;
use std::process::Command;

/// What is carried to the other machine, below the workspace's root.
const FOLDER: &str = "target/gpu-check";
/// The program's largest size.
const MAX_BYTES: u64 = 60 << 20;
/// What lies beside the program.
const SCRIPTS: [&str; 3] = ["xtask/gpu-check/run.sh", "xtask/gpu-check/torch_ops.py", "xtask/bench/torch_train.py"];

/// Build the program that checks and measures a GPU, and run it if this machine has one
///
/// target/gpu-check holds the program, scripts that time the same in PyTorch, and run.sh, which runs all of them: copy the
/// folder to a machine with an NVIDIA driver and run run.sh there. It takes less than six minutes and half a minute more for
/// PyTorch; its results are in results/results.md and results.json.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Only write the folder
    #[arg(long)]
    build: bool,

    /// What the program is given
    #[arg(last = true, value_name = "OPTIONS")]
    options: Vec<String>,
}

pub(crate) fn run(args: &Args) -> Result {
    let program = process::build(&["--profile", "portable", "-p", "gpu-check", "--features", "emulator"])?;
    let folder = root().join(FOLDER);
    write(&program, &folder)?;
    if args.build {
        return Ok(());
    }
    process::run(Command::new(folder.join("run.sh")).args(&args.options))
}

/// Fills the folder.
fn write(program: &Path, folder: &Path) -> Result {
    let len = std::fs::metadata(program)?.len();
    if len > MAX_BYTES {
        return Err(format!("the program is too large: {len} bytes, allowed {MAX_BYTES}").into());
    }
    std::fs::create_dir_all(folder)?;
    let paths = SCRIPTS.map(|script| root().join(script));
    for path in paths.iter().map(|path| path.as_path()).chain([program]) {
        let name = path.file_name().ok_or_else(|| format!("{} is not a file", path.display()))?;
        // A program that runs may not be overwritten, but replaced.
        let to = folder.join(name);
        if to.exists() {
            std::fs::remove_file(&to)?;
        }
        std::fs::copy(path, to)?;
    }
    println!(
        "{}: {:.1} MiB; copy it to a machine with a GPU and run run.sh there",
        folder.display(),
        len as f64 / 1048576.0
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_has_all_and_can_be_written_again() -> Result {
        let folder = tempfile::tempdir()?;
        let program = folder.path().join("program");
        std::fs::write(&program, "x")?;
        let to = folder.path().join("to");
        write(&program, &to)?;
        write(&program, &to)?;
        let mut names = std::fs::read_dir(&to)?.map(|e| Ok(e?.file_name())).collect::<Result<Vec<_>>>()?;
        names.sort();
        assert_eq!(names, ["program", "run.sh", "torch_ops.py", "torch_train.py"]);
        Ok(())
    }

    #[test]
    fn a_program_that_is_too_large_is_refused() -> Result {
        let folder = tempfile::tempdir()?;
        let program = folder.path().join("program");
        std::fs::File::create(&program)?.set_len(MAX_BYTES + 1)?;
        assert!(write(&program, &folder.path().join("to")).is_err_and(|e| e.to_string().contains("too large")));
        Ok(())
    }
}
