//! The suite against every fault: it must turn red at each.

use tensor_core::Device;

use super::{Fault, device};
use crate::suite::{self, Failure, Options};

/// What became of a fault.
#[derive(Clone, Debug, PartialEq)]
pub struct Kill {
    /// The fault.
    pub fault: Fault,
    /// The first failure found; `None` for a fault that the suite does not notice.
    pub killed_by: Option<Failure>,
    /// How many cases had run by then.
    pub cases: usize,
}

/// Runs the suite on `inner` with each fault, up to the first failure. `progress` is told of each.
///
/// Without a pattern what the fault is most likely seen at runs first, with as many cases as it has in the whole suite; the
/// rest runs only where that does not find it.
///
/// # Errors
/// If no subject's name matches the options' pattern.
pub fn run(inner: &Device, options: &Options, progress: impl Fn(&Kill)) -> Result<Vec<Kill>, String> {
    let kill = |&fault: &Fault| {
        let saboteur = device(inner, fault);
        let mut kill = Kill { fault, killed_by: None, cases: 0 };
        for options in stages(fault, options)? {
            let report = suite::run(&saboteur, &options, |_, _| {})?;
            kill.cases += report.rows.iter().map(|row| row.cases).sum::<usize>();
            kill.killed_by = report.failures.into_iter().find(|failure| is_new(inner, failure));
            if kill.killed_by.is_some() {
                break;
            }
        }
        progress(&kill);
        Ok(kill)
    };
    Fault::ALL.iter().map(kill).collect()
}

/// Whether a failure is the fault's: the device underneath passes the case.
fn is_new(inner: &Device, failure: &Failure) -> bool {
    // Rows that have not run do not deviate: those failures are no cases.
    let case = failure.case.parse();
    case.is_ok_and(|case| suite::replay(inner, &case).is_ok_and(|(_, failure)| failure.is_none()))
}

/// What runs, one after the other.
fn stages(fault: Fault, options: &Options) -> Result<Vec<Options>, String> {
    let whole = Options { stop_at_first: true, ..options.clone() };
    if options.pattern.is_some() {
        return Ok(vec![whole]);
    }
    let n_suspects = suite::matching(Some(suspects(fault)))?.len();
    let cases = options.cases * n_suspects / suite::subjects().len();
    Ok(vec![Options { pattern: Some(suspects(fault).to_string()), cases, ..whole.clone() }, whole])
}

/// The subjects that a fault is most likely seen at, as a pattern.
fn suspects(fault: Fault) -> &'static str {
    match fault {
        Fault::OffByTenTolerances
        | Fault::IgnoresAStride
        | Fault::IgnoresAnOffset
        | Fault::IgnoresASign
        | Fault::DropsTheLastElement
        | Fault::RoundsThroughF16
        | Fault::FlushesSubnormals
        | Fault::ReadsStaleMemory
        | Fault::ChangesAnInput
        | Fault::NotDeterministic => "exp,tanh,neg",
        Fault::SkipsATail | Fault::SumsInF16 => "sum,mean",
        Fault::WrongPast65535Groups => "gather,scatter_add,index_*",
        Fault::WrongFoldSeed => "max",
        Fault::MishandlesNan => "max,min,argmax,argmin",
        Fault::SaturatesIntegers => "add,mul",
        Fault::TakesTheLastTie => "argmax,argmin",
        Fault::SortsUnstably => "sort,argsort",
        Fault::ForgetsARepeatedIndex | Fault::WrapsIndices => "scatter_add,gather,index_*",
        Fault::SwapsOperands => "sub",
        Fault::IgnoresGroups | Fault::SwapsPadding => "conv*",
        Fault::SkipsAnEpilogue => "conv*,matmul*",
        Fault::OneGradientMissing => "mul",
        Fault::MultipliesInTf32 => "matmul",
        Fault::FastExp => "exp",
        Fault::DrawsOtherNumbers => "rand*",
    }
}
