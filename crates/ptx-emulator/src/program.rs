//! What a kernel is after decoding: a flat list of operations over rows of lanes.

use crate::error::Pos;
use crate::fragment::{MatTy, Mma};
use crate::types::{Class, Reg, Row, Row64, Space, Ty};
use crate::value::approx::Approx;
use crate::value::convert::Conversion;
use std::sync::Arc;

/// A lane-wise function of up to four rows.
pub(crate) type Fn32 = fn([&Row; 4], &mut Row);
pub(crate) type Fn64 = fn([&Row64; 4], &mut Row64);

#[derive(Clone, Copy)]
pub(crate) enum Compare {
    N(fn(&Row, &Row) -> u32),
    W(fn(&Row64, &Row64) -> u32),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bool {
    And,
    Or,
    Xor,
}

impl Bool {
    pub(crate) fn apply(self, a: u32, b: u32) -> u32 {
        match self {
            Self::And => a & b,
            Self::Or => a | b,
            Self::Xor => a ^ b,
        }
    }
}

/// A predicate as an operand.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PredArg {
    pub(crate) row: u16,
    pub(crate) negated: bool,
}

/// Where an instruction reads or writes memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Address {
    pub(crate) base: Reg,
    pub(crate) offset: i64,
}

/// How strongly an access is ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    Weak,
    /// Volatile and relaxed accesses, which may meet others without a race.
    Strong,
    Acquire,
    Release,
    Both,
}

