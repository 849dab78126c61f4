//! Loads, stores and atomics.

use super::{Dec, Decoded};
use crate::error::Result;
use crate::lower::operand::{Fit, Place};
use crate::program::{Access, Address, AtomOp, Atomic, Instr, Order};
use crate::text::ast::{Kind, Operand};
use crate::types::{Reg, Space, Ty};

use Ty::*;

const CACHE: &[&str] = &["ca", "cg", "cs", "lu", "cv", "wb", "wt", "nc", "unified"];

impl<'a> Dec<'_, '_, 'a> {
    pub(super) fn memory(&mut self) -> Decoded {
        match self.stmt.opcode {
            "ld" | "ldu" => self.load(),
            "st" => self.store(),
            "atom" | "red" => self.atomic(),
            // Hints: only the address is looked at.
            _ => {
                self.left.clear();
                let operand = self.operand(0)?;
                self.lower.place(&operand, Space::Global)?;
                Ok(vec![Instr::Nop])
            }
        }
    }

    pub(super) fn space(&mut self) -> Space {
        self.one_of(&[
            ("global", Space::Global),
            ("shared", Space::Shared),
            ("shared::cta", Space::Shared),
            ("shared::cluster", Space::Shared),
            ("local", Space::Local),
            ("const", Space::Const),
            ("param", Space::Param),
            ("param::entry", Space::Param),
            ("param::func", Space::Param),
        ])
        .unwrap_or(Space::Generic)
    }

    /// Hints of the caches; one may bring a policy as a last operand.
    fn cache_hints(&mut self) -> bool {
        self.any_flag(CACHE);
        let mut policy = false;
        self.left.retain(|modifier| {
            policy |= *modifier == "L2::cache_hint";
            let hint = modifier.starts_with("L1::") || modifier.starts_with("L2::");
            !hint
        });
        policy
    }

    fn order(&mut self) -> Result<Order> {
        let order = self.one_of(&[
            ("weak", Order::Weak),
            ("volatile", Order::Strong),
            ("relaxed", Order::Strong),
            ("mmio", Order::Strong),
            ("acquire", Order::Acquire),
            ("release", Order::Release),
            ("acq_rel", Order::Both),
        ]);
        self.scope();
        Ok(order.unwrap_or(Order::Weak))
    }

    pub(super) fn scope(&mut self) -> bool {
        self.any_flag(&["cta", "cluster", "gpu", "sys"])
    }

    fn vector(&mut self) -> usize {
        self.one_of(&[("v2", 2), ("v4", 4), ("v8", 8)]).unwrap_or(1)
    }

    fn load(&mut self) -> Decoded {
        let order = self.order()?;
        let space = self.space();
        let policy = self.cache_hints();
        let vector = self.vector();
        let ty = self.ty()?;
        self.check_element(ty, vector)?;
        self.count(if policy { 3 } else { 2 })?;
        let operand = self.operand(0)?;
        let parts = self.parts(&operand, vector)?;
        let mut regs = Vec::new();
        let mut width = ty.bits();
        for part in &parts {
            width = width.max(self.lower.type_of(part)?.map_or(0, Ty::bits));
            regs.push(self.lower.dst_or_sink(part, ty, Fit::Wider)?);
        }
        let operand = self.operand(1)?;
        let (space, address) = match self.lower.place(&operand, space)? {
            Place::KernelParam { offset, bytes, at } => {
                if space != Space::Param {
                    return self.error("a parameter of the kernel is read with ld.param");
                }
                let end = at + i64::from(ty.bytes()) * vector as i64;
                if at < i64::from(offset) || end > i64::from(offset + bytes) {
                    return self.error(format!(
                        "bytes {at}..{end} lie outside the parameter, which has {offset}..{}",
                        offset + bytes
                    ));
                }
                if at % (i64::from(ty.bytes()) * vector as i64) != 0 {
                    return self.error(format!("offset {at} is not aligned to {} bytes", ty.bytes() as usize * vector));
                }
                return Ok(vec![Instr::LoadParam { d: regs.into(), ty, offset: at as u32, width }]);
            }
            Place::CallParam(address) => (Space::Param, address),
            Place::Dynamic(address) => (space, address),
        };
        Ok(vec![Instr::Load(Box::new(Access { space, ty, address, regs: regs.into(), width, order }))])
    }

    fn store(&mut self) -> Decoded {
        let order = self.order()?;
        let space = self.space();
        let policy = self.cache_hints();
        let vector = self.vector();
        let ty = self.ty()?;
        self.check_element(ty, vector)?;
        self.count(if policy { 3 } else { 2 })?;
        let operand = self.operand(1)?;
        let mut regs = Vec::new();
        for part in self.parts(&operand, vector)? {
            regs.push(Some(self.lower.src(&part, ty, Fit::Wider)?));
        }
        let operand = self.operand(0)?;
        let (space, address) = match self.lower.place(&operand, space)? {
            Place::KernelParam { .. } => return self.error("parameters of a kernel cannot be written"),
            Place::CallParam(address) => (Space::Param, address),
            Place::Dynamic(_) if space == Space::Const => return self.error("constant memory cannot be written"),
            Place::Dynamic(address) => (space, address),
        };
        Ok(vec![Instr::Store(Box::new(Access { space, ty, address, regs: regs.into(), width: ty.bits(), order }))])
    }

