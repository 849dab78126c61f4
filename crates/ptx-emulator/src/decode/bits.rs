//! Logic, shifts, bit fields, comparison and selection.

use super::{Dec, Decoded};
use crate::error::Result;
use crate::program::{Bool, Compare, Instr, PredArg};
use crate::types::{Class, Reg, Ty};
use crate::value::float::flush;
use crate::value::half::{bf16_value, f16_value};
use crate::value::int;
use crate::value::kernel::{Kernel, cmp, n, w};

use Ty::*;

impl Dec<'_, '_, '_> {
    pub(super) fn bits(&mut self) -> Decoded {
        match self.stmt.opcode {
            "and" | "or" | "xor" | "not" => self.logic(),
            "cnot" => match self.ty_of(&[B16, B32, B64])? {
                B64 => self.map(w!(a => u64::from(a == 0)), B64, &[B64]),
                ty => self.map(n!(a => u32::from(a == 0)), ty, &[ty]),
            },
            "shl" | "shr" => self.shift(),
            "shf" => self.funnel(),
            "lop3" => self.lop3(),
            "popc" => match self.ty_of(&[B32, B64])? {
                B64 => self.map(w!(a => a.count_ones().into()), U32, &[B64]),
                ty => self.map(n!(a => a.count_ones()), U32, &[ty]),
            },
            "clz" => match self.ty_of(&[B32, B64])? {
                B64 => self.map(w!(a => a.leading_zeros().into()), U32, &[B64]),
                ty => self.map(n!(a => a.leading_zeros()), U32, &[ty]),
            },
            "brev" => match self.ty_of(&[B32, B64])? {
                B64 => self.map(w!(a => a.reverse_bits()), B64, &[B64]),
                ty => self.map(n!(a => a.reverse_bits()), ty, &[ty]),
            },
            "bfind" => self.find_top(),
            "fns" => {
                self.require_flags(&["b32"])?;
                self.map(n!(a, b, c => int::find_nth(a, b, c as i32)), B32, &[B32, B32, S32])
            }
            "bfe" => {
                let ty = self.ty_of(&[U32, S32, U64, S64])?;
                let kernel = match ty {
                    U32 => n!(a, b, c => int::extract(a.into(), b, c, 32) as u32),
                    S32 => n!(a, b, c => int::extract_signed(a.into(), b, c, 32) as u32),
                    U64 => w!(a, b, c => int::extract(a, b as u32, c as u32, 64)),
                    _ => w!(a, b, c => int::extract_signed(a, b as u32, c as u32, 64)),
                };
                self.map(kernel, ty, &[ty, U32, U32])
            }
            "bfi" => match self.ty_of(&[B32, B64])? {
                B64 => {
                    self.map(w!(a, b, c, f => int::insert(a, b, c as u32, f as u32, 64)), B64, &[B64, B64, U32, U32])
                }
                ty => self.map(
                    n!(a, b, c, f => int::insert(a.into(), b.into(), c, f, 32) as u32),
                    ty,
                    &[ty, ty, U32, U32],
                ),
            },
            "bmsk" => {
                let wrap = self.required(&[("clamp", false), ("wrap", true)])?;
                self.require_flags(&["b32"])?;
                let kernel = if wrap { n!(a, b => int::mask(a, b, true)) } else { n!(a, b => int::mask(a, b, false)) };
                self.map(kernel, B32, &[U32, U32])
            }
            "szext" => {
                let wrap = self.required(&[("clamp", false), ("wrap", true)])?;
                let ty = self.ty_of(&[U32, S32])?;
                let kernel = match (ty, wrap) {
                    (U32, false) => n!(a, b => int::extract(a.into(), 0, b.min(32), 32) as u32),
                    (U32, true) => n!(a, b => int::extract(a.into(), 0, b & 31, 32) as u32),
                    (_, false) => n!(a, b => int::extract_signed(a.into(), 0, b.min(32), 32) as u32),
                    (_, true) => n!(a, b => int::extract_signed(a.into(), 0, b & 31, 32) as u32),
                };
                self.map(kernel, ty, &[ty, U32])
            }
            _ => self.permute(),
        }
    }

    fn logic(&mut self) -> Decoded {
        let ty = self.ty_of(&[B16, B32, B64, Pred])?;
        let op = self.stmt.opcode;
        if ty == Pred {
            self.count(if op == "not" { 2 } else { 3 })?;
            let (d, a) = (self.dst(0, Pred)?.row, self.operand(1)?);
            let a = self.lower.pred(&a)?;
            if op == "not" {
                return Ok(vec![Instr::PredMove { d, a: PredArg { negated: !a.negated, ..a } }]);
            }
            let b = self.operand(2)?;
            let b = self.lower.pred(&b)?;
            let op = match op {
                "and" => Bool::And,
                "or" => Bool::Or,
                _ => Bool::Xor,
            };
            return Ok(vec![Instr::PredLogic { op, d, a, b }]);
        }
        let kernel = match (op, ty) {
            ("and", B64) => w!(a, b => a & b),
            ("or", B64) => w!(a, b => a | b),
            ("xor", B64) => w!(a, b => a ^ b),
            ("not", B64) => w!(a => !a),
            ("and", _) => n!(a, b => a & b),
            ("or", _) => n!(a, b => a | b),
            ("xor", _) => n!(a, b => a ^ b),
            (_, B16) => n!(a => !a & 0xffff),
            _ => n!(a => !a),
        };
        if op == "not" { self.map(kernel, ty, &[ty]) } else { self.map(kernel, ty, &[ty; 2]) }
    }

    fn shift(&mut self) -> Decoded {
        let ty = self.ty_of(&[B16, B32, B64, U16, U32, U64, S16, S32, S64])?;
        let kernel = match (self.stmt.opcode, ty) {
            ("shl", B16) => n!(a, b => a.checked_shl(b).unwrap_or(0) & 0xffff),
            ("shl", B32) => n!(a, b => if b > 31 { 0 } else { a << b }),
            ("shl", B64) => w!(a, b => if b > 63 { 0 } else { a << b }),
            ("shr", B16 | U16 | B32 | U32) => n!(a, b => if b > 31 { 0 } else { a >> b }),
            ("shr", B64 | U64) => w!(a, b => if b > 63 { 0 } else { a >> b }),
            ("shr", S16) => n!(a, b => (a as i16 >> b.min(15)) as u16 as u32),
            ("shr", S32) => n!(a, b => (a as i32 >> b.min(31)) as u32),
            ("shr", S64) => w!(a, b => (a as i64 >> b.min(63)) as u64),
            _ => return self.error(format!("type .{} is not allowed here", ty.name())),
        };
        self.map(kernel, ty, &[ty, U32])
    }

    fn funnel(&mut self) -> Decoded {
        let left = self.required(&[("l", true), ("r", false)])?;
        let wrap = self.required(&[("clamp", false), ("wrap", true)])?;
        self.require_flags(&["b32"])?;
        let kernel = match (left, wrap) {
            (true, true) => n!(a, b, c => int::funnel(a, b, c, true, true)),
            (true, false) => n!(a, b, c => int::funnel(a, b, c, true, false)),
            (false, true) => n!(a, b, c => int::funnel(a, b, c, false, true)),
            (false, false) => n!(a, b, c => int::funnel(a, b, c, false, false)),
        };
        self.map(kernel, B32, &[B32, B32, U32])
    }

    fn lop3(&mut self) -> Decoded {
        let combine = self.one_of(&[("or", Bool::Or), ("and", Bool::And)]);
        self.require_flags(&["b32"])?;
        let kernel = n!(a, b, c, f => int::lop3(a, b, c, f));
        let Some(combine) = combine else { return self.map(kernel, B32, &[B32, B32, B32, B32]) };
        // d|p = lop3(…), p = (d != 0) op q
        self.count(6)?;
        let first = self.operand(0)?;
        let (d, p) = self.lower.pair(&first)?;
        let q = self.operand(5)?;
        let q = self.lower.pred(&q)?;
        let sources = [self.src(1, B32)?, self.src(2, B32)?, self.src(3, B32)?, self.src(4, B32)?];
        let d = self.lower.dst(&d, B32, crate::lower::operand::Fit::Exact)?;
        let zero = self.lower.constant(Class::R, 0)?;
        let mut instrs = self.map_regs(kernel, d, &sources)?;
        let f = cmp!(n a, b => a != b);
        instrs.push(Instr::Setp { f, d: p, other: None, s: [d, zero], combine: Some((combine, q)) });
        Ok(instrs)
    }

    fn find_top(&mut self) -> Decoded {
        let amount = self.flag("shiftamt");
        let ty = self.ty_of(&[U32, S32, U64, S64])?;
        let kernel = match (ty, amount) {
            (U32, false) => n!(a => int::find_top(a.into(), 32, false, false)),
            (U32, true) => n!(a => int::find_top(a.into(), 32, false, true)),
            (S32, false) => n!(a => int::find_top(a.into(), 32, true, false)),
            (S32, true) => n!(a => int::find_top(a.into(), 32, true, true)),
            (U64, false) => w!(a => int::find_top(a, 64, false, false).into()),
            (U64, true) => w!(a => int::find_top(a, 64, false, true).into()),
            (_, false) => w!(a => int::find_top(a, 64, true, false).into()),
            (_, true) => w!(a => int::find_top(a, 64, true, true).into()),
        };
        self.map(kernel, U32, &[ty])
    }

    fn permute(&mut self) -> Decoded {
        self.require_flags(&["b32"])?;
        let mode = self.one_of(&[("f4e", 1), ("b4e", 2), ("rc8", 3), ("ecl", 4), ("ecr", 5), ("rc16", 6)]);
        let kernel = match mode {
            None => n!(a, b, c => int::permute(a, b, c)),
            Some(1) => n!(a, b, c => int::permute(a, b, int::permute_mode("f4e", c).unwrap_or(0))),
            Some(2) => n!(a, b, c => int::permute(a, b, int::permute_mode("b4e", c).unwrap_or(0))),
            Some(3) => n!(a, b, c => int::permute(a, b, int::permute_mode("rc8", c).unwrap_or(0))),
            Some(4) => n!(a, b, c => int::permute(a, b, int::permute_mode("ecl", c).unwrap_or(0))),
            Some(5) => n!(a, b, c => int::permute(a, b, int::permute_mode("ecr", c).unwrap_or(0))),
            Some(_) => n!(a, b, c => int::permute(a, b, int::permute_mode("rc16", c).unwrap_or(0))),
        };
        self.map(kernel, B32, &[B32, B32, B32])
    }

    pub(super) fn compare(&mut self) -> Decoded {
        match self.stmt.opcode {
            "selp" => {
                let ty = self.ty()?;
                self.count(4)?;
                let p = self.operand(3)?;
                let p = self.lower.pred(&p)?;
                let (a, b) = (self.src(1, ty)?, self.src(2, ty)?);
                Ok(vec![Instr::Select { d: self.dst(0, ty)?, a, b, p }])
            }
            "slct" => {
                let ftz = self.flag("ftz");
                let ty = self.ty()?;
                let by = self.ty_of(&[S32, F32])?;
                let kernel = match (ty.bits(), by, ftz) {
                    (64, S32, _) => w!(a, b, c => if c as i32 >= 0 { a } else { b }),
                    (64, ..) => w!(a, b, c => if f32::from_bits(c as u32) >= 0.0 { a } else { b }),
                    (_, S32, _) => n!(a, b, c => if c as i32 >= 0 { a } else { b }),
                    (_, _, true) => n!(a, b, c => if flush(f32::from_bits(c)) >= 0.0 { a } else { b }),
                    _ => n!(a, b, c => if f32::from_bits(c) >= 0.0 { a } else { b }),
                };
                self.map(kernel, ty, &[ty, ty, by])
            }
            "set" => self.set(),
            _ => self.setp(),
        }
    }

    fn comparison(&mut self) -> Result<(&'static str, Option<Bool>, bool)> {
        let names = [
            "eq", "ne", "lt", "le", "gt", "ge", "lo", "ls", "hi", "hs", "equ", "neu", "ltu", "leu", "gtu", "geu",
            "num", "nan",
        ];
        let how = self.required(&names.map(|name| (name, name)))?;
        let combine = self.one_of(&[("and", Bool::And), ("or", Bool::Or), ("xor", Bool::Xor)]);
        Ok((how, combine, self.flag("ftz")))
    }

    fn combine(&mut self, combine: Option<Bool>) -> Result<Option<(Bool, PredArg)>> {
        let Some(op) = combine else {
            self.count(3)?;
            return Ok(None);
        };
        self.count(4)?;
        let operand = self.operand(3)?;
        Ok(Some((op, self.lower.pred(&operand)?)))
    }

    fn setp(&mut self) -> Decoded {
        let (how, combine, ftz) = self.comparison()?;
        let ty = self.ty()?;
        let combine = self.combine(combine)?;
        let s = [self.src(1, ty)?, self.src(2, ty)?];
        let first = self.operand(0)?;
        let (d, other) = self.lower.pair(&first)?;
        let d = self.lower.dst_or_sink(&d, Pred, crate::lower::operand::Fit::Exact)?.map(|reg| reg.row);
        if matches!(ty, F16x2 | Bf16x2) {
            let f = [self.comparer(how, ty, ftz, 0)?, self.comparer(how, ty, ftz, 16)?];
            return Ok(vec![Instr::SetpHalves { f, d, other, s, combine }]);
        }
        let f = self.comparer(how, ty, ftz, 0)?;
        Ok(vec![Instr::Setp { f, d, other, s, combine }])
    }

    fn set(&mut self) -> Decoded {
        let (how, combine, ftz) = self.comparison()?;
        let to = self.ty_of(&[U32, S32, F32, F16, Bf16, U16, S16])?;
        let ty = self.ty()?;
        let combine = self.combine(combine)?;
        let s: [Reg; 2] = [self.src(1, ty)?, self.src(2, ty)?];
        let f = self.comparer(how, ty, ftz, 0)?;
        let one = match to {
            F32 => 1.0_f32.to_bits(),
            F16 => 0x3c00,
            Bf16 => 0x3f80,
            U16 | S16 => 0xffff,
            _ => u32::MAX,
        };
        Ok(vec![Instr::Set { f, d: self.dst(0, to)?, one, s, combine }])
    }

    fn comparer(&self, how: &str, ty: Ty, ftz: bool, shift: u32) -> Result<Compare> {
        macro_rules! floats {
            ($kind:ident, $value:expr) => {
                match how {
                    "eq" => cmp!($kind a, b => $value(a) == $value(b)),
                    "ne" => cmp!($kind a, b => $value(a) < $value(b) || $value(a) > $value(b)),
                    "lt" => cmp!($kind a, b => $value(a) < $value(b)),
                    "le" => cmp!($kind a, b => $value(a) <= $value(b)),
                    "gt" => cmp!($kind a, b => $value(a) > $value(b)),
                    "ge" => cmp!($kind a, b => $value(a) >= $value(b)),
                    "equ" => cmp!($kind a, b => !($value(a) < $value(b) || $value(a) > $value(b))),
                    "neu" => cmp!($kind a, b => $value(a) != $value(b)),
                    "ltu" => cmp!($kind a, b => !($value(a) >= $value(b))),
                    "leu" => cmp!($kind a, b => !($value(a) > $value(b))),
                    "gtu" => cmp!($kind a, b => !($value(a) <= $value(b))),
                    "geu" => cmp!($kind a, b => !($value(a) < $value(b))),
                    "num" => cmp!($kind a, b => !$value(a).is_nan() && !$value(b).is_nan()),
                    "nan" => cmp!($kind a, b => $value(a).is_nan() || $value(b).is_nan()),
                    _ => return self.error(format!("`.{how}` does not compare .{}", ty.name())),
                }
            };
        }
        macro_rules! integers {
            ($kind:ident, $value:expr) => {
                match how {
                    "eq" => cmp!($kind a, b => $value(a) == $value(b)),
                    "ne" => cmp!($kind a, b => $value(a) != $value(b)),
                    "lt" | "lo" => cmp!($kind a, b => $value(a) < $value(b)),
                    "le" | "ls" => cmp!($kind a, b => $value(a) <= $value(b)),
                    "gt" | "hi" => cmp!($kind a, b => $value(a) > $value(b)),
                    "ge" | "hs" => cmp!($kind a, b => $value(a) >= $value(b)),
                    _ => return self.error(format!("`.{how}` does not compare .{}", ty.name())),
                }
            };
        }
        let equality = matches!(how, "eq" | "ne");
        let unsigned_name = matches!(how, "lo" | "ls" | "hi" | "hs");
        Ok(match ty {
            B16 | B32 if equality => integers!(n, |x: u32| x),
            B64 if equality => integers!(w, |x: u64| x),
            U16 | U32 => integers!(n, |x: u32| x),
            U64 => integers!(w, |x: u64| x),
            S16 if !unsigned_name => integers!(n, |x: u32| x as i16),
            S32 if !unsigned_name => integers!(n, |x: u32| x as i32),
            S64 if !unsigned_name => integers!(w, |x: u64| x as i64),
            F32 if ftz => floats!(n, |x: u32| flush(f32::from_bits(x))),
            F32 => floats!(n, f32::from_bits),
            F64 => floats!(w, f64::from_bits),
            F16 => floats!(n, |x: u32| f16_value(x & 0xffff)),
            Bf16 => floats!(n, |x: u32| bf16_value(x & 0xffff)),
            F16x2 if shift == 0 => floats!(n, |x: u32| f16_value(x & 0xffff)),
            F16x2 => floats!(n, |x: u32| f16_value(x >> 16)),
            Bf16x2 if shift == 0 => floats!(n, |x: u32| bf16_value(x & 0xffff)),
            Bf16x2 => floats!(n, |x: u32| bf16_value(x >> 16)),
            _ => return self.error(format!("`.{how}` does not compare .{}", ty.name())),
        })
    }
}

/// Sign or zero extension and truncation, as kernels.
pub(super) fn resize(from: Ty, to: Ty, width: u32) -> Option<Kernel> {
    Some(match (from, to, width) {
        (U32 | B32, U64 | S64, 64) => w!(a => a),
        (S32, U64 | S64, 64) => w!(a => a as u32 as i32 as i64 as u64),
        (U64 | S64, U32 | S32, 32) => w!(a => a),
        (U32 | S32, U32 | S32, 32) => n!(a => a),
        (U16, U32 | S32, 32) => n!(a => a & 0xffff),
        (S16, U32 | S32, 32) => n!(a => a as u16 as i16 as i32 as u32),
        (U32 | S32, U16, 16) => n!(a => a & 0xffff),
        (U64 | S64, U64 | S64, 64) => w!(a => a),
        _ => return None,
    })
}
