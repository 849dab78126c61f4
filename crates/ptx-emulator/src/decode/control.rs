//! Branches, calls and barriers.

use super::{Dec, Decoded};
use crate::error::Result;
use crate::lower::operand::{Fit, Place};
use crate::lower::scope::Sym;
use crate::program::{BarKind, Barrier, Call, Instr, Slot, Target};
use crate::text::ast::{Kind, Operand};
use crate::types::{Space, Ty};

use Ty::*;

impl<'a> Dec<'_, '_, 'a> {
    pub(super) fn control(&mut self) -> Decoded {
        match self.stmt.opcode {
            "bra" => {
                self.flag("uni");
                self.count(1)?;
                let operand = self.operand(0)?;
                Ok(vec![Instr::Bra { target: self.lower.label(&operand)? }])
            }
            "brx" => self.branch_indexed(),
            "call" => self.call(),
            "ret" => {
                self.flag("uni");
                self.count(0)?;
                Ok(vec![Instr::Ret])
            }
            "exit" => {
                self.count(0)?;
                Ok(vec![Instr::Exit])
            }
            "trap" | "brkpt" => {
                self.count(0)?;
                Ok(vec![Instr::Trap])
            }
            "bar" | "barrier" => self.barrier(),
            "membar" => {
                self.required(&[("cta", ()), ("gl", ()), ("sys", ())])?;
                self.count(0)?;
                Ok(vec![Instr::Fence])
            }
            "fence" => {
                self.left.retain(|modifier| !modifier.starts_with("proxy") && !modifier.contains("::"));
                self.any_flag(&[
                    "sc",
                    "acq_rel",
                    "acquire",
                    "release",
                    "mbarrier_init",
                    "async",
                    "alias",
                    "proxy",
                    "global",
                ]);
                self.scope();
                Ok(vec![Instr::Fence])
            }
            "nanosleep" => {
                self.require_flags(&["u32"])?;
                self.count(1)?;
                self.src(0, U32)?;
                Ok(vec![Instr::Yield])
            }
            _ => {
                self.left.clear();
                Ok(vec![Instr::Nop])
            }
        }
    }

    fn branch_indexed(&mut self) -> Decoded {
        self.require_flags(&["idx"])?;
        self.flag("uni");
        self.count(2)?;
        let index = self.src(0, U32)?;
        let operand = self.operand(1)?;
        let Kind::Name(name, None) = operand.kind else { return self.error("expected a list of branch targets") };
        let Some(Sym::Targets(names)) = self.lower.find(name)? else {
            return self.error(format!("`{name}` is not a list of branch targets"));
        };
        let mut targets = Vec::new();
        for name in names {
            targets.push(self.lower.label_named(name, operand.pos)?);
        }
        Ok(vec![Instr::Brx { index, targets: targets.into() }])
    }

    fn call(&mut self) -> Decoded {
        self.flag("uni");
        let mut operands = self.stmt.operands.iter();
        let mut next = operands.next();
        let rets = match next {
            Some(Operand { kind: Kind::List(list), .. }) => {
                next = operands.next();
                list.clone()
            }
            _ => Vec::new(),
        };
        let Some(Operand { kind: Kind::Name(name, None), pos }) = next else {
            return self.error("expected the function to call");
        };
        let args = match operands.next() {
            Some(Operand { kind: Kind::List(list), .. }) => list.clone(),
            Some(_) => return self.error("expected the arguments in parentheses"),
            None => Vec::new(),
        };
        let target = match self.lower.find(name)? {
            Some(Sym::Func) => {
                let index = self.lower.function_index(name, *pos)?;
                self.check_call(name, rets.len(), args.len())?;
                Target::Direct(index)
            }
            Some(Sym::Reg { reg, ty }) if ty.bits() == 64 => {
                self.lower.uses.push(reg);
                Target::Indirect(reg)
            }
            _ => return self.error(format!("unknown function `{name}`")),
        };
        // What may follow an indirect call names a prototype or a list of targets.
        let rets = rets.iter().map(|operand| self.slot(operand, true)).collect::<Result<_>>()?;
        let args = args.iter().map(|operand| self.slot(operand, false)).collect::<Result<_>>()?;
        Ok(vec![Instr::Call(Box::new(Call { target, rets, args }))])
    }

