//! Running other programs: each command is printed first, and one that fails is an error.

use serde::Deserialize;
use std::error::Error;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What every command of xtask returns.
pub(crate) type Result<T = ()> = std::result::Result<T, Box<dyn Error>>;

/// The workspace's root folder.
pub(crate) fn root() -> &'static Path {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here)
}

/// The cargo that started us, to be run in the workspace's root.
pub(crate) fn cargo<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(args).current_dir(root());
    // Without it Mesa's Vulkan complains on stderr.
    if std::env::var_os("XDG_RUNTIME_DIR").is_none() {
        command.env("XDG_RUNTIME_DIR", std::env::temp_dir());
    }
    command
}

/// Prints the command, runs it with our own output streams, and fails if it does.
pub(crate) fn run(command: &mut Command) -> Result {
    let line = display(command);
    eprintln!("$ {line}");
    let status = command.stdin(Stdio::null()).status().map_err(|e| format!("`{line}` did not start: {e}"))?;
    if status.success() { Ok(()) } else { Err(format!("`{line}` failed: {status}").into()) }
}

/// The command's standard output; its standard error stays visible.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let line = display(command);
    let output = command
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .map_err(|e| format!("`{line}` did not start: {e}"))?;
    if !output.status.success() {
        return Err(format!("`{line}` failed: {}", output.status).into());
    }
    Ok(String::from_utf8(output.stdout)?)
}

/// Builds a program with cargo and says where it is.
pub(crate) fn build(options: &[&str]) -> Result<PathBuf> {
    #[derive(Deserialize)]
    struct Message {
        executable: Option<PathBuf>,
    }
    eprintln!("$ cargo build {}", options.join(" "));
    let format = ["--message-format", "json-render-diagnostics"];
    let messages = output(&mut cargo([&["build"], options, &format].concat()))?;
    let mut built = messages.lines().filter_map(|line| serde_json::from_str::<Message>(line).ok()?.executable);
    built.next_back().ok_or_else(|| format!("`cargo build {}` built no program", options.join(" ")).into())
}

/// Whether the command runs and succeeds; what it prints is dropped.
pub(crate) fn succeeds(command: &mut Command) -> bool {
    let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    quiet.status().is_ok_and(|status| status.success())
}

/// Whether this run is part of continuous integration.
pub(crate) fn in_ci() -> bool {
    std::env::var("CI").is_ok_and(|value| !matches!(value.as_str(), "" | "0" | "false"))
}

fn display(command: &Command) -> String {
    let program = Path::new(command.get_program());
    let program = program.file_stem().unwrap_or(program.as_os_str()).to_string_lossy();
    command.get_args().fold(program.into_owned(), |line, arg| line + " " + &arg.to_string_lossy())
}
