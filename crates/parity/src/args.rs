//! What the command takes.

use std::path::PathBuf;

use clap::Parser;
use clap::builder::PossibleValuesParser;
use conformance::suite::Options;
use consort::Deferral;

use crate::devices::REQUIREMENTS;

/// Hold every device to the ops' contracts
///
/// Generated cases run on each device and on a naive reference in f64: values, derivatives, second derivatives,
/// decompositions, error texts. Exits with 0 when all is well, 1 for failures, 2 for a request that cannot be met.
#[derive(Parser)]
#[command(name = "cargo xtask parity", bin_name = "cargo xtask parity")]
pub(crate) struct Args {
    /// Which devices: cpu, cuda:0, cuda-emulated:0, wgpu:1, …; all that are found when none is named
    #[arg(long, value_name = "DEVICE", value_delimiter = ',')]
    pub(crate) device: Vec<String>,

    /// Only ops of this name, or of a pattern with `*`
    #[arg(long, value_name = "PATTERN")]
    pub(crate) op: Option<String>,

    /// Fail unless there is such a device, and run it; `cuda` may be emulated
    #[arg(long, value_name = "DEVICE", value_delimiter = ',', value_parser = PossibleValuesParser::new(REQUIREMENTS))]
    pub(crate) require: Vec<String>,

    /// About how many cases per device; every op, dtype and layout gets at least one
    #[arg(long, value_name = "N", default_value_t = Options::default().cases, value_parser = parse_positive)]
    pub(crate) cases: usize,

    /// Where the cases follow from
    #[arg(long, value_name = "S", default_value_t = 0)]
    pub(crate) seed: u64,

    /// How many threads run cases; as many as there are processors when not said
    #[arg(long, value_name = "N", value_parser = parse_positive)]
    pub(crate) threads: Option<usize>,

    /// When elementwise work is put off; `always` does so at the cases' sizes, which are small
    #[arg(long, value_name = "WHEN", default_value = "worthwhile", value_parser = PossibleValuesParser::new(["never", "worthwhile", "always"]))]
    pub(crate) deferral: String,

    /// End with one line of JSON
    #[arg(long)]
    pub(crate) json: bool,

    /// Where report.json and report.html go
    #[arg(long, value_name = "FOLDER", default_value = "target/parity")]
    pub(crate) report: PathBuf,

    /// Rewrite docs/parity.md and docs/ops.md
    #[arg(long, conflicts_with_all = ["op", "check", "list", "replay", "saboteur"])]
    pub(crate) bless: bool,

    /// Hold docs/parity.md against the run
    #[arg(long, conflicts_with_all = ["op", "list", "replay", "saboteur"])]
    pub(crate) check: bool,

    /// Hold docs/ops.md against the contracts; run nothing
    #[arg(long, conflicts_with_all = ["list", "replay", "saboteur"])]
    pub(crate) docs: bool,

    /// Name the ops; run nothing
    #[arg(long)]
    pub(crate) list: bool,

    /// Run one case again, as a failure names it
    #[arg(long, value_name = "CASE", conflicts_with_all = ["op", "list", "saboteur"])]
    pub(crate) replay: Option<String>,

    /// Test the suite itself: each of a dozen faults built into a device must turn it red
    #[arg(long)]
    pub(crate) saboteur: bool,
}

fn parse_positive(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) => Err("must be at least 1".into()),
        Ok(n) => Ok(n),
        Err(e) => Err(format!("{e}")),
    }
}

impl Args {
    /// When elementwise work is put off.
    pub(crate) fn deferral(&self) -> Deferral {
        match &*self.deferral {
            "never" => Deferral::Never,
            "always" => Deferral::Always,
            _ => Deferral::Worthwhile,
        }
    }

    /// What the suite is to run.
    pub(crate) fn options(&self) -> Options {
        let default = Options::default();
        let threads = self.threads.unwrap_or(default.threads);
        Options { cases: self.cases, seed: self.seed, pattern: self.op.clone(), threads, ..default }
    }
}
