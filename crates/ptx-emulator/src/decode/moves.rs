//! `mov`: registers, constants, addresses, special registers, packing and unpacking.

use super::{Dec, Decoded};
use crate::lower::operand::Fit;
use crate::program::{Clock, Instr};
use crate::text::ast::Kind;
use crate::types::Ty;
use crate::value::kernel::{n, w};

use Ty::*;

impl Dec<'_, '_, '_> {
    pub(super) fn mov(&mut self) -> Decoded {
        let ty = self.ty()?;
        self.count(2)?;
        let (to, from) = (self.operand(0)?, self.operand(1)?);
        if ty == Pred {
            let d = self.dst(0, Pred)?.row;
            return Ok(vec![Instr::PredMove { d, a: self.lower.pred(&from)? }]);
        }
        if let Kind::Vector(parts) = &from.kind {
            let bits = self.part_bits(ty, parts.len())?;
            let mut s = Vec::new();
            for part in parts {
                s.push(self.lower.src(part, bits_type(bits), Fit::Exact)?);
            }
            let d = self.lower.dst(&to, ty, Fit::Exact)?;
            return Ok(vec![Instr::Pack { d, s: s.into(), bits }]);
        }
        if let Kind::Vector(parts) = &to.kind {
            let bits = self.part_bits(ty, parts.len())?;
            let mut d = Vec::new();
            for part in parts {
                d.push(self.lower.dst_or_sink(part, bits_type(bits), Fit::Exact)?);
            }
            let s = self.lower.src(&from, ty, Fit::Exact)?;
            return Ok(vec![Instr::Unpack { d: d.into(), s, bits }]);
        }
        if let Kind::Name(name, None) = from.kind {
            let clock = match name {
                "%clock" | "%clock_hi" | "%globaltimer_lo" | "%globaltimer_hi" => Some(Clock::Clock32),
                "%clock64" => Some(Clock::Clock64),
                "%globaltimer" => Some(Clock::Nanoseconds),
                _ => None,
            };
            if let Some(kind) = clock {
                return Ok(vec![Instr::Clock { kind, d: self.lower.dst(&to, ty, Fit::Exact)? }]);
            }
        }
        match ty.bits() {
            64 => self.map(w!(a => a), ty, &[ty]),
            32 => self.map(n!(a => a), ty, &[ty]),
            16 => self.map(n!(a => a & 0xffff), ty, &[ty]),
            _ => self.error(format!("type .{} is not allowed here", ty.name())),
        }
    }

    fn part_bits(&self, ty: Ty, parts: usize) -> crate::error::Result<u32> {
        let bits = ty.bits();
        if !matches!(parts, 2 | 4) || !matches!(bits / parts as u32, 8 | 16 | 32) || bits > 64 {
            return self.error(format!("{parts} parts do not make a .{}", ty.name()));
        }
        Ok(bits / parts as u32)
    }
}

fn bits_type(bits: u32) -> Ty {
    match bits {
        8 => B8,
        16 => B16,
        32 => B32,
        _ => B64,
    }
}
