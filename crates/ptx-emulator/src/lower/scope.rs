//! Names: what a register, variable or label is where it is used.

use super::Lower;
use crate::error::{Error, Pos, Result};
use crate::program::{Init, LOCAL_START, Placed, SHARED_START};
use crate::text::ast::{Item, Var, VarSpace};
use crate::types::{Class, Reg, Space, Ty};
use std::collections::HashMap;

/// Shared variables lie this far apart, so that running over one is seen.
const SHARED_GAP: u32 = 64;
/// Beyond this no block could have so much shared, local or parameter memory.
const MAX_BYTES: u64 = 1 << 28;

#[derive(Clone, Debug)]
pub(crate) enum Sym<'a> {
    Reg {
        reg: Reg,
        ty: Ty,
    },
    Shared(u32),
    DynamicShared,
    Local(u32),
    /// A parameter of the kernel.
    KernelParam {
        offset: u32,
        bytes: u32,
    },
    /// A variable of a thread's parameter space, for calls.
    CallParam {
        offset: u32,
        bytes: u32,
    },
    /// A module's variable, by number.
    Variable(usize),
    Label(u32),
    Targets(Vec<&'a str>),
    Prototype,
    Func,
}

#[derive(Default)]
pub(crate) struct Scope<'a> {
    names: HashMap<&'a str, Sym<'a>>,
    /// `%r<10>`: the part before the number, how many, and their type.
    ranges: Vec<(&'a str, u32, Ty)>,
}

