//! Floating arithmetic and functions.

use super::{Dec, Decoded};
use crate::program::{Compare, Instr};
use crate::types::Ty;
use crate::value::approx::{Approx, Function};
use crate::value::float::{self, Arith};
use crate::value::half::{self, Half, HalfMode, HalfOp};
use crate::value::kernel::{Kernel, cmp, n, w};
use crate::value::round::Round;

use Ty::*;

impl Dec<'_, '_, '_> {
    pub(super) fn float_arith(&mut self) -> Decoded {
        let op = self.stmt.opcode;
        let mode = self.round();
        let (ftz, sat, relu) = (self.flag("ftz"), self.flag("sat"), self.flag("relu"));
        let (nan, xorsign) = (self.flag("NaN"), self.flag("xorsign"));
        let abs = xorsign && self.flag("abs");
        if xorsign && !abs {
            return self.error("`.xorsign` comes with `.abs`");
        }
        let (approx, full) = (self.flag("approx"), self.flag("full"));
        let oob = self.flag("oob");
        let ty = self.ty_of(&[F16, F16x2, Bf16, Bf16x2, F32, F64])?;
        if oob {
            return self.error("`.oob` is not supported");
        }
        if matches!(ty, F16 | F16x2 | Bf16 | Bf16x2) {
            if !matches!(mode, None | Some(Round::Nearest)) || approx || full {
                return self.error(format!("rounding is .rn for .{}", ty.name()));
            }
            return self.half_arith(op, ty, HalfMode { half: half_of(ty), ftz, sat, relu, nan, xorsign });
        }
        if relu {
            return self.error(format!("`.relu` is not allowed for .{}", ty.name()));
        }
        if ty == F64 && (ftz || sat || nan || xorsign) {
            return self.error("`.ftz`, `.sat` and `.NaN` are not allowed for .f64");
        }
        if matches!(op, "min" | "max" | "abs" | "neg") {
            let kernel = if ty == F32 {
                Kernel::N(float::simple32(op, ftz, nan, xorsign))
            } else {
                Kernel::W(float::simple64(op))
            };
            return if matches!(op, "abs" | "neg") {
                self.map(kernel, ty, &[ty])
            } else {
                self.map(kernel, ty, &[ty; 2])
            };
        }
        if approx || full {
            if op != "div" || ty != F32 {
                return self.error("`.approx` and `.full` need div.f32");
            }
            let function = if full { Function::DivideFull } else { Function::Divide };
            return self.approximate(Approx { function, ty, ftz }, 2);
        }
        let arith = match op {
            "add" => Arith::Add,
            "sub" => Arith::Sub,
            "mul" => Arith::Mul,
            "fma" | "mad" => Arith::Fma,
            "div" => Arith::Div,
            _ => return self.error(format!("type .{} is not allowed here", ty.name())),
        };
        if mode.is_none() && matches!(arith, Arith::Fma | Arith::Div) {
            return self.error("expected one of .rn, .rz, .rm, .rp");
        }
        self.rounded(arith, mode.unwrap_or(Round::Nearest), ty, ftz, sat)
    }

    fn rounded(&mut self, arith: Arith, mode: Round, ty: Ty, ftz: bool, sat: bool) -> Decoded {
        let kernel = if ty == F32 {
            Kernel::N(float::rounded32(arith, mode, ftz, sat))
        } else {
            Kernel::W(float::rounded64(arith, mode))
        };
        match arith {
            Arith::Fma => self.map(kernel, ty, &[ty; 3]),
            Arith::Sqrt => self.map(kernel, ty, &[ty]),
            _ => self.map(kernel, ty, &[ty; 2]),
        }
    }

    fn half_arith(&mut self, op: &str, ty: Ty, mode: HalfMode) -> Decoded {
        let op = match op {
            "add" => HalfOp::Add,
            "sub" => HalfOp::Sub,
            "mul" => HalfOp::Mul,
            "fma" => HalfOp::Fma,
            "neg" => HalfOp::Neg,
            "abs" => HalfOp::Abs,
            "min" => HalfOp::Min,
            "max" => HalfOp::Max,
            _ => return self.error(format!("type .{} is not allowed here", ty.name())),
        };
        let Some(kernel) = half::kernel(op, mode, matches!(ty, F16x2 | Bf16x2)) else {
            return self.error(format!("these modifiers do not exist together for .{}", ty.name()));
        };
        match op {
            HalfOp::Neg | HalfOp::Abs => self.map(kernel, ty, &[ty]),
            HalfOp::Fma => self.map(kernel, ty, &[ty; 3]),
            _ => self.map(kernel, ty, &[ty; 2]),
        }
    }

    fn approximate(&mut self, f: Approx, sources: usize) -> Decoded {
        self.count(sources + 1)?;
        let a = self.src(1, f.ty)?;
        let b = if sources == 2 { self.src(2, f.ty)? } else { a };
        Ok(vec![Instr::Approx { f, d: self.dst(0, f.ty)?, s: [a, b] }])
    }

    pub(super) fn function(&mut self) -> Decoded {
        let op = self.stmt.opcode;
        match op {
            "copysign" => {
                return match self.ty_of(&[F32, F64])? {
                    F32 => self.map(n!(a, b => b & 0x7fff_ffff | a & 0x8000_0000), F32, &[F32; 2]),
                    ty => self.map(w!(a, b => b & !(1 << 63) | a & 1 << 63), ty, &[ty; 2]),
                };
            }
            "testp" => return self.test(),
            _ => {}
        }
        let (approx, mode) = (self.flag("approx"), self.round());
        let ftz = self.flag("ftz");
        let ty = self.ty()?;
        let (function, types): (_, &[Ty]) = match op {
            "rcp" => (Function::Reciprocal, &[F32, F64]),
            "sqrt" => (Function::Root, &[F32, F64]),
            "rsqrt" => (Function::ReciprocalRoot, &[F32, F64]),
            "sin" => (Function::Sin, &[F32]),
            "cos" => (Function::Cos, &[F32]),
            "lg2" => (Function::Log2, &[F32]),
            "ex2" => (Function::Exp2, &[F32, F16, F16x2, Bf16, Bf16x2]),
            _ => (Function::Tanh, &[F32, F16, F16x2, Bf16, Bf16x2]),
        };
        if !types.contains(&ty) {
            return self.error(format!("type .{} is not allowed here", ty.name()));
        }
        match (op, mode) {
            ("sqrt", Some(mode)) if !approx => self.rounded(Arith::Sqrt, mode, ty, ftz, false),
            ("rcp", Some(mode)) if !approx => {
                let one = if ty == F32 { u64::from(1.0_f32.to_bits()) } else { 1.0_f64.to_bits() };
                let kernel = if ty == F32 {
                    Kernel::N(float::rounded32(Arith::Div, mode, ftz, false))
                } else {
                    Kernel::W(float::rounded64(Arith::Div, mode))
                };
                self.count(2)?;
                let x = self.src(1, ty)?;
                let one = self.lower.constant(x.class, one)?;
                let d = self.dst(0, ty)?;
                self.map_regs(kernel, d, &[one, x])
            }
            (_, None) if approx => {
                if ty == F64 && (op == "sqrt" || !ftz) {
                    return self.error("`.approx.f64` exists as rcp.approx.ftz.f64 and rsqrt.approx.ftz.f64");
                }
                self.approximate(Approx { function, ty, ftz }, 1)
            }
            _ => self.error("expected `.approx` or a rounding such as .rn"),
        }
    }

    fn test(&mut self) -> Decoded {
        let what = self.required(&[
            ("finite", 0),
            ("infinite", 1),
            ("number", 2),
            ("notanumber", 3),
            ("normal", 4),
            ("subnormal", 5),
        ])?;
        let ty = self.ty_of(&[F32, F64])?;
        self.count(2)?;
        let s = self.src(1, ty)?;
        let d = self.dst(0, Pred)?.row;
        let f: Compare = match (what, ty) {
            (0, F32) => cmp!(n a, _b => f32::from_bits(a).is_finite()),
            (1, F32) => cmp!(n a, _b => f32::from_bits(a).is_infinite()),
            (2, F32) => cmp!(n a, _b => !f32::from_bits(a).is_nan()),
            (3, F32) => cmp!(n a, _b => f32::from_bits(a).is_nan()),
            (4, F32) => cmp!(n a, _b => f32::from_bits(a).is_normal()),
            (_, F32) => cmp!(n a, _b => f32::from_bits(a).is_subnormal()),
            (0, _) => cmp!(w a, _b => f64::from_bits(a).is_finite()),
            (1, _) => cmp!(w a, _b => f64::from_bits(a).is_infinite()),
            (2, _) => cmp!(w a, _b => !f64::from_bits(a).is_nan()),
            (3, _) => cmp!(w a, _b => f64::from_bits(a).is_nan()),
            (4, _) => cmp!(w a, _b => f64::from_bits(a).is_normal()),
            _ => cmp!(w a, _b => f64::from_bits(a).is_subnormal()),
        };
        Ok(vec![Instr::Setp { f, d: Some(d), other: None, s: [s, s], combine: None }])
    }
}

fn half_of(ty: Ty) -> Half {
    if matches!(ty, F16 | F16x2) { Half::F16 } else { Half::Bf16 }
}
