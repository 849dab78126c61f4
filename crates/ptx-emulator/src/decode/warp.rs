//! What the lanes of a warp do together.

use super::{Dec, Decoded};
use crate::error::Result;
use crate::lower::operand::Fit;
use crate::program::{Instr, Shfl, ShflMode, VoteMode};
use crate::types::{Class, Ty};

use Ty::*;

impl Dec<'_, '_, '_> {
    pub(super) fn warp(&mut self) -> Decoded {
        match self.stmt.opcode {
            "activemask" => {
                self.require_flags(&["b32"])?;
                self.count(1)?;
                Ok(vec![Instr::ActiveMask { d: self.dst(0, B32)?.row }])
            }
            "shfl" => {
                self.sync()?;
                let mode = self.required(&[
                    ("up", ShflMode::Up),
                    ("down", ShflMode::Down),
                    ("bfly", ShflMode::Bfly),
                    ("idx", ShflMode::Idx),
                ])?;
                self.require_flags(&["b32"])?;
                self.count(5)?;
                let first = self.operand(0)?;
                let (d, pred) = self.lower.pair(&first)?;
                let src = self.row(1, B32)?;
                let (lane, clamp, mask) = (self.row(2, B32)?, self.row(3, B32)?, self.row(4, B32)?);
                let dst = self.lower.dst_or_sink(&d, B32, Fit::Exact)?.map(|reg| reg.row);
                Ok(vec![Instr::Shfl(Box::new(Shfl { mode, dst, pred, src, lane, clamp, mask }))])
            }
            "vote" => {
                self.sync()?;
                let mode = self.required(&[
                    ("all", VoteMode::All),
                    ("any", VoteMode::Any),
                    ("uni", VoteMode::Uni),
                    ("ballot", VoteMode::Ballot),
                ])?;
                let ty = if mode == VoteMode::Ballot { B32 } else { Pred };
                self.ty_of(&[ty])?;
                self.count(3)?;
                let p = self.operand(1)?;
                let p = self.lower.pred(&p)?;
                let mask = self.row(2, B32)?;
                Ok(vec![Instr::Vote { mode, d: self.dst(0, ty)?, p, mask }])
            }
            "match" => {
                let all = self.required(&[("any", false), ("all", true)])?;
                self.sync()?;
                let ty = self.ty_of(&[B32, B64])?;
                self.count(3)?;
                let first = self.operand(0)?;
                let (d, pred) = self.lower.pair(&first)?;
                if pred.is_some() && !all {
                    return self.error("only `.all` gives a predicate");
                }
                let s = self.src(1, ty)?;
                let mask = self.row(2, B32)?;
                let d = self.lower.dst(&d, B32, Fit::Exact)?;
                Ok(vec![Instr::Match { all, d, pred, s, mask }])
            }
            "redux" => self.redux(),
            _ => {
                self.sync()?;
                self.count(2)?;
                let first = self.operand(0)?;
                let (d, p) = self.lower.pair(&first)?;
                let Some(p) = p else { return self.error("expected `d|p`") };
                let mask = self.row(1, B32)?;
                let d = self.lower.dst_or_sink(&d, B32, Fit::Exact)?.map(|reg| reg.row);
                Ok(vec![Instr::Elect { d, p, mask }])
            }
        }
    }

    fn sync(&mut self) -> Result<()> {
        if self.flag("sync") {
            Ok(())
        } else {
            self.error("the form without `.sync` is gone: name the lanes with `.sync`")
        }
    }

    fn redux(&mut self) -> Decoded {
        self.sync()?;
        let op = self.required(&[("add", '+'), ("min", '<'), ("max", '>'), ("and", '&'), ("or", '|'), ("xor", '^')])?;
        let ty = self.ty_of(&[U32, S32, B32])?;
        if (ty == B32) != matches!(op, '&' | '|' | '^') {
            return self.error(format!("type .{} is not allowed here", ty.name()));
        }
        let f: fn(u32, u32) -> u32 = match (op, ty) {
            ('+', _) => |a, b| a.wrapping_add(b),
            ('<', U32) => |a, b| a.min(b),
            ('>', U32) => |a, b| a.max(b),
            ('<', _) => |a, b| (a as i32).min(b as i32) as u32,
            ('>', _) => |a, b| (a as i32).max(b as i32) as u32,
            ('&', _) => |a, b| a & b,
            ('|', _) => |a, b| a | b,
            _ => |a, b| a ^ b,
        };
        self.count(3)?;
        let (s, mask) = (self.row(1, ty)?, self.row(2, B32)?);
        let d = self.dst(0, ty)?;
        if d.class != Class::R {
            return self.error("destination does not fit");
        }
        Ok(vec![Instr::Redux { f, d: d.row, s, mask }])
    }
}