impl<'a> Lower<'_, 'a> {
    pub(crate) fn push_scope(&mut self, items: &[Item<'a>]) -> Result<()> {
        let mut scope = Scope::default();
        for item in items {
            let (name, sym, pos) = match item {
                Item::Label(name, pos) => {
                    self.labels.push(None);
                    (*name, Sym::Label(self.labels.len() as u32 - 1), *pos)
                }
                Item::Targets(name, targets, pos) => (*name, Sym::Targets(targets.clone()), *pos),
                Item::Prototype(name) => (*name, Sym::Prototype, Pos::default()),
                Item::Var(_) | Item::Scope(_) | Item::Stmt(_) => continue,
            };
            if scope.names.insert(name, sym).is_some() {
                return Err(Error::parse(pos, format!("`{name}` is already a label in this scope")));
            }
        }
        self.scopes.push(scope);
        Ok(())
    }

    pub(crate) fn pop_scope(&mut self) {
        self.scopes.pop();
    }

    pub(crate) fn define(&mut self, name: &'a str, sym: Sym<'a>, pos: Pos) -> Result<()> {
        let scope = self.scopes.last_mut().expect("invariant: a scope is open while names are defined");
        match scope.names.insert(name, sym) {
            None => Ok(()),
            Some(_) => Err(Error::parse(pos, format!("`{name}` is already declared in this scope"))),
        }
    }

    /// What the name means here.
    pub(crate) fn find(&mut self, name: &'a str) -> Result<Option<Sym<'a>>> {
        let digits = name.len() - name.trim_end_matches(|c: char| c.is_ascii_digit()).len();
        let (prefix, number) = name.split_at(name.len() - digits);
        let canonical = !number.is_empty() && (number == "0" || !number.starts_with('0'));
        let number = if canonical { number.parse::<u32>().ok() } else { None };
        for at in (0..self.scopes.len()).rev() {
            if let Some(sym) = self.scopes[at].names.get(name) {
                return Ok(Some(sym.clone()));
            }
            let range = self.scopes[at].ranges.iter().find(|(p, n, _)| *p == prefix && number.is_some_and(|i| i < *n));
            if let Some(&(_, _, ty)) = range {
                let sym = Sym::Reg { reg: self.new_register(name, ty)?, ty };
                self.scopes[at].names.insert(name, sym.clone());
                return Ok(Some(sym));
            }
        }
        self.module_symbol(name)
    }

    fn module_symbol(&mut self, name: &'a str) -> Result<Option<Sym<'a>>> {
        if let Some(index) = self.module.vars.iter().position(|var| var.name == name) {
            let module = self.module;
            let var = &module.vars[index];
            if var.space != VarSpace::Memory(Space::Shared) {
                return Ok(Some(Sym::Variable(index)));
            }
            let sym = self.place_shared(var)?;
            self.scopes[0].names.insert(name, sym.clone());
            return Ok(Some(sym));
        }
        Ok(self.module.funcs.iter().any(|func| func.name == name).then_some(Sym::Func))
    }

    fn new_register(&mut self, name: &str, ty: Ty) -> Result<Reg> {
        let (class, rows) = match ty.bits() {
            1 => (Class::P, &mut self.program.preds),
            64 => (Class::W, &mut self.program.wide),
            128 => return Err(Error::parse(self.pos, format!("register {name}: 128-bit registers are not supported"))),
            _ => (Class::R, &mut self.program.narrow),
        };
        let row = Lower::push_row(rows, Init::Reg(name.into()), self.pos)?;
        Ok(Reg { class, row })
    }

    pub(crate) fn push_row(rows: &mut Vec<Init>, init: Init, pos: Pos) -> Result<u16> {
        if rows.len() >= usize::from(u16::MAX) {
            return Err(Error::parse(pos, "kernel uses more than 65534 registers and constants"));
        }
        rows.push(init);
        Ok(rows.len() as u16 - 1)
    }

    /// Declares a variable of a function's scope.
    pub(crate) fn declare(&mut self, var: &Var<'a>) -> Result<()> {
        self.pos = var.pos;
        if var.vector != 1 && var.space == VarSpace::Reg {
            return Err(Error::parse(var.pos, "vector registers are not supported: declare one register per element"));
        }
        let sym = match var.space {
            VarSpace::Reg => {
                if matches!(var.ty, Ty::Tf32 | Ty::E4m3 | Ty::E5m2) {
                    return Err(Error::parse(var.pos, format!("a register cannot be .{}", var.ty.name())));
                }
                if let Some(n) = var.range {
                    let scope = self.scopes.last_mut().expect("invariant: a scope is open while names are defined");
                    scope.ranges.push((var.name, n, var.ty));
                    return Ok(());
                }
                Sym::Reg { reg: self.new_register(var.name, var.ty)?, ty: var.ty }
            }
            VarSpace::Memory(Space::Shared) => self.place_shared(var)?,
            VarSpace::Memory(Space::Local) => {
                let (bytes, align) = size_of(var)?;
                let offset = self.program.local_bytes.max(LOCAL_START).next_multiple_of(align);
                self.program.local_bytes = offset + bytes + 16;
                self.program.local.push(Placed { name: var.name.into(), offset, bytes });
                Sym::Local(offset)
            }
            VarSpace::Memory(Space::Param) => {
                let (offset, bytes) = self.place_call_param(var)?;
                Sym::CallParam { offset, bytes }
            }
            VarSpace::Memory(_) => {
                return Err(Error::parse(var.pos, "global and constant variables are declared outside functions"));
            }
        };
        self.define(var.name, sym, var.pos)
    }

    pub(crate) fn place_call_param(&mut self, var: &Var<'a>) -> Result<(u32, u32)> {
        let (bytes, align) = size_of(var)?;
        let offset = self.program.call_bytes.next_multiple_of(align.max(8));
        self.program.call_bytes = offset + bytes;
        if u64::from(self.program.call_bytes) > MAX_BYTES {
            return Err(Error::parse(var.pos, "parameters of calls take more than 256 MiB"));
        }
        Ok((offset, bytes))
    }

    fn place_shared(&mut self, var: &Var<'a>) -> Result<Sym<'a>> {
        if var.init.is_some() {
            return Err(Error::parse(var.pos, format!("{}: shared memory cannot be initialised", var.name)));
        }
        if var.is_extern || var.dims.first() == Some(&None) {
            let align = var.align.unwrap_or(var.ty.bytes());
            let dynamic = self.program.dynamic.get_or_insert((var.name.into(), align));
            dynamic.1 = dynamic.1.max(align);
            return Ok(Sym::DynamicShared);
        }
        let (bytes, align) = size_of(var)?;
        let offset = self.program.shared_end.max(SHARED_START).next_multiple_of(align.max(16));
        self.program.shared_end = offset + bytes + SHARED_GAP;
        self.program.shared_bytes = self.program.shared_bytes.next_multiple_of(align) + bytes;
        if u64::from(self.program.shared_end) > MAX_BYTES {
            return Err(Error::parse(var.pos, "shared variables take more than 256 MiB"));
        }
        self.program.shared.push(Placed { name: var.name.into(), offset, bytes });
        Ok(Sym::Shared(offset))
    }
}

/// The size and alignment of a variable in bytes.
pub(crate) fn size_of(var: &Var<'_>) -> Result<(u32, u32)> {
    let element = u64::from(var.ty.bytes()) * u64::from(var.vector);
    let open = match (&var.init, var.dims.first()) {
        (Some(crate::text::ast::Init::List(list)), Some(None)) => list.len() as u64,
        _ => 0,
    };
    let count = var.dims.iter().map(|dim| dim.unwrap_or(open)).try_fold(1_u64, u64::checked_mul);
    let bytes = count.and_then(|count| count.checked_mul(element)).filter(|bytes| *bytes <= MAX_BYTES);
    let Some(bytes) = bytes else {
        return Err(Error::parse(var.pos, format!("{}: variable is larger than 256 MiB", var.name)));
    };
    Ok((bytes as u32, var.align.unwrap_or(element as u32).max(1)))
}
