//! `cargo xtask bench`: the training benchmark, beside PyTorch where that is installed, and beside other frameworks on request.
//!
//! Six training workloads (`benches/training` has ours, `xtask/bench/torch_train.py` the same six in PyTorch, `xtask/peers`
//! in candle and burn), each in a process of its own, ours and the peers' in turn, so that all see the same machine at
//! nearly the same time.

use crate::process::{self, Result, cargo, root};
use crate::setup;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;

const WORKLOADS: [&str; 6] = ["seed", "mlp256", "mlp1024", "lenet", "cnn", "gpt"];
const THREADS: &str = "2";
/// What PyTorch does by default, and what else it can do.
const TORCH: [(&str, &[&str]); 3] =
    [("PyTorch", &[]), ("PyTorch, fused Adam", &["--fused-adam"]), ("torch.compile", &["--compile"])];
/// Programs of the workspace `xtask/peers`.
const RUST: [&str; 2] = ["candle", "burn"];

/// Time one training step of six networks, beside PyTorch where it is installed
///
/// PyTorch is looked for in the interpreter that CONSORT_PYTHON names, else in python3. All sides use two threads.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Only this workload (may be repeated)
    #[arg(long, value_name = "WORKLOAD", value_parser = clap::builder::PossibleValuesParser::new(WORKLOADS))]
    only: Vec<String>,

    /// Beside whom: PyTorch as it comes, or also with its fused Adam, compiled, and candle and burn, which are built first
    #[arg(long, value_name = "WHO", default_value = "pytorch", value_parser = ["pytorch", "all", "none"])]
    peers: String,

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

/// One workload's result; a ratio is our time by another's.
#[derive(Serialize)]
struct Row {
    name: &'static str,
    ours_us: f64,
    torch_us: Option<f64>,
    ratio: Option<f64>,
    best_peer: Option<&'static str>,
    best_peer_us: Option<f64>,
    best_ratio: Option<f64>,
    peers_us: BTreeMap<&'static str, f64>,
    ours_peak_bytes: Option<u64>,
    #[serde(skip)]
    ours: Vec<f64>,
    #[serde(skip)]
    torch: Vec<f64>,
}

/// A program that trains the workload it is given the name of.
struct Peer {
    name: &'static str,
    program: PathBuf,
    args: Vec<String>,
}

pub(crate) fn run(args: &Args) -> Result {
    let ours = process::build(&["--release", "-p", "training"])?;
    let peers = if args.quick { Vec::new() } else { peers(&args.peers)? };
    if !args.quick {
        warn_if_busy();
    }

    let rounds = if args.quick { 1 } else { args.rounds };
    let wanted = WORKLOADS.iter().filter(|name| args.only.is_empty() || args.only.iter().any(|only| only == *name));
    let mut rows: Vec<Row> = Vec::new();
    for name in wanted {
        let mut our_runs = Vec::new();
        let mut peer_runs: Vec<(&str, Vec<Run>)> = peers.iter().map(|peer| (peer.name, Vec::new())).collect();
        for round in 1..=rounds {
            eprintln!("{name}: round {round} of {rounds}");
            our_runs.push(measure(Command::new(&ours).args(args.quick.then_some("--quick")).arg(name))?);
            for (peer, (_, runs)) in peers.iter().zip(&mut peer_runs) {
                runs.push(measure(Command::new(&peer.program).args(&peer.args).arg(name))?);
            }
        }
        rows.push(Row::new(name, &our_runs, &peer_runs));
    }

    print_table(&rows);
    if args.peers == "all" && !args.quick {
        print_peers(&rows);
    }
    if args.json {
        println!("{}", serde_json::json!({ "workloads": rows }));
    }
    Ok(())
}

