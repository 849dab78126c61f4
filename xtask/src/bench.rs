//! `cargo xtask bench`: the training benchmark, beside PyTorch where that is installed.
//!
//! Six training workloads (`benches/training` has ours, `xtask/bench/torch_train.py` the same six in PyTorch), each in
//! a process of its own, ours and PyTorch's in turn, so that both see the same machine at nearly the same time.

use crate::process::{self, Result, root};
use crate::setup;
use serde::{Deserialize, Serialize};
use std::process::Command;

const WORKLOADS: [&str; 6] = ["seed", "mlp256", "mlp1024", "lenet", "cnn", "gpt"];
const THREADS: &str = "2";

/// Time one training step of six networks, beside PyTorch where it is installed
///
/// PyTorch is looked for in the interpreter that CONSORT_PYTHON names, else in python3. Both sides use two threads.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Only this workload (may be repeated)
    #[arg(long, value_name = "WORKLOAD", value_parser = clap::builder::PossibleValuesParser::new(WORKLOADS))]
    only: Vec<String>,

    /// How many times each side runs; the result is the median
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,

    /// One step of ours each, to see that they run
    #[arg(long)]
    quick: bool,

    /// End with one line of JSON
    #[arg(long)]
    json: bool,
}

/// What each side prints about one run of a workload.
#[derive(Deserialize)]
struct Run {
    us_per_step: f64,
    peak_bytes: Option<u64>,
}

/// One workload's result; the ratio is our time by PyTorch's.
#[derive(Serialize)]
struct Row {
    name: &'static str,
    ours_us: f64,
    torch_us: Option<f64>,
    ratio: Option<f64>,
    ours_peak_bytes: Option<u64>,
    #[serde(skip)]
    ours: Vec<f64>,
    #[serde(skip)]
    torch: Vec<f64>,
}

pub(crate) fn run(args: &Args) -> Result {
    let ours = process::build(&["--release", "-p", "training"])?;
    let compare = !args.quick && setup::has_torch();
    if !args.quick {
        if !compare {
            eprintln!("{} has no PyTorch: only our times follow", setup::python());
        }
        warn_if_busy();
    }

    let rounds = if args.quick { 1 } else { args.rounds };
    let wanted = WORKLOADS.iter().filter(|name| args.only.is_empty() || args.only.iter().any(|only| only == *name));
    let mut rows: Vec<Row> = Vec::new();
    for name in wanted {
        let (mut our_runs, mut torch_runs) = (Vec::new(), Vec::new());
        for round in 1..=rounds {
            eprintln!("{name}: round {round} of {rounds}");
            our_runs.push(measure(Command::new(&ours).args(args.quick.then_some("--quick")).arg(name))?);
            if compare {
                let script = root().join("xtask/bench/torch_train.py");
                torch_runs.push(measure(Command::new(setup::python()).arg(script).arg(name))?);
            }
        }
        rows.push(Row::new(name, &our_runs, &torch_runs));
    }

    print_table(&rows);
    if args.json {
        println!("{}", serde_json::json!({ "workloads": rows }));
    }
    Ok(())
}

impl Row {
    fn new(name: &'static str, our_runs: &[Run], torch_runs: &[Run]) -> Self {
        let times = |runs: &[Run]| {
            let mut times: Vec<f64> = runs.iter().map(|run| run.us_per_step).collect();
            times.sort_by(f64::total_cmp);
            times
        };
        let median = |times: &[f64]| times.get(times.len() / 2).copied();
        let (ours, torch) = (times(our_runs), times(torch_runs));
        let ours_us = median(&ours).unwrap_or(f64::NAN);
        let torch_us = median(&torch);
        let ratio = torch_us.map(|torch_us| ours_us / torch_us);
        let ours_peak_bytes = our_runs.iter().filter_map(|run| run.peak_bytes).max();
        Self { name, ours_us, torch_us, ratio, ours_peak_bytes, ours, torch }
    }
}

/// Runs one side of one workload; the last line it prints is its result.
fn measure(command: &mut Command) -> Result<Run> {
    for variable in ["RAYON_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"] {
        command.env(variable, THREADS);
    }
    let text = process::output(command)?;
    let line = text.lines().last().unwrap_or_default();
    serde_json::from_str(line).map_err(|e| format!("expected a line of JSON, got `{line}`: {e}").into())
}

fn print_table(rows: &[Row]) {
    let cell = |times: &[f64]| match times {
        [] => "-".to_owned(),
        [one] => format!("{one:.0}"),
        [least, .., most] => format!("{:.0} ({least:.0}-{most:.0})", times[times.len() / 2]),
    };
    println!("microseconds per step: the median of the rounds, the least and the most; ratio = ours / PyTorch\n");
    println!("{:<8} {:>24} {:>24} {:>6} {:>10}", "", "consort", "PyTorch", "ratio", "peak MiB");
    for row in rows {
        let ratio = row.ratio.map_or("-".into(), |ratio| format!("{ratio:.2}"));
        let peak = row.ours_peak_bytes.map_or("-".into(), |bytes| format!("{:.1}", bytes as f64 / 1048576.0));
        println!("{:<8} {:>24} {:>24} {ratio:>6} {peak:>10}", row.name, cell(&row.ours), cell(&row.torch));
    }
}

/// Says so where other programs use the processors now: times are rough then.
fn warn_if_busy() {
    let busy_and_all = || {
        let stat = std::fs::read_to_string("/proc/stat").ok()?;
        let ticks: Vec<f64> = stat.lines().next()?.split_whitespace().skip(1).map_while(|t| t.parse().ok()).collect();
        let all: f64 = ticks.iter().take(8).sum();
        Some((all - ticks.get(3)? - ticks.get(4)?, all))
    };
    let before = busy_and_all();
    std::thread::sleep(std::time::Duration::from_secs(1));
    if let (Some((busy, all)), Some((busy_now, all_now))) = (before, busy_and_all()) {
        let percent = 100.0 * (busy_now - busy) / (all_now - all).max(1.0);
        if percent > 10.0 {
            eprintln!("other programs keep this machine {percent:.0} % busy: the times will be rough");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Row, Run};

    fn runs(times: &[f64]) -> Vec<Run> {
        times.iter().map(|&us_per_step| Run { us_per_step, peak_bytes: Some(us_per_step as u64) }).collect()
    }

    #[test]
    fn a_row_has_the_medians_and_their_ratio() {
        let row = Row::new("seed", &runs(&[30.0, 10.0, 20.0]), &runs(&[50.0, 40.0, 10.0]));
        let json = serde_json::json!(row);
        let expected = serde_json::json!({
            "name": "seed", "ours_us": 20.0, "torch_us": 40.0, "ratio": 0.5, "ours_peak_bytes": 30,
        });
        assert_eq!(json, expected);
    }

    #[test]
    fn without_pytorch_there_is_no_ratio() {
        let json = serde_json::json!(Row::new("seed", &runs(&[30.0]), &[]));
        assert!(json["torch_us"].is_null() && json["ratio"].is_null(), "{json}");
    }
}
