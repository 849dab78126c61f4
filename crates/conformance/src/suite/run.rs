//! Runs every subject over its dtypes and layouts on a device.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};
use tensor_core::{DType, Device};

use super::case::{Case, Subject, Trial};
use super::check::{CHECKS, Check, Verdict, rejected};
use super::deviations::{self, DEVIATIONS, Deviation};
use super::draw::Draw;
use super::input::{Layout, mixed};
use super::report::{DeviceReport, Failure, Row};
use super::{pattern, probe, subject};

/// What to run.
#[derive(Clone, Debug)]
pub struct Options {
    /// About how many cases; at least one per subject, dtype and layout.
    pub cases: usize,
    /// From which the cases follow.
    pub seed: u64,
    /// Only subjects whose name matches: a name, or a pattern with `*`.
    pub pattern: Option<String>,
    /// How many threads run cases.
    pub threads: usize,
    /// Where the backend may differ; one from outside brings its own table.
    pub deviations: &'static [Deviation],
    /// Whether one failure is enough: nothing new starts after it.
    pub stop_at_first: bool,
    /// When nothing new starts any more; the progress tells how far it came.
    pub deadline: Option<Instant>,
}

impl Default for Options {
    fn default() -> Self {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            cases: 20_000,
            seed: 0,
            pattern: None,
            threads,
            deviations: DEVIATIONS,
            stop_at_first: false,
            deadline: None,
        }
    }
}

/// Numbers that a case is drawn from.
const N_CHOICES: usize = 40;

/// One subject, dtype and layout.
struct Cell<'a> {
    subject: &'a Subject,
    dtype: DType,
    layout: Layout,
}

/// Runs the suite on a device. `progress` is told how many cases of how many are done.
///
/// # Errors
/// If no subject's name matches the pattern.
pub fn run(
    device: &Device,
    options: &Options,
    progress: impl Fn(usize, usize) + Sync,
) -> std::result::Result<DeviceReport, String> {
    let subjects = matching(options.pattern.as_deref())?;
    let cells: Vec<Cell<'_>> = subjects.iter().flat_map(|s| cells(s)).collect();
    let per_cell = options.cases.div_ceil(cells.len().max(1)).max(1);
    let total = per_cell * cells.len();
    let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let report = Mutex::new(DeviceReport::new(device));
    let is_enough = || {
        let is_late = options.deadline.is_some_and(|deadline| Instant::now() >= deadline);
        is_late || options.stop_at_first && !report.lock().unwrap_or_else(PoisonError::into_inner).failures.is_empty()
    };
    let worker = || {
        while let Some(cell) = cells.get(next.fetch_add(1, Ordering::Relaxed)).filter(|_| !is_enough()) {
            let (row, failure) = run_cell(device, cell, per_cell, options);
            let mut report = report.lock().unwrap_or_else(PoisonError::into_inner);
            report.add(row, failure);
            progress(done.fetch_add(per_cell, Ordering::Relaxed) + per_cell, total);
        }
    };
    std::thread::scope(|scope| (0..options.threads.max(1)).for_each(|_| drop(scope.spawn(worker))));
    let mut report = report.into_inner().unwrap_or_else(PoisonError::into_inner);
    report.finish(device, options.deviations);
    Ok(report)
}

/// Runs one case again, as it was written down.
///
/// # Errors
/// If there is no such subject.
pub fn replay(device: &Device, case: &Case) -> Result<(Row, Option<Failure>), String> {
    let subject = subject::named(&case.subject).ok_or_else(|| format!("no op is called {:?}", case.subject))?;
    let mut row = Row::new(subject.name, case.dtype);
    let failure = judge(device, subject, case, DEVIATIONS, &mut row).err();
    Ok((row, failure))
}

/// The subjects whose names fit a pattern, or one of several with commas between them.
///
/// # Errors
/// If there is none.
pub fn matching(pattern: Option<&str>) -> Result<Vec<&'static Subject>, String> {
    let Some(pattern) = pattern else { return Ok(subject::all().iter().collect()) };
    let is_match = |s: &&Subject| pattern.split(',').any(|pattern| pattern::is_like(pattern, s.name));
    let found: Vec<&Subject> = subject::all().iter().filter(is_match).collect();
    if found.is_empty() { Err(format!("no op matches {pattern:?}; `--list` names them")) } else { Ok(found) }
}

