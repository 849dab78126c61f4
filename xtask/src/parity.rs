//! `cargo xtask parity`: the package `parity`, built and run with every backend.

use crate::process::{Result, cargo};
use std::ffi::OsString;
use std::process::{ExitCode, Stdio};

/// Hold every device to the ops' contracts; `parity --help` says more
#[derive(clap::Args)]
#[command(disable_help_flag = true)]
pub(crate) struct Args {
    /// What the program is given
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "OPTIONS")]
    options: Vec<OsString>,
}

/// How cargo runs the program. Not in release: integer overflow in a kernel is a panic, which the suite reports.
pub(crate) const PARITY: [&str; 5] = ["run", "--quiet", "--package=parity", "--features=cuda,wgpu", "--"];

/// The same with the emulator, where CUDA devices are asked for.
const EMULATED: [&str; 5] = ["run", "--quiet", "--package=parity", "--features=emulator,wgpu", "--"];

/// The program's own exit status: 1 for failures, 2 for a request that cannot be met.
pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let asks_for_cuda = args.options.iter().any(|option| option.to_string_lossy().contains("cuda"));
    let mut command = cargo(if asks_for_cuda { EMULATED } else { PARITY });
    let status = command.args(&args.options).stdin(Stdio::null()).status();
    let code = status.map_err(|e| format!("cargo did not start: {e}"))?.code();
    Ok(code.and_then(|code| u8::try_from(code).ok()).map_or(ExitCode::FAILURE, ExitCode::from))
}

#[cfg(test)]
mod tests {
    use crate::Command;
    use clap::Parser;

    #[test]
    fn every_option_is_the_programs_own() {
        let given = ["--help", "--device", "cpu", "--op=conv*", "-x", "--replay", "exp f32 sliced 0"];
        let command = Command::try_parse_from(["xtask", "parity"].into_iter().chain(given));
        let Ok(Command::Parity(args)) = command else { panic!("parity takes whatever it is given") };
        assert_eq!(args.options, given);
    }
}
