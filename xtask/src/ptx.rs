//! `cargo xtask ptx`: NVIDIA's assembler takes every kernel, and none needs more of the machine than it may.

mod assembler;
mod budget;
mod skeletons;
mod usage;

use crate::process::{self, Result, cargo};
use assembler::{Assembler, TARGETS};
use budget::Budget;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Instant;
use usage::Usage;

/// Where the kernels' files are, and the table of what kernels may need.
const KERNELS: &str = "crates/backend-cuda/kernels";
const BUDGET: &str = "crates/backend-cuda/kernels/budget.json";
/// A form of a kernel with more texts than this is sampled: the longest are assembled, and one in sixteen of the others,
/// those whose fingerprint ends in 0, so that a new text changes nothing for the rest.
const MAX_PER_FORM: usize = 16;
const N_LONGEST: usize = 6;

/// Assemble the CUDA kernels with NVIDIA's ptxas and hold them to their budgets
///
/// A run of the suite on the emulator writes the kernels' texts; each is assembled for the target it names and for those
/// above. Registers, shared memory and spills are held to crates/backend-cuda/kernels/budget.json, and every file beside it
/// must be part of a text. ptxas is CONSORT_PTXAS, or on the PATH, or installed with --install (in continuous integration
/// without asking); where it is missing nothing is run, and that is said.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Write the table anew from what the kernels need now
    #[arg(long)]
    bless: bool,

    /// Where ptxas is missing, install it below target/ with pip
    #[arg(long)]
    install: bool,
}

pub(crate) fn run(args: &Args) -> Result {
    let Some(assembler) = Assembler::find_or_install(args.install || process::in_ci())? else {
        println!("ptx: not run: there is no ptxas; set CONSORT_PTXAS, or `cargo xtask ptx --install`");
        return Ok(());
    };
    println!("ptx: {}", assembler.version()?);
    let texts = texts()?;
    let chosen = chosen(&texts);
    let start = Instant::now();
    let used = assemble(&assembler, &chosen)?;
    let seconds = start.elapsed().as_secs_f64();
    println!(
        "ptx: {} of {} texts of {} kernels assembled for {} in {seconds:.1} s",
        chosen.len(),
        texts.len(),
        used.len(),
        TARGETS.map(|target| format!("sm_{target}")).join(", ")
    );

    let path = process::root().join(BUDGET);
    let mut budget = Budget::read(&path)?;
    if args.bless {
        budget.bless(&used);
        budget.write(&path)?;
        println!("ptx: {BUDGET} is written");
    }
    let uncovered = skeletons::breaches(&skeletons::read(&process::root().join(KERNELS))?, &chosen);
    let breaches = budget.breaches(&used);
    uncovered.iter().chain(&breaches).for_each(|breach| println!("  {breach}"));
    match (uncovered.len(), breaches.len()) {
        (0, 0) => Ok(()),
        (0, n) => Err(format!("{n} kernels break {BUDGET}; `cargo xtask ptx --bless` writes it anew").into()),
        (n, _) => Err(format!("{n} files of {KERNELS} are not seen; examples/texts.rs chooses what is run").into()),
    }
}

/// The text of every kernel that a run of the suite loads, in a folder of their own.
fn texts() -> Result<Vec<PathBuf>> {
    let folder = process::root().join("target/ptx/texts");
    if folder.exists() {
        std::fs::remove_dir_all(&folder)?;
    }
    let run = ["run", "--quiet", "--package=backend-cuda", "--features=emulator", "--example=texts", "--"];
    process::run(cargo(run).arg(&folder))?;
    let entries = std::fs::read_dir(&folder)?;
    let mut paths = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<PathBuf>>>()?;
    paths.sort();
    Ok(paths)
}

/// The kernel that a file is named after: what comes before the text's fingerprint.
fn kernel(path: &Path) -> String {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    stem.rsplit_once('-').map_or(stem.to_string(), |(name, _)| name.to_string())
}

/// What tells the forms of a kernel apart, for whole rows and for blocks, say.
type Form = [usize; 4];

/// Shared memory, barriers, how matrix units are fed, and the target.
fn form(path: &Path) -> Form {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let [shared, barriers, turned] = [".shared", "bar.sync", ".trans"].map(|part| text.matches(part).count());
    [shared, barriers, turned, usage::target(&text).unwrap_or(0) as usize]
}

/// A sample: all texts of a form that has few.
fn chosen(texts: &[PathBuf]) -> Vec<PathBuf> {
    let mut by_form: BTreeMap<(String, Form), Vec<&PathBuf>> = BTreeMap::new();
    texts.iter().for_each(|path| by_form.entry((kernel(path), form(path))).or_default().push(path));
    let length = |path: &PathBuf| std::fs::metadata(path).map_or(0, |file| file.len());
    let sample = |mut texts: Vec<&PathBuf>| {
        texts.sort_by_key(|path| std::cmp::Reverse(length(path)));
        let is_drawn = |path: &PathBuf| path.to_string_lossy().ends_with("0.ptx");
        let n_all = if texts.len() <= MAX_PER_FORM { MAX_PER_FORM } else { N_LONGEST };
        let drawn = texts.iter().skip(n_all).filter(|path| is_drawn(path)).map(|&path| path.clone());
        texts.iter().take(n_all).map(|&path| path.clone()).chain(drawn).collect::<Vec<_>>()
    };
    by_form.into_values().flat_map(sample).collect()
}

/// The most that each kernel needs, over its texts and the targets.
fn assemble(assembler: &Assembler, texts: &[PathBuf]) -> Result<BTreeMap<String, Usage>> {
    let (next, most, refused) = (AtomicUsize::new(0), Mutex::new(BTreeMap::<String, Usage>::new()), Mutex::new(vec![]));
    let work = || {
        while let Some(path) = texts.get(next.fetch_add(1, Relaxed)) {
            match assembler.assemble(path) {
                Ok(found) => {
                    let mut most = most.lock().expect("invariant: no thread panics");
                    found.into_iter().for_each(|(name, usage)| most.entry(name).or_default().raise_to(&usage));
                }
                Err(error) => refused.lock().expect("invariant: no thread panics").push(error.to_string()),
            }
        }
    };
    let n_threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| (0..n_threads).for_each(|_| drop(scope.spawn(work))));
    let refused = refused.into_inner()?;
    if refused.is_empty() { Ok(most.into_inner()?) } else { Err(refused.join("\n").into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_named_after_its_kernel() {
        assert_eq!(kernel(Path::new("target/ptx/texts/cube_f32-00ff.ptx")), "cube_f32");
    }

    #[test]
    fn a_sample_has_few_texts_of_each_kernel() {
        let names = (0..160).map(|i| format!("map-{i:03x}.ptx")).chain(["sort-1.ptx".into()]);
        let texts: Vec<PathBuf> = names.map(PathBuf::from).collect();
        let chosen = chosen(&texts);
        assert!(chosen.contains(&PathBuf::from("sort-1.ptx")));
        assert!((10..=10 + N_LONGEST + 1).contains(&chosen.len()), "{chosen:?}");
    }
}