    fn check_call(&self, name: &str, rets: usize, args: usize) -> Result<()> {
        let Some(func) = self.lower.module.funcs.iter().find(|func| func.name == name) else { return Ok(()) };
        if func.params.len() != args || (func.rets.len() != rets && rets != 0) {
            return self.error(format!(
                "{name} takes {} arguments and returns {}: found {args} and {rets}",
                func.params.len(),
                func.rets.len()
            ));
        }
        Ok(())
    }

    fn slot(&mut self, operand: &Operand<'a>, write: bool) -> Result<Slot> {
        match operand.kind {
            Kind::Name("_", None) => return Ok(Slot::Sink),
            Kind::Name(name, None) => match self.lower.find(name)? {
                Some(Sym::CallParam { offset, bytes }) => return Ok(Slot::Bytes { offset, len: bytes }),
                Some(Sym::Reg { reg, ty }) if ty != Pred => {
                    if !write {
                        self.lower.uses.push(reg);
                    }
                    return Ok(Slot::Reg(reg));
                }
                _ => {}
            },
            Kind::Const(_) if !write => return Ok(Slot::Reg(self.lower.src(operand, B64, Fit::Exact)?)),
            Kind::Address(..) => {
                if let Place::CallParam(_) = self.lower.place(operand, Space::Param)? {
                    return self.error("pass the parameter itself, without brackets");
                }
            }
            _ => {}
        }
        self.error("expected a parameter or a register in a call")
    }

    fn barrier(&mut self) -> Decoded {
        if self.flag("warp") {
            self.require_flags(&["sync"])?;
            self.count(1)?;
            return Ok(vec![Instr::BarWarp { mask: self.row(0, B32)? }]);
        }
        if self.flag("cluster") {
            return self.cluster_barrier();
        }
        self.flag("cta");
        let kind = self.required(&[("sync", 's'), ("arrive", 'a'), ("red", 'r')])?;
        let aligned = self.flag("aligned") || self.stmt.opcode == "bar";
        let mut barrier = Barrier {
            kind: BarKind::Sync,
            aligned,
            id: self.lower.constant(crate::types::Class::R, 0)?,
            count: None,
            dst: None,
            pred: None,
        };
        if kind != 'r' {
            self.count_between(1, 2)?;
            barrier.id = self.src(0, U32)?;
            if self.stmt.operands.len() == 2 {
                barrier.count = Some(self.src(1, U32)?);
            }
            if kind == 'a' {
                barrier.kind = BarKind::Arrive;
                if barrier.count.is_none() {
                    return self.error("`.arrive` needs the number of threads");
                }
            }
            return Ok(vec![Instr::Bar(Box::new(barrier))]);
        }
        barrier.kind =
            self.required(&[("popc", BarKind::RedPopc), ("and", BarKind::RedAnd), ("or", BarKind::RedOr)])?;
        let ty = self.ty_of(&[U32, Pred])?;
        if (ty == U32) != (barrier.kind == BarKind::RedPopc) {
            return self.error("`.popc` gives .u32, `.and` and `.or` give .pred");
        }
        self.count_between(3, 4)?;
        barrier.dst = Some(self.dst(0, ty)?);
        barrier.id = self.src(1, U32)?;
        let last = self.stmt.operands.len() - 1;
        if last == 3 {
            barrier.count = Some(self.src(2, U32)?);
        }
        let operand = self.operand(last)?;
        barrier.pred = Some(self.lower.pred(&operand)?);
        Ok(vec![Instr::Bar(Box::new(barrier))])
    }

    /// A cluster is one block here: arriving alone means nothing, waiting is a barrier of the block.
    fn cluster_barrier(&mut self) -> Decoded {
        let arrive = self.required(&[("arrive", true), ("wait", false)])?;
        self.any_flag(&["relaxed", "release", "acquire"]);
        let aligned = self.flag("aligned");
        self.count(0)?;
        if arrive {
            return Ok(vec![Instr::Fence]);
        }
        let id = self.lower.constant(crate::types::Class::R, 0)?;
        Ok(vec![Instr::Bar(Box::new(Barrier { kind: BarKind::Sync, aligned, id, count: None, dst: None, pred: None }))])
    }
}
