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
/// What the fault is most likely seen at runs first, the rest of the suite only where that does not find it.
///
/// # Errors
/// If no subject's name matches the options' pattern.
pub fn run(inner: &Device, options: &Options, progress: impl Fn(&Kill)) -> Result<Vec<Kill>, String> {
    let kill = |&fault: &Fault| {
        let saboteur = device(inner, fault);
        let mut kill = Kill { fault, killed_by: None, cases: 0 };
        let first = Options { pattern: Some(suspects(fault).to_string()), cases: options.cases / 10, ..options.clone() };
        let all = if options.pattern.is_none() { vec![&first, options] } else { vec![options] };
        for options in all {
            let options = Options { stop_at_first: true, ..options.clone() };
            let report = match suite::run(&saboteur, &options, |_, _| {}) {
                Ok(report) => report,
                // No suspect is in the suite.
                Err(_) if options.pattern.as_deref() == Some(suspects(fault)) => continue,
                Err(error) => return Err(error),
            };
            kill.cases += report.rows.iter().map(|row| row.cases).sum::<usize>();
            // Rows that have not run do not deviate.
            kill.killed_by = report.failures.into_iter().find(|failure| failure.check != "deviation");
            if kill.killed_by.is_some() {
                break;
            }
        }
        progress(&kill);
        Ok(kill)
    };
    Fault::ALL.iter().map(kill).collect()
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
        Fault::WrongPast65535Groups => "*large*",
        Fault::WrongFoldSeed | Fault::MishandlesNan => "max,argmax,amax",
        Fault::SaturatesIntegers => "add,mul",
        Fault::TakesTheLastTie => "argmax,argmin",
        Fault::SortsUnstably => "sort,argsort",
        Fault::ForgetsARepeatedIndex | Fault::WrapsIndices => "scatter_add,gather,index_*",
        Fault::SwapsOperands => "sub",
        Fault::IgnoresGroups | Fault::SwapsPadding => "conv*",
        Fault::SkipsAnEpilogue => "conv*,linear,matmul*",
        Fault::OneGradientMissing => "mul",
        Fault::MultipliesInTf32 => "matmul,mm",
        Fault::FastExp => "exp",
        Fault::DrawsOtherNumbers => "rand*",
    }
}
