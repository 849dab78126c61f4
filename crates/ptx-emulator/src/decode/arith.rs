//! Integer arithmetic; floating types go on to [`super::float`].

use super::{Dec, Decoded};
use crate::program::{Carry, Instr};
use crate::types::Ty;
use crate::value::int::{self, halves};
use crate::value::kernel::{Kernel, n, w};

use Ty::*;

impl Dec<'_, '_, '_> {
    pub(super) fn arith(&mut self) -> Decoded {
        let op = self.stmt.opcode;
        match op {
            "dp4a" | "dp2a" => return self.dot(op),
            "mul24" | "mad24" => return self.mul24(op),
            _ => {}
        }
        if self.left.iter().any(|modifier| Ty::parse(modifier).is_some_and(Ty::is_float)) {
            return self.float_arith();
        }
        if self.left.contains(&"cc") || matches!(op, "addc" | "subc" | "madc") {
            return self.carry(op);
        }
        match op {
            "mul" => self.mul(),
            "mad" => self.mad(),
            _ => self.integer(op),
        }
    }

    fn integer(&mut self, op: &str) -> Decoded {
        let sat = self.flag("sat");
        let relu = self.flag("relu");
        let ty = self.ty()?;
        let kernel = match (op, ty) {
            ("add", S32) if sat => n!(a, b => (a as i32).saturating_add(b as i32) as u32),
            ("sub", S32) if sat => n!(a, b => (a as i32).saturating_sub(b as i32) as u32),
            _ if sat => return self.error("`.sat` needs .s32"),
            ("min", S32) if relu => n!(a, b => (a as i32).min(b as i32).max(0) as u32),
            ("max", S32) if relu => n!(a, b => (a as i32).max(b as i32).max(0) as u32),
            ("min", S16x2) if relu => n!(a, b => halves(a, b, |a, b| (a as i16).min(b as i16).max(0) as u32)),
            ("max", S16x2) if relu => n!(a, b => halves(a, b, |a, b| (a as i16).max(b as i16).max(0) as u32)),
            _ if relu => return self.error("`.relu` needs .s32 or .s16x2"),
            ("add", U16 | S16) => n!(a, b => a.wrapping_add(b) & 0xffff),
            ("add", U32 | S32) => n!(a, b => a.wrapping_add(b)),
            ("add", U64 | S64) => w!(a, b => a.wrapping_add(b)),
            ("add", U16x2 | S16x2) => n!(a, b => halves(a, b, |a, b| a.wrapping_add(b))),
            ("sub", U16 | S16) => n!(a, b => a.wrapping_sub(b) & 0xffff),
            ("sub", U32 | S32) => n!(a, b => a.wrapping_sub(b)),
            ("sub", U64 | S64) => w!(a, b => a.wrapping_sub(b)),
            ("min", U16 | U32) => n!(a, b => a.min(b)),
            ("min", S16) => n!(a, b => (a as i16).min(b as i16) as u16 as u32),
            ("min", S32) => n!(a, b => (a as i32).min(b as i32) as u32),
            ("min", U64) => w!(a, b => a.min(b)),
            ("min", S64) => w!(a, b => (a as i64).min(b as i64) as u64),
            ("min", U16x2) => n!(a, b => halves(a, b, |a, b| a.min(b))),
            ("min", S16x2) => n!(a, b => halves(a, b, |a, b| (a as i16).min(b as i16) as u32)),
            ("max", U16 | U32) => n!(a, b => a.max(b)),
            ("max", S16) => n!(a, b => (a as i16).max(b as i16) as u16 as u32),
            ("max", S32) => n!(a, b => (a as i32).max(b as i32) as u32),
            ("max", U64) => w!(a, b => a.max(b)),
            ("max", S64) => w!(a, b => (a as i64).max(b as i64) as u64),
            ("max", U16x2) => n!(a, b => halves(a, b, |a, b| a.max(b))),
            ("max", S16x2) => n!(a, b => halves(a, b, |a, b| (a as i16).max(b as i16) as u32)),
            ("abs", S16) => n!(a => (a as i16).wrapping_abs() as u16 as u32),
            ("abs", S32) => n!(a => (a as i32).wrapping_abs() as u32),
            ("abs", S64) => w!(a => (a as i64).wrapping_abs() as u64),
            ("neg", S16) => n!(a => (a as i16).wrapping_neg() as u16 as u32),
            ("neg", S32) => n!(a => a.wrapping_neg()),
            ("neg", S64) => w!(a => a.wrapping_neg()),
            // Division by zero is undefined and reported where it happens; the value is all ones as on hardware.
            ("div", U16) => n!(a, b => a.checked_div(b).unwrap_or(0xffff)),
            ("div", U32) => n!(a, b => a.checked_div(b).unwrap_or(u32::MAX)),
            ("div", U64) => w!(a, b => a.checked_div(b).unwrap_or(u64::MAX)),
            ("div", S16) => n!(a, b => if b == 0 { 0xffff } else { (a as i16).wrapping_div(b as i16) as u16 as u32 }),
            ("div", S32) => n!(a, b => if b == 0 { u32::MAX } else { (a as i32).wrapping_div(b as i32) as u32 }),
            ("div", S64) => w!(a, b => if b == 0 { u64::MAX } else { (a as i64).wrapping_div(b as i64) as u64 }),
            ("rem", U16 | U32) => n!(a, b => a.checked_rem(b).unwrap_or(a)),
            ("rem", U64) => w!(a, b => a.checked_rem(b).unwrap_or(a)),
            ("rem", S16) => n!(a, b => if b == 0 { a } else { (a as i16).wrapping_rem(b as i16) as u16 as u32 }),
            ("rem", S32) => n!(a, b => if b == 0 { a } else { (a as i32).wrapping_rem(b as i32) as u32 }),
            ("rem", S64) => w!(a, b => if b == 0 { a } else { (a as i64).wrapping_rem(b as i64) as u64 }),
            ("sad", U16) => n!(a, b, c => c.wrapping_add(a.abs_diff(b)) & 0xffff),
            ("sad", S16) => n!(a, b, c => c.wrapping_add((a as i16).abs_diff(b as i16).into()) & 0xffff),
            ("sad", U32) => n!(a, b, c => c.wrapping_add(a.abs_diff(b))),
            ("sad", S32) => n!(a, b, c => c.wrapping_add((a as i32).abs_diff(b as i32))),
            ("sad", U64) => w!(a, b, c => c.wrapping_add(a.abs_diff(b))),
            ("sad", S64) => w!(a, b, c => c.wrapping_add((a as i64).abs_diff(b as i64))),
            _ => return self.error(format!("type .{} is not allowed here", ty.name())),
        };
        let sources: &[Ty] = match op {
            "abs" | "neg" => &[ty],
            "sad" => &[ty; 3],
            _ => &[ty; 2],
        };
        let mut instrs = self.map(kernel, ty, sources)?;
        if matches!(op, "div" | "rem") {
            let divisor = self.src(2, ty)?;
            instrs.insert(0, Instr::CheckDivisor { s: divisor });
        }
        Ok(instrs)
    }

    fn mul(&mut self) -> Decoded {
        let part = self.required(&[("lo", 'l'), ("hi", 'h'), ("wide", 'w')])?;
        let ty = self.ty()?;
        let Some(kernel) = product(part, ty, false) else {
            return self.error(format!("type .{} is not allowed here", ty.name()));
        };
        self.map(kernel, if part == 'w' { twice(ty) } else { ty }, &[ty, ty])
    }

    fn mad(&mut self) -> Decoded {
        let part = self.required(&[("lo", 'l'), ("hi", 'h'), ("wide", 'w')])?;
        let sat = self.flag("sat");
        let ty = self.ty()?;
        let kernel = match (part, ty, sat) {
            ('h', S32, true) => {
                n!(a, b, c => ((i64::from(a as i32) * i64::from(b as i32) >> 32) as i32).saturating_add(c as i32) as u32)
            }
            (_, _, true) => return self.error("`.sat` needs .hi.s32"),
            _ => match product(part, ty, true) {
                Some(kernel) => kernel,
                None => return self.error(format!("type .{} is not allowed here", ty.name())),
            },
        };
        let to = if part == 'w' { twice(ty) } else { ty };
        self.map(kernel, to, &[ty, ty, to])
    }

    /// `mul24` and `mad24`: the low 24 bits of each, the low or high 32 of the 48 of the product.
    fn mul24(&mut self, op: &str) -> Decoded {
        let high = self.required(&[("lo", false), ("hi", true)])?;
        let sat = self.flag("sat");
        let ty = self.ty_of(&[U32, S32])?;
        let add = op == "mad24";
        let kernel = match (ty, high, add) {
            (U32, false, false) => n!(a, b => mul24(a, b, false) as u32),
            (U32, true, false) => n!(a, b => (mul24(a, b, false) >> 16) as u32),
            (_, false, false) => n!(a, b => mul24(a, b, true) as u32),
            (_, true, false) => n!(a, b => (mul24(a, b, true) >> 16) as u32),
            (S32, true, true) if sat => {
                n!(a, b, c => ((mul24(a, b, true) >> 16) as i32).saturating_add(c as i32) as u32)
            }
            (U32, false, true) => n!(a, b, c => (mul24(a, b, false) as u32).wrapping_add(c)),
            (U32, true, true) => n!(a, b, c => ((mul24(a, b, false) >> 16) as u32).wrapping_add(c)),
            (_, false, true) => n!(a, b, c => (mul24(a, b, true) as u32).wrapping_add(c)),
            (_, true, true) => n!(a, b, c => ((mul24(a, b, true) >> 16) as u32).wrapping_add(c)),
        };
        if add { self.map(kernel, ty, &[ty; 3]) } else { self.map(kernel, ty, &[ty; 2]) }
    }

    fn dot(&mut self, op: &str) -> Decoded {
        let high = if op == "dp2a" { self.required(&[("lo", false), ("hi", true)])? } else { false };
        let a_ty = self.ty_of(&[U32, S32])?;
        let b_ty = self.ty_of(&[U32, S32])?;
        let kernel = match (op, a_ty == S32, b_ty == S32, high) {
            ("dp4a", false, false, _) => n!(a, b, c => int::dot4(a, b, c, false, false)),
            ("dp4a", false, true, _) => n!(a, b, c => int::dot4(a, b, c, false, true)),
            ("dp4a", true, false, _) => n!(a, b, c => int::dot4(a, b, c, true, false)),
            ("dp4a", true, true, _) => n!(a, b, c => int::dot4(a, b, c, true, true)),
            (_, false, false, false) => n!(a, b, c => int::dot2(a, b, c, false, false, false)),
            (_, false, true, false) => n!(a, b, c => int::dot2(a, b, c, false, true, false)),
            (_, true, false, false) => n!(a, b, c => int::dot2(a, b, c, true, false, false)),
            (_, true, true, false) => n!(a, b, c => int::dot2(a, b, c, true, true, false)),
            (_, false, false, true) => n!(a, b, c => int::dot2(a, b, c, false, false, true)),
            (_, false, true, true) => n!(a, b, c => int::dot2(a, b, c, false, true, true)),
            (_, true, false, true) => n!(a, b, c => int::dot2(a, b, c, true, false, true)),
            (_, true, true, true) => n!(a, b, c => int::dot2(a, b, c, true, true, true)),
        };
        let result = if a_ty == S32 || b_ty == S32 { S32 } else { U32 };
        self.map(kernel, result, &[B32, B32, result])
    }

    /// `add.cc`, `addc`, `sub.cc`, `subc`, `mad.cc` and `madc`.
    fn carry(&mut self, op: &str) -> Decoded {
        let carry_out = self.flag("cc");
        let is_mad = op.starts_with("mad");
        let high = is_mad && self.required(&[("lo", false), ("hi", true)])?;
        let ty = self.ty_of(&[U32, S32, U64, S64])?;
        self.count(if is_mad { 4 } else { 3 })?;
        let c = if is_mad { self.src(3, ty)? } else { self.src(2, ty)? };
        let carry = Carry {
            wide: ty.bits() == 64,
            subtract: op.starts_with("sub"),
            carry_in: op.ends_with('c'),
            carry_out,
            product: is_mad.then_some((high, ty.is_signed())),
            s: [self.src(1, ty)?, self.src(2, ty)?, c],
            d: self.dst(0, ty)?,
        };
        Ok(vec![Instr::Carry(Box::new(carry))])
    }
}

