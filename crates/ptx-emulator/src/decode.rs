//! Statements to operations, opcode by opcode.

mod arith;
mod bits;
mod control;
mod convert;
mod copy;
mod float;
mod matrix;
mod memory;
mod moves;
mod strict;
mod warp;

use crate::error::{Error, Result};
use crate::lower::Lower;
use crate::lower::operand::Fit;
use crate::program::Instr;
use crate::text::ast::{Operand, Stmt};
use crate::types::{Class, Reg, Ty};
use crate::value::kernel::Kernel;
use crate::value::round::Round;

/// One statement while it is decoded.
pub(crate) struct Dec<'x, 'm, 'a> {
    pub(crate) lower: &'x mut Lower<'m, 'a>,
    pub(crate) stmt: &'x Stmt<'a>,
    /// Modifiers that nothing has asked for yet.
    left: Vec<&'a str>,
}

type Decoded = Result<Vec<Instr>>;

pub(crate) fn decode<'a>(lower: &mut Lower<'_, 'a>, stmt: &Stmt<'a>) -> Decoded {
    if lower.strict {
        strict::check(lower.module, stmt)?;
    }
    let mut dec = Dec { lower, stmt, left: stmt.mods.clone() };
    let instrs = dec.opcode()?;
    match dec.left.first() {
        None => Ok(instrs),
        Some(unknown) => dec.error(format!("unknown modifier `.{unknown}`")),
    }
}

impl<'a> Dec<'_, '_, 'a> {
    fn opcode(&mut self) -> Decoded {
        match self.stmt.opcode {
            "add" | "sub" | "mul" | "mad" | "fma" | "min" | "max" | "abs" | "neg" | "div" | "rem" | "addc" | "subc"
            | "madc" | "mul24" | "mad24" | "sad" | "dp4a" | "dp2a" => self.arith(),
            "rcp" | "sqrt" | "rsqrt" | "sin" | "cos" | "lg2" | "ex2" | "tanh" | "copysign" | "testp" => self.function(),
            "and" | "or" | "xor" | "not" | "cnot" | "shl" | "shr" | "shf" | "lop3" | "popc" | "clz" | "bfind"
            | "fns" | "brev" | "bfe" | "bfi" | "bmsk" | "szext" | "prmt" => self.bits(),
            "setp" | "set" | "selp" | "slct" => self.compare(),
            "cvt" | "cvta" | "isspacep" => self.convert(),
            "mov" => self.mov(),
            "ld" | "ldu" | "st" | "atom" | "red" | "prefetch" | "prefetchu" | "applypriority" | "discard" => {
                self.memory()
            }
            "bra" | "brx" | "call" | "ret" | "exit" | "trap" | "brkpt" | "bar" | "barrier" | "membar" | "fence"
            | "nanosleep" | "pmevent" | "setmaxnreg" | "griddepcontrol" => self.control(),
            "shfl" | "vote" | "match" | "redux" | "activemask" | "elect" => self.warp(),
            "cp" | "mbarrier" => self.copy(),
            "ldmatrix" | "stmatrix" | "movmatrix" | "mma" | "wmma" => self.matrix(),
            "wgmma"
            | "tensormap"
            | "multimem"
            | "tcgen05"
            | "tex"
            | "tld4"
            | "txq"
            | "suld"
            | "sust"
            | "sured"
            | "suq"
            | "getctarank"
            | "mapa"
            | "clusterlaunchcontrol" => self.error("not supported by this emulator"),
            _ => self.error("unknown instruction"),
        }
    }

    pub(crate) fn error<T>(&self, message: impl std::fmt::Display) -> Result<T> {
        Err(Error::parse(self.stmt.pos, format!("{}: {message}", self.stmt.opcode)))
    }

    /// Whether the modifier is there; it counts as seen.
    pub(crate) fn flag(&mut self, name: &str) -> bool {
        match self.left.iter().position(|modifier| *modifier == name) {
            Some(at) => {
                self.left.remove(at);
                true
            }
            None => false,
        }
    }

    pub(crate) fn any_flag(&mut self, names: &[&str]) -> bool {
        names.iter().filter(|name| self.flag(name)).count() > 0
    }

    /// The first of the names that is there.
    pub(crate) fn one_of<T: Copy>(&mut self, table: &[(&str, T)]) -> Option<T> {
        let at = self.left.iter().position(|modifier| table.iter().any(|(name, _)| name == modifier))?;
        let modifier = self.left.remove(at);
        table.iter().find(|(name, _)| *name == modifier).map(|(_, value)| *value)
    }

