//! The `consort` command: what this machine offers.

use std::io::{ErrorKind, Write, stdout};

use clap::{Parser, Subcommand};
use consort::device;

/// Train neural networks in Rust on whatever hardware is there.
#[derive(Parser)]
#[command(name = "consort", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// List the devices found, their memory and drivers, and why others are missing.
    Devices {
        /// Print one JSON object.
        #[arg(long)]
        json: bool,
    },
}

fn main() -> Result<(), std::io::Error> {
    match Arguments::parse().command {
        Command::Devices { json } => {
            let info = device::version_info();
            let text = if json { serde_json::to_string_pretty(&info)? } else { info.to_string() };
            // That nobody reads on (`consort devices | head`) is no error.
            writeln!(stdout(), "{text}").or_else(|error| match error.kind() {
                ErrorKind::BrokenPipe => Ok(()),
                _ => Err(error),
            })
        }
    }
}
