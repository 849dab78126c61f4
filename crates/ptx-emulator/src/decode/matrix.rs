//! Matrices that a warp holds together.

use super::{Dec, Decoded};
use crate::error::Result;
use crate::fragment::{Fragment, MatTy, Mma, Part};
use crate::lower::operand::Fit;
use crate::program::{Instr, MatrixMove, WmmaMove};
use crate::types::{Class, Reg, Ty};

use MatTy::*;

type Shape = (usize, usize, usize);

const SHAPES: &[(&str, Shape)] = &[
    ("m16n8k4", (16, 8, 4)),
    ("m16n8k8", (16, 8, 8)),
    ("m16n8k16", (16, 8, 16)),
    ("m16n8k32", (16, 8, 32)),
    ("m16n8k64", (16, 8, 64)),
    ("m8n8k4", (8, 8, 4)),
    ("m8n8k16", (8, 8, 16)),
    ("m8n8k32", (8, 8, 32)),
    ("m16n16k16", (16, 16, 16)),
    ("m16n16k8", (16, 16, 8)),
    ("m32n8k16", (32, 8, 16)),
    ("m8n32k16", (8, 32, 16)),
];

const TYPES: &[(&str, MatTy)] = &[
    ("f16", F16),
    ("bf16", Bf16),
    ("tf32", Tf32),
    ("f32", F32),
    ("f64", F64),
    ("s8", S8),
    ("u8", U8),
    ("s4", S4),
    ("u4", U4),
    ("s32", S32),
    ("e4m3", E4m3),
    ("e5m2", E5m2),
];

impl<'a> Dec<'_, '_, 'a> {
    pub(super) fn matrix(&mut self) -> Decoded {
        match self.stmt.opcode {
            "mma" => self.mma(),
            "wmma" => self.wmma(),
            "movmatrix" => {
                self.require_flags(&["sync", "aligned", "m8n8", "trans", "b16"])?;
                self.count(2)?;
                Ok(vec![Instr::MoveMatrix { s: self.row(1, Ty::B32)?, d: self.dst(0, Ty::B32)?.row }])
            }
            _ => self.matrix_move(),
        }
    }

    fn matrix_move(&mut self) -> Decoded {
        let is_load = self.stmt.opcode == "ldmatrix";
        self.require_flags(&["sync", "aligned", "m8n8"])?;
        let n = self.required(&[("x1", 1), ("x2", 2), ("x4", 4)])?;
        let transposed = self.flag("trans");
        let space = self.space();
        self.require_flags(&["b16"])?;
        self.count(2)?;
        let (regs_at, address_at) = if is_load { (0, 1) } else { (1, 0) };
        let operand = self.operand(regs_at)?;
        let mut regs = Vec::new();
        for part in self.parts(&operand, n)? {
            let reg = if is_load {
                self.lower.dst(&part, Ty::B32, Fit::Exact)?
            } else {
                self.lower.src(&part, Ty::B32, Fit::Exact)?
            };
            regs.push(reg.row);
        }
        let matrix = MatrixMove { space, address: self.address_at(address_at, space)?, regs: regs.into(), transposed };
        Ok(vec![if is_load { Instr::LoadMatrix(Box::new(matrix)) } else { Instr::StoreMatrix(Box::new(matrix)) }])
    }

    fn mat_ty(&mut self) -> Result<MatTy> {
        self.required(TYPES)
    }

    /// The registers of a fragment of so many elements per lane.
    fn fragment(&mut self, i: usize, ty: MatTy, elements: usize, write: bool) -> Result<Box<[Reg]>> {
        let n = if ty == F64 { elements } else { elements * ty.bits() / 32 };
        if n == 0 {
            return self.error("this type does not exist for this shape");
        }
        let reg_ty = match ty {
            F64 => Ty::F64,
            F32 => Ty::F32,
            S32 => Ty::S32,
            F16 => Ty::F16x2,
            Bf16 => Ty::Bf16x2,
            _ => Ty::B32,
        };
        let operand = self.operand(i)?;
        let mut regs = Vec::new();
        for part in self.parts(&operand, n)? {
            regs.push(if write {
                self.lower.dst(&part, reg_ty, Fit::Exact)?
            } else {
                self.lower.src(&part, reg_ty, Fit::Exact)?
            });
        }
        Ok(regs.into())
    }

