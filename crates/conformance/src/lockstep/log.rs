//! What a lockstep device saw: counts per op, breaches, and what could not be judged.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tensor_core::{Meta, Storage, Tensor};

use super::judge::{Run, Verdict};

/// How many different breaches are kept; all are counted.
const MOST_FINDINGS: usize = 1000;

/// What a lockstep device saw. A shared handle: clones read the same log, and it outlives the device.
#[derive(Clone, Default)]
pub struct Log(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    ops: BTreeMap<String, Tally>,
    findings: Vec<(Vec<Meta>, Finding)>,
    unjudged: BTreeMap<(String, String), u64>,
    /// By address. The storage is held so that no other one can take its place there.
    names: HashMap<usize, (Storage, String)>,
}

/// What was seen of an op.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Tally {
    /// How often it ran; each parameter of an optimizer's step counts.
    pub n: u64,
    /// How often the reference device gave the same bits.
    pub n_identical: u64,
    /// How often it broke the contract.
    pub n_breaches: u64,
    /// How often there was nothing to judge by.
    pub n_unjudged: u64,
    /// The largest distance from the reference where it was held to bounds, in units in the last place.
    pub max_ulps: f64,
    /// The largest share of its bound that a result used up.
    pub max_used: f64,
}

/// A breach of the contract by an op for one combination of input shapes and dtypes.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// The op's name.
    pub op: String,
    /// The device, the worst element, its value, the right one, and what was allowed: as it was the first time.
    pub text: String,
    /// Shapes, dtypes and ranges of the inputs; seed and offset of random numbers.
    pub inputs: Vec<String>,
    /// The safetensors file with the inputs (`input.0`, …), the results (`got.0`, …) and what they should have been (`want.0`,
    /// `bound.0`, …); or why there is none.
    pub file: Result<PathBuf, String>,
    /// How often it happened.
    pub n: u64,
}

/// An op that could not be judged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unjudged {
    /// Its name.
    pub op: String,
    /// Why.
    pub reason: String,
    /// How often.
    pub n: u64,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)?;
        self.inputs.iter().try_for_each(|input| write!(f, "; {input}"))?;
        match &self.file {
            Ok(path) => write!(f, "; saved in {}", path.display()),
            Err(reason) => write!(f, "; not saved: {reason}"),
        }
    }
}

impl Log {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The breaches in order of appearance, each combination of op, input shapes and dtypes once; the first thousand.
    pub fn findings(&self) -> Vec<Finding> {
        self.state().findings.iter().map(|(_, finding)| finding.clone()).collect()
    }

    /// The counts of each op by name. `upload` and `update` (the optimizer's steps) are among them.
    pub fn ops(&self) -> BTreeMap<String, Tally> {
        self.state().ops.clone()
    }

    /// The counts of all ops together.
    pub fn total(&self) -> Tally {
        self.state().ops.values().fold(Tally::default(), |sum, op| Tally {
            n: sum.n + op.n,
            n_identical: sum.n_identical + op.n_identical,
            n_breaches: sum.n_breaches + op.n_breaches,
            n_unjudged: sum.n_unjudged + op.n_unjudged,
            max_ulps: sum.max_ulps.max(op.max_ulps),
            max_used: sum.max_used.max(op.max_used),
        })
    }

    /// What could not be judged, and why.
    pub fn unjudged(&self) -> Vec<Unjudged> {
        let entry =
            |((op, reason), &n): (&(String, String), &u64)| Unjudged { op: op.clone(), reason: reason.clone(), n };
        self.state().unjudged.iter().map(entry).collect()
    }

    /// Gives a tensor of the device a name, a parameter's path for instance, by which breaches call it and its views from now
    /// on, through optimizer steps. The log keeps its storage alive.
    pub fn name(&self, name: impl Into<String>, x: &Tensor) {
        let storage = x.stop_gradient().storage().clone();
        self.state().names.insert(address(&storage), (storage, name.into()));
    }

    pub(super) fn name_of(&self, storage: &Storage) -> Option<String> {
        self.state().names.get(&address(storage)).map(|(_, name)| name.clone())
    }

    /// Lets go of a named storage, so that it has one owner again.
    pub(super) fn take_name(&self, storage: &Storage) -> Option<String> {
        self.state().names.remove(&address(storage)).map(|(_, name)| name)
    }

    pub(super) fn note(&self, op: &str, verdict: &Verdict) {
        let mut state = self.state();
        if let Verdict::Unjudged(reason, _) = verdict {
            *state.unjudged.entry((op.to_string(), reason.clone())).or_default() += 1;
        }
        let tally = state.tally(op);
        match verdict {
            Verdict::Identical => tally.n_identical += 1,
            Verdict::Within(agreement) => {
                tally.max_ulps = tally.max_ulps.max(agreement.max_ulps);
                tally.max_used = tally.max_used.max(agreement.max_used);
            }
            Verdict::Unjudged(_, ulps) => {
                tally.n_unjudged += 1;
                tally.max_ulps = tally.max_ulps.max(*ulps);
            }
            Verdict::Breach(_) => tally.n_breaches += 1,
        }
    }

    /// Notes a breach; `finding` is made where it is the first of its kind, else the first one is given.
    pub(super) fn breach(&self, ran: &Run<'_>, finding: impl FnOnce() -> Finding) -> Finding {
        let mut state = self.state();
        state.tally(ran.name()).n_breaches += 1;
        let signature = ran.signature();
        if let Some((_, known)) = state.findings.iter_mut().find(|(s, f)| f.op == ran.name() && *s == signature) {
            known.n += 1;
            return known.clone();
        }
        let finding = finding();
        if state.findings.len() < MOST_FINDINGS {
            state.findings.push((signature, finding.clone()));
        }
        finding
    }
}

impl State {
    fn tally(&mut self, op: &str) -> &mut Tally {
        let tally = self.ops.entry(op.to_string()).or_default();
        tally.n += 1;
        tally
    }
}

fn address(storage: &Storage) -> usize {
    Arc::as_ptr(storage).cast::<()>() as usize
}

/// A table of the ops, then what was not judged and the breaches.
impl fmt::Display for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{:<20} {:>9} {:>10} {:>9} {:>9} {:>11}",
            "op", "runs", "same bits", "max ulps", "breaches", "not judged"
        )?;
        for (op, t) in self.ops() {
            let ulps = if t.max_ulps == 0.0 { "0".to_string() } else { format!("{:.2}", t.max_ulps) };
            writeln!(
                f,
                "{op:<20} {:>9} {:>10} {ulps:>9} {:>9} {:>11}",
                t.n, t.n_identical, t.n_breaches, t.n_unjudged
            )?;
        }
        for Unjudged { op, reason, n } in self.unjudged() {
            writeln!(f, "not judged, {n} times: {op}: {reason}")?;
        }
        for finding in self.findings() {
            writeln!(f, "breach, {} times: {}: {finding}", finding.n, finding.op)?;
        }
        Ok(())
    }
}

impl fmt::Debug for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Log").field("total", &self.total()).finish_non_exhaustive()
    }
}
