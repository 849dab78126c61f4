//! Asynchronous copies and the barriers in memory that they complete on.

use super::{Dec, Decoded};
use crate::lower::operand::Fit;
use crate::program::{CopyAsync, Instr, Mbar, MbarOp};
use crate::text::ast::{Const, Kind};
use crate::types::{Space, Ty};

use Ty::*;

impl Dec<'_, '_, '_> {
    pub(super) fn copy(&mut self) -> Decoded {
        if self.stmt.opcode == "mbarrier" {
            return self.mbarrier();
        }
        self.require_flags(&["async"])?;
        if self.left.iter().any(|modifier| *modifier == "bulk" || *modifier == "reduce") {
            return self.error("bulk copies are not supported by this emulator");
        }
        if self.flag("commit_group") {
            self.count(0)?;
            return Ok(vec![Instr::CopyCommit]);
        }
        if self.flag("wait_all") {
            self.count(0)?;
            return Ok(vec![Instr::CopyWait { groups: None }]);
        }
        if self.flag("wait_group") {
            self.count(1)?;
            return match self.operand(0)?.kind {
                Kind::Const(Const::Int(n)) if n < 1 << 16 => Ok(vec![Instr::CopyWait { groups: Some(n as u32) }]),
                _ => self.error("expected a constant number of groups"),
            };
        }
        if self.flag("mbarrier") {
            self.require_flags(&["arrive"])?;
            let noinc = self.flag("noinc");
            let space = self.space();
            self.require_flags(&["b64"])?;
            self.count(1)?;
            let address = self.address_at(0, space)?;
            return Ok(vec![Instr::Mbar(Box::new(Mbar {
                op: MbarOp::CopyArrive { noinc },
                space,
                address,
                dst: None,
                arg: None,
            }))]);
        }
        self.copy_bytes()
    }

    fn copy_bytes(&mut self) -> Decoded {
        let bypass = self.required(&[("ca", false), ("cg", true)])?;
        if !self.any_flag(&["shared", "shared::cta"]) || !self.flag("global") {
            return self.error("expected `.shared.global`");
        }
        let mut policy = false;
        self.left.retain(|modifier| {
            policy |= *modifier == "L2::cache_hint";
            !modifier.starts_with("L2::")
        });
        self.count_between(3, 5)?;
        let bytes = match self.operand(2)?.kind {
            Kind::Const(Const::Int(n @ (4 | 8 | 16))) => n as u32,
            _ => return self.error("expected 4, 8 or 16 bytes"),
        };
        if bypass && bytes != 16 {
            return self.error(format!("`.cg` copies 16 bytes: found {bytes}"));
        }
        let (mut src_bytes, mut ignore) = (None, None);
        let last = self.stmt.operands.len() - usize::from(policy);
        if last == 4 {
            let operand = self.operand(3)?;
            let is_pred = self.lower.type_of(&operand)? == Some(Pred) || matches!(operand.kind, Kind::Not(_));
            if is_pred {
                ignore = Some(self.lower.pred(&operand)?);
            } else {
                src_bytes = Some(self.src(3, U32)?);
            }
        } else if last != 3 {
            return self.error(format!("expected 3 or 4 operands, found {last}"));
        }
        let copy = CopyAsync {
            dst: self.address_at(0, Space::Shared)?,
            src: self.address_at(1, Space::Global)?,
            src_space: Space::Global,
            bytes,
            src_bytes,
            ignore,
        };
        Ok(vec![Instr::CopyAsync(Box::new(copy))])
    }

    fn mbarrier(&mut self) -> Decoded {
        let name = self.required(&[
            ("init", "init"),
            ("inval", "inval"),
            ("arrive", "arrive"),
            ("arrive_drop", "arrive_drop"),
            ("expect_tx", "expect_tx"),
            ("complete_tx", "complete_tx"),
            ("test_wait", "test_wait"),
            ("try_wait", "try_wait"),
            ("pending_count", "pending_count"),
        ])?;
        self.any_flag(&["relaxed", "release", "acquire"]);
        self.scope();
        let expect = self.flag("expect_tx");
        let no_complete = self.flag("noComplete");
        let parity = self.flag("parity");
        let space = self.space();
        self.require_flags(&["b64"])?;
        if no_complete || name == "complete_tx" {
            return self.error("`.noComplete` and `complete_tx` are not supported");
        }
        let mbar = |op, address, dst, arg| Ok(vec![Instr::Mbar(Box::new(Mbar { op, space, address, dst, arg }))]);
        match name {
            "init" => {
                self.count(2)?;
                let count = self.src(1, U32)?;
                mbar(MbarOp::Init, self.address_at(0, space)?, None, Some(count))
            }
            "inval" => {
                self.count(1)?;
                mbar(MbarOp::Inval, self.address_at(0, space)?, None, None)
            }
            "expect_tx" => {
                self.count(2)?;
                let bytes = self.src(1, U32)?;
                mbar(MbarOp::ExpectTx, self.address_at(0, space)?, None, Some(bytes))
            }
            "arrive" | "arrive_drop" => {
                self.count_between(2, 3)?;
                let operand = self.operand(0)?;
                let dst = self.lower.dst_or_sink(&operand, B64, Fit::Exact)?;
                let arg = if self.stmt.operands.len() == 3 { Some(self.src(2, U32)?) } else { None };
                let op = match (name, expect) {
                    ("arrive", true) => MbarOp::ArriveExpectTx,
                    ("arrive", false) => MbarOp::Arrive,
                    (_, true) => return self.error("`.expect_tx` is not supported here"),
                    _ => MbarOp::ArriveDrop,
                };
                mbar(op, self.address_at(1, space)?, dst, arg)
            }
            "pending_count" => {
                self.count(2)?;
                let state = self.src(1, B64)?;
                let zero = self.lower.constant(crate::types::Class::W, 0)?;
                let dst = self.dst(0, U32)?;
                mbar(MbarOp::PendingCount, crate::program::Address { base: zero, offset: 0 }, Some(dst), Some(state))
            }
            _ => {
                self.count_between(3, 4)?;
                let state = self.src(2, if parity { U32 } else { B64 })?;
                let dst = self.dst(0, Pred)?;
                let op = MbarOp::TestWait { parity, try_wait: name == "try_wait" };
                mbar(op, self.address_at(1, space)?, Some(dst), Some(state))
            }
        }
    }
}