    pub(crate) fn required<T: Copy>(&mut self, table: &[(&str, T)]) -> Result<T> {
        match self.one_of(table) {
            Some(value) => Ok(value),
            None => {
                let names: Vec<_> = table.iter().map(|(name, _)| format!(".{name}")).collect();
                self.error(format!("expected one of {}", names.join(", ")))
            }
        }
    }

    pub(crate) fn require_flags(&mut self, names: &[&str]) -> Result<()> {
        for name in names {
            if !self.flag(name) {
                return self.error(format!("expected `.{name}`"));
            }
        }
        Ok(())
    }

    /// The next type among the modifiers.
    pub(crate) fn ty(&mut self) -> Result<Ty> {
        match self.optional_ty() {
            Some(ty) => Ok(ty),
            None => self.error("expected a type such as .f32"),
        }
    }

    pub(crate) fn optional_ty(&mut self) -> Option<Ty> {
        let at = self.left.iter().position(|modifier| Ty::parse(modifier).is_some())?;
        Ty::parse(self.left.remove(at))
    }

    pub(crate) fn ty_of(&mut self, allowed: &[Ty]) -> Result<Ty> {
        let ty = self.ty()?;
        if allowed.contains(&ty) { Ok(ty) } else { self.error(format!("type .{} is not allowed here", ty.name())) }
    }

    pub(crate) fn round(&mut self) -> Option<Round> {
        self.one_of(&[("rn", Round::Nearest), ("rz", Round::Zero), ("rm", Round::Down), ("rp", Round::Up)])
    }

    pub(crate) fn count(&self, n: usize) -> Result<()> {
        self.count_between(n, n)
    }

    pub(crate) fn count_between(&self, least: usize, most: usize) -> Result<()> {
        let found = self.stmt.operands.len();
        if (least..=most).contains(&found) {
            return Ok(());
        }
        let expected = if least == most { least.to_string() } else { format!("{least} to {most}") };
        self.error(format!("expected {expected} operands, found {found}"))
    }

    pub(crate) fn operand(&self, i: usize) -> Result<Operand<'a>> {
        match self.stmt.operands.get(i) {
            Some(operand) => Ok(operand.clone()),
            None => self.error(format!("expected at least {} operands, found {}", i + 1, self.stmt.operands.len())),
        }
    }

    pub(crate) fn dst(&mut self, i: usize, ty: Ty) -> Result<Reg> {
        let operand = self.operand(i)?;
        self.lower.dst(&operand, ty, Fit::Exact)
    }

    pub(crate) fn src(&mut self, i: usize, ty: Ty) -> Result<Reg> {
        let operand = self.operand(i)?;
        self.lower.src(&operand, ty, Fit::Exact)
    }

    /// A source of 32 bits, as a row.
    pub(crate) fn row(&mut self, i: usize, ty: Ty) -> Result<u16> {
        let reg = self.src(i, ty)?;
        if reg.class == Class::R { Ok(reg.row) } else { self.error("expected a 32-bit operand") }
    }

    /// A lane-wise operation: destination first, then one source of each type.
    pub(crate) fn map(&mut self, kernel: Kernel, to: Ty, from: &[Ty]) -> Decoded {
        self.count(from.len() + 1)?;
        let mut sources = Vec::new();
        for (i, ty) in from.iter().enumerate() {
            sources.push(self.src(i + 1, *ty)?);
        }
        let d = self.dst(0, to)?;
        self.map_regs(kernel, d, &sources)
    }

    pub(crate) fn map_regs(&mut self, kernel: Kernel, d: Reg, sources: &[Reg]) -> Decoded {
        match kernel {
            Kernel::N(f) => {
                let mut s = [0; 4];
                for (slot, reg) in s.iter_mut().zip(sources) {
                    *slot = if reg.class == Class::R { reg.row } else { return self.error("operands do not fit") };
                }
                if d.class != Class::R {
                    return self.error("destination does not fit");
                }
                Ok(vec![Instr::Map32 { f, d: d.row, s }])
            }
            Kernel::W(f) => {
                let mut s = [Reg { class: Class::W, row: 0 }; 4];
                for (slot, reg) in s.iter_mut().zip(sources) {
                    *slot = *reg;
                }
                if d.class == Class::P || s.iter().any(|reg| reg.class == Class::P) {
                    return self.error("a predicate does not fit here");
                }
                Ok(vec![Instr::Map64 { f, d, s }])
            }
        }
    }
}
