//! How a device behaves.

/// How warps and blocks take turns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// From the first to the last, each as far as it gets.
    #[default]
    Ascending,
    /// From the last to the first.
    Descending,
    /// Drawn from a seed, a few instructions at a time; the same seed gives the same order.
    Seeded(u64),
}

impl Order {
    pub(crate) fn seed(self) -> Option<u64> {
        match self {
            Self::Seeded(seed) => Some(seed),
            Self::Ascending | Self::Descending => None,
        }
    }
}

/// What approximate instructions give.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Approximation {
    /// The exact value, rounded.
    #[default]
    Exact,
    /// A value within the documented bound, drawn from a seed, the instruction and its operands.
    Perturbed(u64),
}

/// How matrix products add up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MmaMode {
    /// One fused multiply-add after the other.
    #[default]
    Ieee,
    /// As tensor cores of the Hopper generation do: groups of products aligned to the largest one, cut, and summed.
    Hopper,
}

/// Which checks are made. Bounds and alignment always are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Checks {
    /// Races in shared memory and, between blocks too, in global memory.
    pub races: bool,
    /// Reads of memory that nothing wrote.
    pub uninitialised_memory: bool,
    /// Addresses, conditions and stored values that depend on a register that nothing wrote.
    pub uninitialised_registers: bool,
    /// Any read of a register that nothing wrote, though compilers make some whose result is never used.
    pub unwritten_reads: bool,
    /// Barriers of a block from which threads have exited. PTX allows it; hardly anyone means it.
    pub exited_at_barrier: bool,
    /// Races of writes that store the same value, which compilers make where threads share a result.
    pub same_value_writes: bool,
    /// Integer division by zero.
    pub division_by_zero: bool,
}

impl Default for Checks {
    fn default() -> Self {
        Self {
            races: true,
            uninitialised_memory: true,
            uninitialised_registers: true,
            unwritten_reads: false,
            exited_at_barrier: true,
            same_value_writes: false,
            division_by_zero: true,
        }
    }
}

/// How a [`Device`](crate::Device) behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Global memory, in bytes.
    pub memory_bytes: u64,
    /// Shared memory that a block can have, in bytes.
    pub shared_bytes: u32,
    /// Instructions of warps that a launch may take before it counts as hanging.
    pub fuel: u64,
    /// How warps and blocks take turns.
    pub order: Order,
    /// What approximate instructions give.
    pub approximation: Approximation,
    /// How matrix products add up.
    pub mma: MmaMode,
    /// Which checks are made.
    pub checks: Checks,
    /// Whether a launch returns what is wrong at once, not at the next synchronisation.
    pub eager: bool,
    /// Whether launches are counted and measured.
    pub stats: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            memory_bytes: 1 << 32,
            shared_bytes: 227 << 10,
            fuel: 1 << 28,
            order: Order::Ascending,
            approximation: Approximation::Exact,
            mma: MmaMode::Ieee,
            checks: Checks::default(),
            eager: false,
            stats: false,
        }
    }
}
