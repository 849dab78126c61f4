//! What the sanitizer says.

use crate::types::Space;
use std::fmt;

/// What is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Finding {
    /// An address beside every allocation, variable or parameter.
    OutOfBounds,
    /// An address that is no multiple of the access's size.
    Misaligned,
    /// An address in memory that was freed.
    UseAfterFree,
    /// A write into constant memory or parameters.
    ReadOnly,
    /// A register that no instruction wrote.
    UninitialisedRegister,
    /// Memory that nothing wrote.
    UninitialisedMemory,
    /// Two accesses of shared memory, one a write, in no order.
    SharedRace,
    /// The same in global memory.
    GlobalRace,
    /// A barrier that not all threads reach, or not together.
    BarrierDivergence,
    /// A barrier that some threads of the block can no longer reach, since they have exited.
    ExitedAtBarrier,
    /// An instruction for the whole warp, or for lanes of a mask, that other lanes execute.
    WarpDivergence,
    /// A shuffle from a lane that does not take part.
    InactiveSource,
    /// Bytes of an asynchronous copy that was not waited for.
    MissingCopyWait,
    /// A barrier in memory used before it is initialised, or after it is not.
    BadBarrier,
    /// A division of integers by zero.
    DivisionByZero,
    /// A branch or call to nowhere, or a call of a function by itself.
    BadTarget,
    /// A `trap`.
    Trap,
    /// More instructions than the launch may take.
    Hang,
}

impl Finding {
    /// A short name, in words joined by hyphens.
    pub fn name(self) -> &'static str {
        match self {
            Self::OutOfBounds => "out-of-bounds",
            Self::Misaligned => "misaligned",
            Self::UseAfterFree => "use-after-free",
            Self::ReadOnly => "read-only",
            Self::UninitialisedRegister => "uninitialised-register",
            Self::UninitialisedMemory => "uninitialised-memory",
            Self::SharedRace => "shared-race",
            Self::GlobalRace => "global-race",
            Self::BarrierDivergence => "barrier-divergence",
            Self::ExitedAtBarrier => "exited-at-barrier",
            Self::WarpDivergence => "warp-divergence",
            Self::InactiveSource => "inactive-source",
            Self::MissingCopyWait => "missing-copy-wait",
            Self::BadBarrier => "bad-barrier",
            Self::DivisionByZero => "division-by-zero",
            Self::BadTarget => "bad-target",
            Self::Trap => "trap",
            Self::Hang => "hang",
        }
    }
}

/// The memory that an address belongs to, or lies nearest behind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Neighbour {
    /// The name that it was given, or declared with.
    pub name: String,
    /// The size in bytes.
    pub bytes: u64,
    /// The address's distance from its start.
    pub offset: i64,
}

/// The other access of a race, or another place that matters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Other {
    /// What it did: `read`, `write`, `atomic`, `waits`.
    pub what: &'static str,
    /// The line of the PTX text.
    pub line: u32,
    /// That line.
    pub text: String,
    /// The block.
    pub block: [u32; 3],
    /// The warp in its block.
    pub warp: u32,
    /// The thread, if it was only one.
    pub thread: Option<[u32; 3]>,
}

/// A finding, and where it was found.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// What is wrong.
    pub finding: Finding,
    /// The same with the values of this case.
    pub message: String,
    /// The kernel.
    pub kernel: String,
    /// The line of the PTX text, from 1.
    pub line: u32,
    /// The column, from 1.
    pub column: u32,
    /// That line, without the blanks around it.
    pub text: String,
    /// The block.
    pub block: [u32; 3],
    /// The warp in its block.
    pub warp: u32,
    /// The lanes concerned, one bit each.
    pub lanes: u32,
    /// The first thread concerned.
    pub thread: [u32; 3],
    /// The address in its space, if it is about memory.
    pub address: Option<u64>,
    /// The space of that address.
    pub space: Option<Space>,
    /// What lies at the address or before it.
    pub allocation: Option<Neighbour>,
    /// The registers that the instruction names, and their values in that thread; none where nothing was written.
    pub operands: Vec<(String, Option<u64>)>,
    /// The other access of a race, and the like.
    pub other: Option<Other>,
    /// The seed that replays the order of warps and blocks.
    pub seed: Option<u64>,
}

fn triple(values: [u32; 3]) -> String {
    format!("({}, {}, {})", values[0], values[1], values[2])
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {}", self.kernel, self.finding.name(), self.message)?;
        write!(f, "\n  at line {}: {}", self.line, self.text)?;
        let (block, thread) = (triple(self.block), triple(self.thread));
        write!(f, "\n  block {block}, warp {}, lanes {:#010x}, thread {thread}", self.warp, self.lanes)?;
        if let (Some(address), Some(space)) = (self.address, self.space) {
            write!(f, "\n  {} address {address:#x}", space.name())?;
            if let Some(Neighbour { name, bytes, offset }) = &self.allocation {
                write!(f, ": {name} of {bytes} bytes, offset {offset}")?;
            }
        }
        if !self.operands.is_empty() {
            let value = |value: &Option<u64>| value.map_or("never written".into(), |value| format!("{value:#x}"));
            let operands: Vec<_> = self.operands.iter().map(|(name, v)| format!("{name} = {}", value(v))).collect();
            write!(f, "\n  {}", operands.join(", "))?;
        }
        if let Some(other) = &self.other {
            write!(f, "\n  {} at line {}: {}", other.what, other.line, other.text)?;
            write!(f, "\n    block {}, warp {}", triple(other.block), other.warp)?;
            if let Some(thread) = other.thread {
                write!(f, ", thread {}", triple(thread))?;
            }
        }
        match self.seed {
            Some(seed) => write!(f, "\n  seed {seed}"),
            None => Ok(()),
        }
    }
}
