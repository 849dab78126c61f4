//! How the elements of a matrix lie in the registers of a warp.

use crate::types::Reg;

/// The type of a matrix's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MatTy {
    F16,
    Bf16,
    Tf32,
    F32,
    F64,
    S8,
    U8,
    S4,
    U4,
    S32,
    E4m3,
    E5m2,
}

impl MatTy {
    pub(crate) fn bits(self) -> usize {
        match self {
            Self::S4 | Self::U4 => 4,
            Self::S8 | Self::U8 | Self::E4m3 | Self::E5m2 => 8,
            Self::F16 | Self::Bf16 => 16,
            Self::Tf32 | Self::F32 | Self::S32 => 32,
            Self::F64 => 64,
        }
    }
}

/// Which part of a product a fragment is: D is a C.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    A,
    B,
    C,
}

/// A matrix in registers.
#[derive(Clone, Debug)]
pub(crate) struct Fragment {
    pub(crate) ty: MatTy,
    pub(crate) regs: Box<[Reg]>,
    /// How many elements the matrix has.
    pub(crate) elements: usize,
    /// For each register, each of its elements, each lane: the element's number, row after row; `u16::MAX` for none.
    pub(crate) places: Box<[u16]>,
}

/// A matrix product: D = A·B + C, of one warp.
#[derive(Clone, Debug)]
pub(crate) struct Mma {
    pub(crate) m: usize,
    pub(crate) n: usize,
    pub(crate) k: usize,
    pub(crate) satfinite: bool,
    pub(crate) a: Fragment,
    pub(crate) b: Fragment,
    pub(crate) c: Fragment,
    pub(crate) d: Fragment,
}

impl Fragment {
    /// The fragment of a part of rows × columns; `wmma` for one whose layout the emulator chooses.
    pub(crate) fn new(part: Part, rows: usize, cols: usize, ty: MatTy, wmma: bool, regs: Box<[Reg]>) -> Self {
        let mut fragment = Self { ty, elements: rows * cols, places: Box::new([]), regs };
        let per_reg = fragment.per_reg();
        let mut places = vec![u16::MAX; fragment.regs.len() * per_reg * 32];
        for i in 0..rows * cols {
            let (lane, reg, shift) =
                if wmma { linear(i, rows * cols, ty) } else { place(part, rows, i / cols, i % cols, per_reg) };
            let slot = if wmma { shift / ty.bits() } else { shift };
            if let Some(place) = places.get_mut((reg * per_reg + slot) * 32 + lane) {
                *place = i as u16;
            }
        }
        fragment.places = places.into();
        fragment
    }

    /// Elements that share a register; f64 has a register of its own.
    pub(crate) fn per_reg(&self) -> usize {
        (32 / self.ty.bits()).max(1)
    }
}

/// Where the emulator keeps element i of a `wmma` fragment: lane, register, and bits to shift by.
pub(crate) fn linear(i: usize, elements: usize, ty: MatTy) -> (usize, usize, usize) {
    let per_lane = elements / 32;
    let slot = i % per_lane;
    let per_reg = 32 / ty.bits();
    (i / per_lane, slot / per_reg, slot % per_reg * ty.bits())
}

/// Where the manual puts an element of `mma`: lane, register, and which of its elements.
fn place(part: Part, rows: usize, row: usize, col: usize, per_reg: usize) -> (usize, usize, usize) {
    match part {
        Part::A => {
            let (group, high) = (row % 8, row / 8);
            let (thread, block) = (col / per_reg % 4, col / (4 * per_reg));
            (4 * group + thread, block * (rows / 8) + high, col % per_reg)
        }
        Part::B => {
            let (thread, block) = (row / per_reg % 4, row / (4 * per_reg));
            (4 * col + thread, block, row % per_reg)
        }
        Part::C => {
            let element = 2 * (row / 8) + col % 2;
            (4 * (row % 8) + col / 2, element / per_reg, element % per_reg)
        }
    }
}
