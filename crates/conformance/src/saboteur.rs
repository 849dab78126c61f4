//! A device that is wrong in one way: what a suite that is any good must notice, and what lockstep must name.
//!
//! Each [`Fault`] is one that kernels really have. [`device`] wraps a device that is right; the fault is put on what it reads
//! or on what it gives. Deliberately absent: speed.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use tensor_core::{Device, DeviceInfo};

mod host;
mod kernel;
mod read;
#[cfg(feature = "suite")]
mod run;
#[cfg(test)]
mod tests;
mod written;

#[cfg(feature = "suite")]
pub use run::{Kill, run};

/// Writes the faults with their names and sentences.
macro_rules! faults {
    ($($fault:ident, $name:literal, $sentence:literal;)*) => {
        /// A way to be wrong.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Fault { $(#[doc = $sentence] $fault),* }

        impl Fault {
            /// Each of them.
            pub const ALL: &[Self] = &[$(Self::$fault),*];

            /// Its name on the command line and in reports.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$fault => $name),* }
            }

            /// What it does, in a sentence.
            pub const fn sentence(self) -> &'static str {
                match self { $(Self::$fault => $sentence),* }
            }
        }
    };
}

faults! {
    OffByTenTolerances, "off-by-ten-tolerances",
        "The last element of maps, reductions and matrix products is off by ten times what is allowed.";
    IgnoresAStride, "ignores-a-stride", "A transposed or stepped input is read as if it lay row-major.";
    IgnoresAnOffset, "ignores-an-offset", "An input is read from the start of its storage.";
    IgnoresASign, "ignores-a-sign", "An input with a negative stride is read forwards.";
    DropsTheLastElement, "drops-the-last-element",
        "The last element of a result whose length is no multiple of 4 is left 0.";
    SkipsATail, "skips-a-tail", "A reduction over an axis longer than 32 skips what is left of it after blocks of 32.";
    WrongPast65535Groups, "wrong-past-65535-groups", "Elements of a result past the 65,535th are left 0.";
    WrongFoldSeed, "wrong-fold-seed", "The fold of a maximum starts at 0.";
    MishandlesNan, "mishandles-nan", "Maxima and minima along axes skip NaN.";
    FlushesSubnormals, "flushes-subnormals", "Subnormal results are 0, on a device that does not say so.";
    SaturatesIntegers, "saturates-integers", "Sums and products of i32 stop at the largest one instead of wrapping.";
    TakesTheLastTie, "takes-the-last-tie", "argmax and argmin give the last of equals.";
    SortsUnstably, "sorts-unstably", "Equals change their order in a sort.";
    ForgetsARepeatedIndex, "forgets-a-repeated-index", "Of several sources for one place a scatter adds the last alone.";
    WrapsIndices, "wraps-indices", "An index out of range wraps around instead of being an error.";
    SwapsOperands, "swaps-operands", "lhs − rhs is computed as rhs − lhs.";
    IgnoresGroups, "ignores-groups", "Every group of a convolution reads the channels of the first.";
    SwapsPadding, "swaps-padding", "Windows are padded after where they should be before, and the other way round.";
    SkipsAnEpilogue, "skips-an-epilogue", "A matrix product or convolution forgets its epilogue.";
    OneGradientMissing, "one-gradient-missing", "Of two gradients that one kernel writes the second is left 0.";
    RoundsThroughF16, "rounds-through-f16", "Results in f32 are rounded to f16 on the way.";
    MultipliesInTf32, "multiplies-in-tf32", "Factors of matrix products and convolutions keep 10 bits of their mantissa.";
    SumsInF16, "sums-in-f16", "Sums of f16 are rounded after every step.";
    FastExp, "fast-exp", "exp is off by one in 250,000.";
    ReadsStaleMemory, "reads-stale-memory",
        "The last element of a result is what the result before it of the same size held there.";
    ChangesAnInput, "changes-an-input", "An elementwise op of one input writes its result over it, too.";
    NotDeterministic, "not-deterministic", "Every other result has an element that is one unit in the last place larger.";
    DrawsOtherNumbers, "draws-other-numbers", "Random numbers come from the next seed.";
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Fault {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL.iter().copied().find(|fault| fault.name() == text).ok_or_else(|| {
            let names: Vec<&str> = Self::ALL.iter().map(|fault| fault.name()).collect();
            format!("no fault is called {text:?}; there are {}", names.join(", "))
        })
    }
}

/// `inner` with a fault, as a device of its own.
///
/// `inner` is a device that keeps views in the storage they view, as the CPU does.
pub fn device(inner: &Device, fault: Fault) -> Device {
    wrapped(inner, Some(fault))
}

/// `inner` as a device of its own, with a fault or as it is.
fn wrapped(inner: &Device, fault: Option<Fault>) -> Device {
    let inner = inner.physical().clone();
    let label = fault.map_or("saboteur".to_string(), |fault| format!("saboteur({fault})"));
    let info = DeviceInfo { label, is_hardware: false, ..inner.info().clone() };
    Device::new(Arc::new(kernel::Saboteur::new(info, inner, fault)))
}