/// Those asked for; candle and burn are built.
fn peers(who: &str) -> Result<Vec<Peer>> {
    let mut peers = Vec::new();
    if who == "none" {
        return Ok(peers);
    }
    if setup::has_torch() {
        let script = root().join("xtask/bench/torch_train.py").display().to_string();
        let forms = if who == "all" { &TORCH[..] } else { &TORCH[..1] };
        peers.extend(forms.iter().map(|&(name, flags)| Peer {
            name,
            program: setup::python().into(),
            args: std::iter::once(script.clone()).chain(flags.iter().map(|flag| flag.to_string())).collect(),
        }));
    } else {
        eprintln!("{} has no PyTorch: times without it follow", setup::python());
    }
    if who == "all" {
        let target = root().join("target/peers");
        eprintln!("building candle and burn, which takes minutes the first time");
        let mut build =
            cargo(["build", "--release", "--locked", "--manifest-path", "xtask/peers/Cargo.toml", "--target-dir"]);
        process::run(build.arg(&target).env("RUSTFLAGS", "-C target-cpu=native"))?;
        let program = |name: &str| target.join("release").join(format!("peers-{name}{}", std::env::consts::EXE_SUFFIX));
        peers.extend(RUST.map(|name| Peer { name, program: program(name), args: Vec::new() }));
    }
    Ok(peers)
}

impl Row {
    fn new(name: &'static str, our_runs: &[Run], peer_runs: &[(&'static str, Vec<Run>)]) -> Self {
        let times = |runs: &[Run]| {
            let mut times: Vec<f64> = runs.iter().map(|run| run.us_per_step).collect();
            times.sort_by(f64::total_cmp);
            times
        };
        let median = |times: &[f64]| times.get(times.len() / 2).copied();
        let ours = times(our_runs);
        let ours_us = median(&ours).unwrap_or(f64::NAN);
        let peers_us: BTreeMap<&str, f64> =
            peer_runs.iter().filter_map(|(name, runs)| Some((*name, median(&times(runs))?))).collect();
        let torch =
            peer_runs.iter().find(|(name, _)| *name == TORCH[0].0).map_or_else(Vec::new, |(_, runs)| times(runs));
        let torch_us = median(&torch);
        let best = peers_us.iter().min_by(|a, b| a.1.total_cmp(b.1));
        Self {
            name,
            ours_us,
            torch_us,
            ratio: torch_us.map(|us| ours_us / us),
            best_peer: best.map(|(name, _)| *name),
            best_peer_us: best.map(|(_, us)| *us),
            best_ratio: best.map(|(_, us)| ours_us / us),
            ours_peak_bytes: our_runs.iter().filter_map(|run| run.peak_bytes).max(),
            peers_us,
            ours,
            torch,
        }
    }
}

/// Runs one side of one workload; the last line it prints is its result.
fn measure(command: &mut Command) -> Result<Run> {
    for variable in ["RAYON_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"] {
        command.env(variable, THREADS);
    }
    // Programs that ask the system for memory at every op keep it with these: the peers' best setting.
    command.env("MALLOC_MMAP_THRESHOLD_", "4294967296").env("MALLOC_TRIM_THRESHOLD_", "17179869184");
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

/// Every peer's median, and our time by the best of them.
fn print_peers(rows: &[Row]) {
    let names: Vec<&str> = TORCH.iter().map(|&(name, _)| name).chain(RUST).collect();
    println!("\nmicroseconds per step: the medians; ratio = ours / the best peer\n");
    print!("{:<8} {:>9}", "", "consort");
    names.iter().for_each(|name| print!(" {name:>19}"));
    println!(" {:>6}", "ratio");
    for row in rows {
        print!("{:<8} {:>9.0}", row.name, row.ours_us);
        for name in &names {
            print!(" {:>19}", row.peers_us.get(name).map_or("-".into(), |us| format!("{us:.0}")));
        }
        println!(" {:>6}", row.best_ratio.map_or("-".into(), |ratio| format!("{ratio:.2}")));
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
    fn a_row_has_the_medians_and_their_ratios() {
        let peers = [("PyTorch", runs(&[50.0, 40.0, 10.0])), ("burn", runs(&[25.0]))];
        let json = serde_json::json!(Row::new("seed", &runs(&[30.0, 10.0, 20.0]), &peers));
        let expected = serde_json::json!({
            "name": "seed", "ours_us": 20.0, "torch_us": 40.0, "ratio": 0.5, "ours_peak_bytes": 30,
            "best_peer": "burn", "best_peer_us": 25.0, "best_ratio": 0.8, "peers_us": { "PyTorch": 40.0, "burn": 25.0 },
        });
        assert_eq!(json, expected);
    }

    #[test]
    fn without_peers_there_is_no_ratio() {
        let json = serde_json::json!(Row::new("seed", &runs(&[30.0]), &[]));
        assert!(json["torch_us"].is_null() && json["ratio"].is_null() && json["best_peer"].is_null(), "{json}");
    }
}