fn mul24(a: u32, b: u32, signed: bool) -> i64 {
    let low = |x: u32| if signed { int::extend(x.into(), 24) } else { i64::from(x & 0xff_ffff) };
    low(a) * low(b)
}

fn twice(ty: Ty) -> Ty {
    match ty {
        U16 => U32,
        S16 => S32,
        U32 => U64,
        S32 => S64,
        _ => ty,
    }
}

/// `mul` and `mad`: a part of the product, perhaps with c added.
fn product(part: char, ty: Ty, add: bool) -> Option<Kernel> {
    Some(match (part, ty, add) {
        ('l', U16 | S16, false) => n!(a, b => a.wrapping_mul(b) & 0xffff),
        ('l', U32 | S32, false) => n!(a, b => a.wrapping_mul(b)),
        ('l', U64 | S64, false) => w!(a, b => a.wrapping_mul(b)),
        ('h', U16, false) => n!(a, b => a.wrapping_mul(b) >> 16),
        ('h', S16, false) => n!(a, b => (i32::from(a as i16) * i32::from(b as i16)) as u32 >> 16),
        ('h', U32, false) => n!(a, b => (u64::from(a) * u64::from(b) >> 32) as u32),
        ('h', S32, false) => n!(a, b => (i64::from(a as i32) * i64::from(b as i32) >> 32) as u32),
        ('h', U64, false) => w!(a, b => (u128::from(a) * u128::from(b) >> 64) as u64),
        ('h', S64, false) => w!(a, b => (i128::from(a as i64) * i128::from(b as i64) >> 64) as u64),
        ('w', U16, false) => n!(a, b => a.wrapping_mul(b)),
        ('w', S16, false) => n!(a, b => (i32::from(a as i16) * i32::from(b as i16)) as u32),
        ('w', U32, false) => w!(a, b => (a & 0xffff_ffff) * (b & 0xffff_ffff)),
        ('w', S32, false) => w!(a, b => (i64::from(a as i32) * i64::from(b as i32)) as u64),
        ('l', U16 | S16, true) => n!(a, b, c => a.wrapping_mul(b).wrapping_add(c) & 0xffff),
        ('l', U32 | S32, true) => n!(a, b, c => a.wrapping_mul(b).wrapping_add(c)),
        ('l', U64 | S64, true) => w!(a, b, c => a.wrapping_mul(b).wrapping_add(c)),
        ('h', U16, true) => n!(a, b, c => (a.wrapping_mul(b) >> 16).wrapping_add(c) & 0xffff),
        ('h', S16, true) => {
            n!(a, b, c => ((i32::from(a as i16) * i32::from(b as i16)) as u32 >> 16).wrapping_add(c) & 0xffff)
        }
        ('h', U32, true) => n!(a, b, c => ((u64::from(a) * u64::from(b) >> 32) as u32).wrapping_add(c)),
        ('h', S32, true) => n!(a, b, c => ((i64::from(a as i32) * i64::from(b as i32) >> 32) as u32).wrapping_add(c)),
        ('h', U64, true) => w!(a, b, c => ((u128::from(a) * u128::from(b) >> 64) as u64).wrapping_add(c)),
        ('h', S64, true) => w!(a, b, c => ((i128::from(a as i64) * i128::from(b as i64) >> 64) as u64).wrapping_add(c)),
        ('w', U16, true) => n!(a, b, c => a.wrapping_mul(b).wrapping_add(c)),
        ('w', S16, true) => n!(a, b, c => ((i32::from(a as i16) * i32::from(b as i16)) as u32).wrapping_add(c)),
        ('w', U32, true) => w!(a, b, c => ((a & 0xffff_ffff) * (b & 0xffff_ffff)).wrapping_add(c)),
        ('w', S32, true) => w!(a, b, c => ((i64::from(a as i32) * i64::from(b as i32)) as u64).wrapping_add(c)),
        _ => return None,
    })
}