    fn mma(&mut self) -> Decoded {
        if self.left.iter().any(|modifier| modifier.starts_with("sp") || modifier.starts_with("kind")) {
            return self.error("sparse and scaled products are not supported by this emulator");
        }
        self.require_flags(&["sync", "aligned"])?;
        let (m, n, k) = self.required(SHAPES)?;
        self.require_flags(&["row", "col"])?;
        let satfinite = self.flag("satfinite");
        let (d_ty, a_ty, b_ty, c_ty) = (self.mat_ty()?, self.mat_ty()?, self.mat_ty()?, self.mat_ty()?);
        self.count(4)?;
        let shape_fits = match a_ty {
            F16 => m == 16 && matches!(k, 8 | 16),
            Bf16 => m == 16 && matches!(k, 8 | 16),
            Tf32 => m == 16 && matches!(k, 4 | 8),
            F64 => (m, k) == (8, 4) || m == 16,
            S8 | U8 => (m, k) == (8, 16) || (m == 16 && matches!(k, 16 | 32)),
            S4 | U4 => (m, k) == (8, 32) || (m == 16 && matches!(k, 32 | 64)),
            E4m3 | E5m2 => m == 16 && k == 32,
            F32 | S32 => false,
        };
        if !shape_fits || n != 8 {
            return self.error("this type does not exist for this shape");
        }
        self.check_types(a_ty, b_ty, c_ty, d_ty, satfinite)?;
        let (a, b) = (self.fragment(1, a_ty, m * k / 32, false)?, self.fragment(2, b_ty, k * n / 32, false)?);
        let (c, d) = (self.fragment(3, c_ty, m * n / 32, false)?, self.fragment(0, d_ty, m * n / 32, true)?);
        let mma = Mma {
            a: Fragment::new(Part::A, m, k, a_ty, false, a),
            b: Fragment::new(Part::B, k, n, b_ty, false, b),
            c: Fragment::new(Part::C, m, n, c_ty, false, c),
            d: Fragment::new(Part::C, m, n, d_ty, false, d),
            m,
            n,
            k,
            satfinite,
        };
        Ok(vec![Instr::Mma(Box::new(mma))])
    }

    fn check_types(&self, a: MatTy, b: MatTy, c: MatTy, d: MatTy, satfinite: bool) -> Result<()> {
        let ok = match a {
            F16 => b == F16 && matches!(c, F16 | F32) && matches!(d, F16 | F32),
            Bf16 | Tf32 => b == a && c == F32 && d == F32,
            F64 => b == F64 && c == F64 && d == F64,
            S8 | U8 => matches!(b, S8 | U8) && c == S32 && d == S32,
            S4 | U4 => matches!(b, S4 | U4) && c == S32 && d == S32,
            E4m3 | E5m2 => matches!(b, E4m3 | E5m2) && c == F32 && d == F32,
            F32 | S32 => false,
        };
        if !ok || (satfinite && d != S32) {
            return self.error("these types do not exist together");
        }
        Ok(())
    }