    fn check_element(&self, ty: Ty, vector: usize) -> Result<()> {
        if ty == Pred || ty.bits() > 64 || matches!(ty, Tf32 | E4m3 | E5m2 | E4m3x2 | E5m2x2) {
            return self.error(format!("type .{} is not allowed here", ty.name()));
        }
        if ty.bits() as usize * vector > 256 {
            return self.error("vector is longer than 256 bits");
        }
        Ok(())
    }

    /// The elements of an operand that is a vector or stands for one.
    pub(super) fn parts(&self, operand: &Operand<'a>, n: usize) -> Result<Vec<Operand<'a>>> {
        let parts = match &operand.kind {
            Kind::Vector(parts) => parts.clone(),
            _ => vec![operand.clone()],
        };
        if parts.len() == n { Ok(parts) } else { self.error(format!("expected {n} elements, found {}", parts.len())) }
    }

    fn atomic(&mut self) -> Decoded {
        let is_red = self.stmt.opcode == "red";
        if self.flag("async") {
            return self.error("`.async` is not supported");
        }
        let order = match self.order()? {
            Order::Weak => Order::Strong,
            order => order,
        };
        let space = self.space();
        let policy = self.cache_hints();
        let op = self.required(&[
            ("and", AtomOp::And),
            ("or", AtomOp::Or),
            ("xor", AtomOp::Xor),
            ("exch", AtomOp::Exch),
            ("cas", AtomOp::Cas),
            ("add", AtomOp::Add),
            ("inc", AtomOp::Inc),
            ("dec", AtomOp::Dec),
            ("min", AtomOp::Min),
            ("max", AtomOp::Max),
        ])?;
        let noftz = self.flag("noftz");
        let vector = self.one_of(&[("v2", 2), ("v4", 4), ("v8", 8)]).unwrap_or(1);
        let ty = self.ty()?;
        self.check_atomic(op, ty, noftz, is_red, vector)?;
        let first = usize::from(!is_red);
        let operands = first + 2 + usize::from(op == AtomOp::Cas);
        self.count(operands + usize::from(policy))?;
        let dst = if is_red {
            None
        } else {
            let operand = self.operand(0)?;
            let mut dst = Vec::new();
            for part in self.parts(&operand, vector)? {
                dst.push(self.lower.dst_or_sink(&part, ty, Fit::Exact)?);
            }
            Some(dst.into())
        };
        let address = self.address_at(first, space)?;
        let operand = self.operand(first + 1)?;
        let mut src: Vec<Reg> = Vec::new();
        for part in self.parts(&operand, vector)? {
            src.push(self.lower.src(&part, ty, Fit::Exact)?);
        }
        let mut compare = None;
        if op == AtomOp::Cas {
            // atom.cas d, [a], compare, new
            compare = Some(src[0]);
            src = vec![self.src(first + 2, ty)?];
        }
        Ok(vec![Instr::Atomic(Box::new(Atomic { space, op, ty, address, dst, src: src.into(), compare, order }))])
    }

    fn check_atomic(&self, op: AtomOp, ty: Ty, noftz: bool, is_red: bool, vector: usize) -> Result<()> {
        use AtomOp::*;
        let halves = matches!(ty, F16 | F16x2 | Bf16 | Bf16x2);
        let ok = match op {
            And | Or | Xor => matches!(ty, B32 | B64),
            Exch | Cas => matches!(ty, B16 | B32 | B64) && !is_red,
            Inc | Dec => ty == U32,
            Min | Max => matches!(ty, U32 | S32 | U64 | S64) || halves || (ty == F32 && vector > 1),
            Add => matches!(ty, U32 | S32 | U64 | S64 | F32 | F64) || halves,
        };
        if !ok {
            return self.error(format!("type .{} is not allowed here", ty.name()));
        }
        if halves != noftz {
            let rule = if halves { "needs" } else { "does not take" };
            return self.error(format!(".{} {rule} `.noftz`", ty.name()));
        }
        Ok(())
    }

    pub(super) fn address_at(&mut self, i: usize, space: Space) -> Result<Address> {
        let operand = self.operand(i)?;
        match self.lower.place(&operand, space)? {
            Place::Dynamic(address) => Ok(address),
            Place::KernelParam { .. } | Place::CallParam(_) => {
                self.error("a parameter is not memory that can be used here")
            }
        }
    }
}