/// The dtypes that core accepts for the simplest call.
pub(super) fn dtypes(subject: &Subject) -> impl Iterator<Item = DType> {
    DType::ALL.into_iter().filter(|&dtype| {
        let call = (subject.draw)(&mut Draw::new(&[]), dtype);
        !probe::ops(&call, dtype).is_err_and(|error| error.is_dtype())
    })
}

/// Those in every layout.
fn cells(subject: &Subject) -> Vec<Cell<'_>> {
    let in_layouts = |dtype| {
        // Without inputs there is no layout.
        let n = if (subject.draw)(&mut Draw::new(&[]), dtype).inputs.is_empty() { 1 } else { Layout::ALL.len() };
        Layout::ALL.into_iter().take(n).map(move |layout| Cell { subject, dtype, layout })
    };
    dtypes(subject).flat_map(in_layouts).collect()
}

/// Draws cases of a cell until one fails, which is shrunk.
fn run_cell(device: &Device, cell: &Cell<'_>, n_cases: usize, options: &Options) -> (Row, Option<Failure>) {
    let name = cell.subject.name.bytes().fold(cell.dtype as u64 * 8 + cell.layout as u64, |h, b| mixed(h, b.into()));
    let words: Vec<u8> = (0..4).flat_map(|i| mixed(options.seed ^ name, i).to_le_bytes()).collect();
    let config =
        Config { cases: n_cases as u32, failure_persistence: None, max_shrink_iters: 2000, ..Config::default() };
    let mut runner = TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &words));
    let row = RefCell::new(Row::new(cell.subject.name, cell.dtype));
    let failure = RefCell::new(None);
    let stream = proptest::collection::vec(proptest::num::u16::ANY, N_CHOICES);
    let result = runner.run(&stream, |choices| {
        let case = Case { subject: cell.subject.name.to_string(), dtype: cell.dtype, layout: cell.layout, choices };
        // Once one has failed, the others only shrink it.
        let is_shrinking = failure.borrow().is_some();
        let mut scratch = Row::new(cell.subject.name, cell.dtype);
        let seen = if is_shrinking { &mut scratch } else { &mut *row.borrow_mut() };
        judge(device, cell.subject, &case, options.deviations, seen).map_err(|found| {
            *failure.borrow_mut() = Some(found);
            TestCaseError::fail("a check failed")
        })
    });
    let (failure, mut row) = (failure.into_inner(), row.into_inner());
    row.not_run += n_cases.saturating_sub(row.cases);
    row.cases = row.cases.max(n_cases);
    debug_assert!(matches!(&result, Ok(()) | Err(TestError::Fail(..))), "nothing is rejected");
    (row, failure)
}

/// Every check of one case. Calls that core rejects are judged by their error.
fn judge(device: &Device, subject: &Subject, case: &Case, table: &[Deviation], row: &mut Row) -> Result<(), Failure> {
    row.cases += 1;
    let trial = Trial::new(subject, case);
    let used = trial.as_ref().map_or(N_CHOICES, |trial| trial.n_choices).min(case.choices.len());
    let case = &Case { choices: case.choices[..used].to_vec(), ..case.clone() };
    let mut is_declined = false;
    let result = match &trial {
        Err(error) => rejected(subject, case, device, error).map_err(|message| ("error", message)),
        Ok(trial) => CHECKS.iter().try_for_each(|check| match guarded(check, trial, device) {
            Verdict::Passed(agreement) => {
                row.see(check.is_gradient, &agreement, case);
                Ok(())
            }
            Verdict::Inapplicable => Ok(()),
            Verdict::Unsupported(message) => {
                is_declined = true;
                Err((check.name, message))
            }
            Verdict::Failed(message) => Err((check.name, message)),
        }),
    };
    let Err((check, message)) = result else {
        row.passed += 1;
        return Ok(());
    };
    if deviations::of(table, subject.name, case.dtype, device.info()).is_some() {
        *(if is_declined { &mut row.not_run } else { &mut row.deviated }) += 1;
        return Ok(());
    }
    row.failed += 1;
    Err(Failure {
        op: subject.name.to_string(),
        dtype: case.dtype.name().to_string(),
        check: check.to_string(),
        arguments: trial.map_or_else(|_| String::new(), |trial| trial.described()),
        message,
        case: case.to_string(),
    })
}

/// A check, whose panic is a failure like any other.
fn guarded(check: &Check, trial: &Trial, device: &Device) -> Verdict {
    catch_unwind(AssertUnwindSafe(|| (check.run)(trial, device))).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
        Verdict::Failed(format!("panics: {}", text.unwrap_or("without a message")))
    })
}
