//! The fundamental types of PTX and the classes of registers that hold them.

/// A type as PTX spells it after a dot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[allow(missing_docs)]
pub enum Ty {
    B8,
    B16,
    B32,
    B64,
    B128,
    U8,
    U16,
    U32,
    U64,
    S8,
    S16,
    S32,
    S64,
    F16,
    F16x2,
    Bf16,
    Bf16x2,
    Tf32,
    F32,
    F64,
    U16x2,
    S16x2,
    /// Two 8-bit floats, 4 bits of exponent.
    E4m3x2,
    /// Two 8-bit floats, 5 bits of exponent.
    E5m2x2,
    E4m3,
    E5m2,
    Pred,
}

use Ty::*;

const NAMES: &[(&str, Ty)] = &[
    ("b8", B8),
    ("b16", B16),
    ("b32", B32),
    ("b64", B64),
    ("b128", B128),
    ("u8", U8),
    ("u16", U16),
    ("u32", U32),
    ("u64", U64),
    ("s8", S8),
    ("s16", S16),
    ("s32", S32),
    ("s64", S64),
    ("f16", F16),
    ("f16x2", F16x2),
    ("bf16", Bf16),
    ("bf16x2", Bf16x2),
    ("tf32", Tf32),
    ("f32", F32),
    ("f64", F64),
    ("u16x2", U16x2),
    ("s16x2", S16x2),
    ("e4m3x2", E4m3x2),
    ("e5m2x2", E5m2x2),
    ("e4m3", E4m3),
    ("e5m2", E5m2),
    ("pred", Pred),
];

impl Ty {
    /// The type of that name, without the dot.
    pub fn parse(name: &str) -> Option<Self> {
        NAMES.iter().find(|(n, _)| *n == name).map(|(_, ty)| *ty)
    }

    /// The name, without the dot.
    pub fn name(self) -> &'static str {
        NAMES.iter().find(|(_, ty)| *ty == self).map_or("", |(name, _)| name)
    }

    /// The size in bits; a predicate has one.
    pub fn bits(self) -> u32 {
        match self {
            Pred => 1,
            B8 | U8 | S8 | E4m3 | E5m2 => 8,
            B16 | U16 | S16 | F16 | Bf16 | E4m3x2 | E5m2x2 => 16,
            B32 | U32 | S32 | F16x2 | Bf16x2 | Tf32 | F32 | U16x2 | S16x2 => 32,
            B64 | U64 | S64 | F64 => 64,
            B128 => 128,
        }
    }

    /// The size in bytes.
    pub fn bytes(self) -> u32 {
        self.bits().div_ceil(8)
    }

    pub(crate) fn is_signed(self) -> bool {
        matches!(self, S8 | S16 | S32 | S64 | S16x2)
    }

    pub(crate) fn is_int(self) -> bool {
        matches!(self, U8 | U16 | U32 | U64 | S8 | S16 | S32 | S64)
    }

    pub(crate) fn is_bits(self) -> bool {
        matches!(self, B8 | B16 | B32 | B64 | B128)
    }

    pub(crate) fn is_float(self) -> bool {
        matches!(self, F16 | F16x2 | Bf16 | Bf16x2 | Tf32 | F32 | F64)
    }
}

/// Where a register lives: a row of 32 lanes of 32 bits (narrower ones too), of 64 bits, or a mask.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Class {
    R,
    W,
    P,
}

/// A register, or a constant that looks like one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Reg {
    pub(crate) class: Class,
    pub(crate) row: u16,
}

/// One 32-bit value per lane.
pub(crate) type Row = [u32; 32];
/// One 64-bit value per lane.
pub(crate) type Row64 = [u64; 32];

/// A state space.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Space {
    Generic,
    Global,
    Shared,
    Local,
    Const,
    Param,
}

impl Space {
    /// The name as PTX spells it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Generic => "generic",
            Self::Global => "global",
            Self::Shared => "shared",
            Self::Local => "local",
            Self::Const => "const",
            Self::Param => "param",
        }
    }
}
