//! The `consort` command: what this machine offers.

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

fn main() -> Result<(), serde_json::Error> {
    match Arguments::parse().command {
        Command::Devices { json } => {
            let info = device::version_info();
            if json {
                println!("{}", serde_json::to_string_pretty(&info)?);
            } else {
                println!("{info}");
            }
        }
    }
    Ok(())
}