    fn wmma(&mut self) -> Decoded {
        let what = self.required(&[("load", 'l'), ("store", 's'), ("mma", 'm')])?;
        if what == 'm' {
            return self.wmma_product();
        }
        let part = self.required(&[("a", 'a'), ("b", 'b'), ("c", 'c'), ("d", 'd')])?;
        if (part == 'd') != (what == 's') {
            return self.error("expected load.a, load.b, load.c or store.d");
        }
        self.require_flags(&["sync", "aligned"])?;
        let column_major = self.required(&[("row", false), ("col", true)])?;
        let (m, n, k) = self.required(SHAPES)?;
        let space = self.space();
        let ty = self.mat_ty()?;
        let (rows, cols) = match part {
            'a' => (m, k),
            'b' => (k, n),
            _ => (m, n),
        };
        self.check_wmma((m, n, k), ty, part)?;
        self.count_between(2, 3)?;
        let (address_at, regs_at) = if what == 'l' { (1, 0) } else { (0, 1) };
        let elements = wmma_slots(rows * cols, ty, part);
        let regs = self.fragment(regs_at, ty, elements, what == 'l')?;
        if regs.iter().any(|reg| reg.class != Class::R) {
            return self.error("wmma with .f64 is not supported by this emulator");
        }
        let wmma = WmmaMove {
            space,
            address: self.address_at(address_at, space)?,
            stride: if self.stmt.operands.len() == 3 { Some(self.src(2, Ty::U32)?) } else { None },
            rows,
            cols,
            column_major,
            ty,
            regs: regs.iter().map(|reg| reg.row).collect(),
        };
        Ok(vec![if what == 'l' { Instr::WmmaLoad(Box::new(wmma)) } else { Instr::WmmaStore(Box::new(wmma)) }])
    }

    fn check_wmma(&self, shape: Shape, ty: MatTy, part: char) -> Result<()> {
        let whole = matches!(shape, (16, 16, 16) | (32, 8, 16) | (8, 32, 16));
        let ok = match (part, ty) {
            ('a' | 'b', F16 | Bf16 | S8 | U8) => whole,
            ('a' | 'b', Tf32) => shape == (16, 16, 8),
            ('c' | 'd', F32) => whole || shape == (16, 16, 8),
            ('c' | 'd', F16 | S32) => whole,
            _ => false,
        };
        if ok { Ok(()) } else { self.error("this type does not exist for this shape") }
    }

    fn wmma_product(&mut self) -> Decoded {
        self.require_flags(&["sync", "aligned"])?;
        self.required(&[("row", ()), ("col", ())])?;
        self.required(&[("row", ()), ("col", ())])?;
        let (m, n, k) = self.required(SHAPES)?;
        let satfinite = self.flag("satfinite");
        let d_ty = self.mat_ty()?;
        let second = self.mat_ty()?;
        // f16 factors are not named: only D and C are.
        let (a_ty, b_ty, c_ty) = match self.one_of(TYPES) {
            Some(b_ty) => (second, b_ty, self.mat_ty()?),
            None => (F16, F16, second),
        };
        self.check_types(a_ty, b_ty, c_ty, d_ty, satfinite)?;
        self.check_wmma((m, n, k), a_ty, 'a')?;
        self.check_wmma((m, n, k), d_ty, 'd')?;
        self.count(4)?;
        let a = self.fragment(1, a_ty, wmma_slots(m * k, a_ty, 'a'), false)?;
        let b = self.fragment(2, b_ty, wmma_slots(k * n, b_ty, 'b'), false)?;
        let (c, d) = (self.fragment(3, c_ty, m * n / 32, false)?, self.fragment(0, d_ty, m * n / 32, true)?);
        let mma = Mma {
            a: Fragment::new(Part::A, m, k, a_ty, true, a),
            b: Fragment::new(Part::B, k, n, b_ty, true, b),
            c: Fragment::new(Part::C, m, n, c_ty, true, c),
            d: Fragment::new(Part::C, m, n, d_ty, true, d),
            m,
            n,
            k,
            satfinite,
        };
        Ok(vec![Instr::Mma(Box::new(mma))])
    }
}

/// Elements that a lane holds: fragments of f16 factors always have 16, whatever the shape.
fn wmma_slots(elements: usize, ty: MatTy, part: char) -> usize {
    if ty == F16 && matches!(part, 'a' | 'b') { 16 } else { elements / 32 }
}