impl Order {
    pub(crate) fn is_strong(self) -> bool {
        self != Self::Weak
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Access {
    pub(crate) space: Space,
    /// The type of one element.
    pub(crate) ty: Ty,
    pub(crate) address: Address,
    /// The elements: destinations of a load (`None` for `_`), sources of a store.
    pub(crate) regs: Box<[Option<Reg>]>,
    /// Bits of the registers, which signed values are extended to.
    pub(crate) width: u32,
    pub(crate) order: Order,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AtomOp {
    And,
    Or,
    Xor,
    Exch,
    Cas,
    Add,
    Inc,
    Dec,
    Min,
    Max,
}

#[derive(Clone, Debug)]
pub(crate) struct Atomic {
    pub(crate) space: Space,
    pub(crate) op: AtomOp,
    pub(crate) ty: Ty,
    pub(crate) address: Address,
    /// Nothing for `red`, else one per element.
    pub(crate) dst: Option<Box<[Option<Reg>]>>,
    pub(crate) src: Box<[Reg]>,
    pub(crate) compare: Option<Reg>,
    pub(crate) order: Order,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BarKind {
    Sync,
    Arrive,
    RedPopc,
    RedAnd,
    RedOr,
}

#[derive(Clone, Debug)]
pub(crate) struct Barrier {
    pub(crate) kind: BarKind,
    pub(crate) aligned: bool,
    pub(crate) id: Reg,
    pub(crate) count: Option<Reg>,
    pub(crate) dst: Option<Reg>,
    pub(crate) pred: Option<PredArg>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ShflMode {
    Up,
    Down,
    Bfly,
    Idx,
}

#[derive(Clone, Debug)]
pub(crate) struct Shfl {
    pub(crate) mode: ShflMode,
    pub(crate) dst: Option<u16>,
    pub(crate) pred: Option<u16>,
    pub(crate) src: u16,
    pub(crate) lane: u16,
    pub(crate) clamp: u16,
    pub(crate) mask: u16,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum VoteMode {
    All,
    Any,
    Uni,
    Ballot,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MbarOp {
    Init,
    Inval,
    Arrive,
    /// Arrive and expect no completion of asynchronous copies.
    ArriveDrop,
    /// Complete the thread's asynchronous copies, then arrive.
    CopyArrive {
        noinc: bool,
    },
    ExpectTx,
    ArriveExpectTx,
    TestWait {
        parity: bool,
        try_wait: bool,
    },
    PendingCount,
}

#[derive(Clone, Debug)]
pub(crate) struct Mbar {
    pub(crate) op: MbarOp,
    pub(crate) space: Space,
    pub(crate) address: Address,
    pub(crate) dst: Option<Reg>,
    pub(crate) arg: Option<Reg>,
}

#[derive(Clone, Debug)]
pub(crate) struct CopyAsync {
    pub(crate) dst: Address,
    pub(crate) src: Address,
    pub(crate) src_space: Space,
    pub(crate) bytes: u32,
    pub(crate) src_bytes: Option<Reg>,
    pub(crate) ignore: Option<PredArg>,
}

#[derive(Clone, Debug)]
pub(crate) struct MatrixMove {
    pub(crate) space: Space,
    pub(crate) address: Address,
    pub(crate) regs: Box<[u16]>,
    pub(crate) transposed: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct WmmaMove {
    pub(crate) space: Space,
    pub(crate) address: Address,
    pub(crate) stride: Option<Reg>,
    pub(crate) rows: usize,
    pub(crate) cols: usize,
    pub(crate) column_major: bool,
    pub(crate) ty: MatTy,
    pub(crate) regs: Box<[u16]>,
}

/// Where a call goes and what it passes.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) target: Target,
    pub(crate) rets: Box<[Slot]>,
    pub(crate) args: Box<[Slot]>,
}

#[derive(Clone, Debug)]
pub(crate) enum Target {
    Direct(u16),
    /// The register that holds the address of a function.
    Indirect(Reg),
}

/// What a call passes: a register, or bytes of the thread's parameter space.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Slot {
    Reg(Reg),
    Bytes { offset: u32, len: u32 },
    Sink,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Clock {
    Clock32,
    Clock64,
    Nanoseconds,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Carry {
    pub(crate) wide: bool,
    pub(crate) subtract: bool,
    pub(crate) carry_in: bool,
    pub(crate) carry_out: bool,
    /// For `mad`: the product's half, and whether it is signed.
    pub(crate) product: Option<(bool, bool)>,
    pub(crate) d: Reg,
    pub(crate) s: [Reg; 3],
}

#[derive(Clone)]
pub(crate) enum Instr {
    Map32 {
        f: Fn32,
        d: u16,
        s: [u16; 4],
    },
    /// Sources are widened with zeros, the result cut to the destination.
    Map64 {
        f: Fn64,
        d: Reg,
        s: [Reg; 4],
    },
    Convert {
        how: Conversion,
        d: Reg,
        s: [Reg; 2],
    },
    Approx {
        f: Approx,
        d: Reg,
        s: [Reg; 2],
    },
    Carry(Box<Carry>),
    /// Comes before a division.
    CheckDivisor {
        s: Reg,
    },
    Setp {
        f: Compare,
        d: Option<u16>,
        other: Option<u16>,
        s: [Reg; 2],
        combine: Option<(Bool, PredArg)>,
    },
    /// `set`: all ones, or 1.0 in the given bits.
    Set {
        f: Compare,
        d: Reg,
        one: u32,
        s: [Reg; 2],
        combine: Option<(Bool, PredArg)>,
    },
    /// Two halves compared: one predicate for each.
    SetpHalves {
        f: [Compare; 2],
        d: Option<u16>,
        other: Option<u16>,
        s: [Reg; 2],
        combine: Option<(Bool, PredArg)>,
    },
    Select {
        d: Reg,
        a: Reg,
        b: Reg,
        p: PredArg,
    },
    PredLogic {
        op: Bool,
        d: u16,
        a: PredArg,
        b: PredArg,
    },
    PredMove {
        d: u16,
        a: PredArg,
    },
    /// A predicate as a number: 1 or 0.
    Pack {
        d: Reg,
        s: Box<[Reg]>,
        bits: u32,
    },
    Unpack {
        d: Box<[Option<Reg>]>,
        s: Reg,
        bits: u32,
    },
    LoadParam {
        d: Box<[Option<Reg>]>,
        ty: Ty,
        offset: u32,
        width: u32,
    },
    Load(Box<Access>),
    Store(Box<Access>),
    Atomic(Box<Atomic>),
    Bra {
        target: u32,
    },
    Brx {
        index: Reg,
        targets: Box<[u32]>,
    },
    Call(Box<Call>),
    Ret,
    Exit,
    Trap,
    Nop,
    Yield,
    Bar(Box<Barrier>),
    BarWarp {
        mask: u16,
    },
    Fence,
    Shfl(Box<Shfl>),
    Vote {
        mode: VoteMode,
        d: Reg,
        p: PredArg,
        mask: u16,
    },
    Match {
        all: bool,
        d: Reg,
        pred: Option<u16>,
        s: Reg,
        mask: u16,
    },
    Redux {
        f: fn(u32, u32) -> u32,
        d: u16,
        s: u16,
        mask: u16,
    },
    ActiveMask {
        d: u16,
    },
    Elect {
        d: Option<u16>,
        p: u16,
        mask: u16,
    },
    Clock {
        kind: Clock,
        d: Reg,
    },
    CopyAsync(Box<CopyAsync>),
    CopyCommit,
    /// All but so many of the newest groups; `None` for everything, committed or not.
    CopyWait {
        groups: Option<u32>,
    },
    Mbar(Box<Mbar>),
    LoadMatrix(Box<MatrixMove>),
    StoreMatrix(Box<MatrixMove>),
    MoveMatrix {
        d: u16,
        s: u16,
    },
    Mma(Box<Mma>),
    WmmaLoad(Box<WmmaMove>),
    WmmaStore(Box<WmmaMove>),
}

pub(crate) struct Op {
    pub(crate) instr: Instr,
    pub(crate) guard: Option<PredArg>,
}

/// What reports need to know about an operation.
pub(crate) struct OpInfo {
    pub(crate) pos: Pos,
    pub(crate) regs: Box<[Reg]>,
    pub(crate) name: u16,
}

/// Registers that hold what the hardware knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Special {
    Tid(u8),
    Ntid(u8),
    Ctaid(u8),
    Nctaid(u8),
    LaneId,
    WarpId,
    WarpCount,
    Zero,
    One,
    MaskEq,
    MaskLe,
    MaskLt,
    MaskGe,
    MaskGt,
    DynamicShared,
    TotalShared,
}

/// What a row holds before the first instruction.
#[derive(Clone, Debug)]
pub(crate) enum Init {
    /// Nothing: a register of that name.
    Reg(Arc<str>),
    Const(u64),
    Special(Special),
    /// The address of a module's variable, plus an offset.
    Variable(usize, i64),
    /// The address of dynamic shared memory, plus an offset.
    Dynamic(i64),
}

/// A parameter of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Param {
    /// The name.
    pub name: String,
    /// The type, or that of the elements of an array.
    pub ty: Ty,
    /// The offset in the block of arguments.
    pub offset: u32,
    /// The size in bytes.
    pub bytes: u32,
    /// Whether it is declared to hold an address.
    pub is_pointer: bool,
}

/// A variable in shared or local memory.
#[derive(Clone, Debug)]
pub(crate) struct Placed {
    pub(crate) name: String,
    pub(crate) offset: u32,
    pub(crate) bytes: u32,
}

/// A function as placed in a program.
pub(crate) struct FuncInfo {
    pub(crate) entry: u32,
    pub(crate) params: Box<[Slot]>,
    pub(crate) rets: Box<[Slot]>,
    pub(crate) name: String,
}

/// An entry with all functions that it can reach.
pub(crate) struct Program {
    pub(crate) name: String,
    pub(crate) ops: Vec<Op>,
    pub(crate) info: Vec<OpInfo>,
    /// Opcodes with their modifiers, for statistics.
    pub(crate) names: Vec<String>,
    pub(crate) narrow: Vec<Init>,
    pub(crate) wide: Vec<Init>,
    pub(crate) preds: Vec<Init>,
    pub(crate) params: Vec<Param>,
    pub(crate) param_bytes: u32,
    pub(crate) shared: Vec<Placed>,
    /// Where shared variables end, and what they count for without the gaps between them.
    pub(crate) shared_end: u32,
    pub(crate) shared_bytes: u32,
    pub(crate) dynamic: Option<(String, u32)>,
    pub(crate) local: Vec<Placed>,
    pub(crate) local_bytes: u32,
    /// The thread's parameter space for calls.
    pub(crate) call_bytes: u32,
    pub(crate) funcs: Vec<FuncInfo>,
    pub(crate) max_threads: Option<[u32; 3]>,
    pub(crate) required_threads: Option<[u32; 3]>,
    pub(crate) pos: Pos,
}

impl Program {
    pub(crate) fn row_name(&self, reg: Reg) -> Option<&str> {
        let rows = match reg.class {
            Class::R => &self.narrow,
            Class::W => &self.wide,
            Class::P => &self.preds,
        };
        match rows.get(usize::from(reg.row)) {
            Some(Init::Reg(name)) => Some(name),
            _ => None,
        }
    }
}

/// The first byte of shared memory, in its own space: zero is never a valid address.
pub(crate) const SHARED_START: u32 = 1024;
/// The same for local memory.
pub(crate) const LOCAL_START: u32 = 64;
/// Where the spaces of a thread and a block lie in generic addresses.
pub(crate) const PARAM_WINDOW: u64 = 0x7d00_0000_0000;
pub(crate) const LOCAL_WINDOW: u64 = 0x7e00_0000_0000;
pub(crate) const SHARED_WINDOW: u64 = 0x7f00_0000_0000;
pub(crate) const FUNCTION_WINDOW: u64 = 0x7c00_0000_0000;
pub(crate) const WINDOW_BYTES: u64 = 1 << 32;
