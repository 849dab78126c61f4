//! The front end's second half: an entry and all that it calls become one flat program.

pub(crate) mod operand;
pub(crate) mod scope;

use crate::decode;
use crate::error::{Error, Pos, Result};
use crate::program::{FuncInfo, Init, Instr, Op, OpInfo, Param, PredArg, Program, Slot, Special};
use crate::text::ast::{Ast, Func, Item, Stmt, Var, VarSpace};
use crate::types::{Class, Reg};
use scope::{Scope, Sym, size_of};
use std::collections::HashMap;

/// Programs longer than this are refused: races remember the place of an access in 21 bits.
const MAX_OPS: usize = 1 << 21;
/// More parameters than a kernel can have, in bytes.
const MAX_PARAM_BYTES: u32 = 32764;

pub(crate) struct Lower<'m, 'a> {
    pub(crate) module: &'m Ast<'a>,
    pub(crate) program: Program,
    pub(crate) strict: bool,
    /// The statement that is being decoded.
    pub(crate) pos: Pos,
    /// Registers that it names.
    pub(crate) uses: Vec<Reg>,
    pub(super) scopes: Vec<Scope<'a>>,
    pub(super) labels: Vec<Option<u32>>,
    constants: HashMap<(Class, u64), u16>,
    specials: HashMap<(Class, Special), u16>,
    names: HashMap<String, u16>,
    functions: HashMap<&'a str, u16>,
    queue: Vec<&'m Func<'a>>,
    in_entry: bool,
}

/// Decodes an entry, or a function as if it were one.
pub(crate) fn lower<'m, 'a>(module: &'m Ast<'a>, entry: &'m Func<'a>, strict: bool) -> Result<Program> {
    let program = Program {
        name: entry.name.into(),
        ops: Vec::new(),
        info: Vec::new(),
        names: Vec::new(),
        narrow: Vec::new(),
        wide: Vec::new(),
        preds: Vec::new(),
        params: Vec::new(),
        param_bytes: 0,
        shared: Vec::new(),
        shared_end: 0,
        shared_bytes: 0,
        dynamic: None,
        local: Vec::new(),
        local_bytes: 0,
        call_bytes: 0,
        funcs: Vec::new(),
        max_threads: entry.max_threads,
        required_threads: entry.required_threads,
        pos: entry.pos,
    };
    let mut lower = Lower {
        module,
        program,
        strict,
        pos: entry.pos,
        uses: Vec::new(),
        scopes: vec![Scope::default()],
        labels: Vec::new(),
        constants: HashMap::new(),
        specials: HashMap::new(),
        names: HashMap::new(),
        functions: HashMap::new(),
        queue: Vec::new(),
        in_entry: true,
    };
    lower.run(entry)?;
    Ok(lower.program)
}

impl<'m, 'a> Lower<'m, 'a> {
    fn run(&mut self, entry: &'m Func<'a>) -> Result<()> {
        // Row 0 of every class is a constant that unused sources name.
        self.constant(Class::R, 0)?;
        self.constant(Class::W, 0)?;
        Self::push_row(&mut self.program.preds, Init::Const(1), entry.pos)?;
        self.function(entry)?;
        self.in_entry = false;
        while let Some(func) = self.queue.pop() {
            self.function(func)?;
        }
        let labels = std::mem::take(&mut self.labels);
        for op in &mut self.program.ops {
            let resolve = |label: &mut u32| *label = labels[*label as usize].unwrap_or(0);
            match &mut op.instr {
                Instr::Bra { target } => resolve(target),
                Instr::Brx { targets, .. } => targets.iter_mut().for_each(resolve),
                _ => {}
            }
        }
        Ok(())
    }

    fn function(&mut self, func: &'m Func<'a>) -> Result<()> {
        self.pos = func.pos;
        let Some(body) = &func.body else {
            return Err(Error::parse(func.pos, format!("{}: function is declared but has no body", func.name)));
        };
        self.push_scope(body)?;
        if self.in_entry && func.is_entry {
            self.kernel_params(func)?;
        } else {
            let entry = self.program.ops.len() as u32;
            let params = self.slots(&func.params)?;
            let rets = self.slots(&func.rets)?;
            let info = FuncInfo { entry, params, rets, name: func.name.into() };
            match self.functions.get(func.name) {
                Some(&index) => self.program.funcs[usize::from(index)] = info,
                None => {
                    self.functions.insert(func.name, self.program.funcs.len() as u16);
                    self.program.funcs.push(info);
                }
            }
        }
        self.items(body)?;
        self.pop_scope();
        // Falling off the end returns.
        self.emit(Instr::Ret, None, "ret")
    }

    fn kernel_params(&mut self, func: &Func<'a>) -> Result<()> {
        let mut offset = 0_u32;
        for var in &func.params {
            if var.space == VarSpace::Reg {
                return Err(Error::parse(var.pos, "parameters of an entry are `.param`"));
            }
            let (bytes, align) = size_of(var)?;
            offset = offset.next_multiple_of(align);
            let name = var.name.to_string();
            self.program.params.push(Param { name, ty: var.ty, offset, bytes, is_pointer: var.is_pointer });
            self.define(var.name, Sym::KernelParam { offset, bytes }, var.pos)?;
            offset += bytes;
            if offset > MAX_PARAM_BYTES {
                return Err(Error::parse(var.pos, format!("parameters take more than {MAX_PARAM_BYTES} bytes")));
            }
        }
        self.program.param_bytes = offset;
        Ok(())
    }

    fn slots(&mut self, vars: &[Var<'a>]) -> Result<Box<[Slot]>> {
        let mut slots = Vec::new();
        for var in vars {
            self.declare(var)?;
            slots.push(match self.find(var.name)? {
                Some(Sym::Reg { reg, .. }) => Slot::Reg(reg),
                Some(Sym::CallParam { offset, bytes }) => Slot::Bytes { offset, len: bytes },
                _ => return Err(Error::parse(var.pos, format!("{}: cannot be a parameter", var.name))),
            });
        }
        Ok(slots.into())
    }

    /// The number of a function in the program, which it joins.
    pub(crate) fn function_index(&mut self, name: &'a str, pos: Pos) -> Result<u16> {
        if let Some(index) = self.functions.get(name) {
            return Ok(*index);
        }
        let module = self.module;
        let mut found = module.funcs.iter().filter(|func| func.name == name).collect::<Vec<_>>();
        found.sort_by_key(|func| func.body.is_none());
        let Some(func) = found.first() else {
            return Err(Error::parse(pos, format!("unknown function `{name}`")));
        };
        if func.is_entry {
            return Err(Error::parse(pos, format!("`{name}` is an entry and cannot be called")));
        }
        if func.body.is_none() {
            return Err(Error::parse(pos, format!("`{name}` is declared but has no body in this module")));
        }
        let index = self.program.funcs.len() as u16;
        self.functions.insert(name, index);
        self.program.funcs.push(FuncInfo { entry: 0, params: Box::new([]), rets: Box::new([]), name: name.into() });
        self.queue.push(func);
        Ok(index)
    }

    fn items(&mut self, items: &[Item<'a>]) -> Result<()> {
        for item in items {
            match item {
                Item::Var(var) => self.declare(var)?,
                Item::Label(name, pos) => {
                    let at = self.program.ops.len() as u32;
                    if let Some(Sym::Label(label)) = self.find(name)? {
                        self.labels[label as usize] = Some(at);
                    } else {
                        return Err(Error::parse(*pos, format!("`{name}` is already declared in this scope")));
                    }
                }
                Item::Scope(items) => {
                    self.push_scope(items)?;
                    self.items(items)?;
                    self.pop_scope();
                }
                Item::Stmt(stmt) => self.statement(stmt)?,
                Item::Targets(..) | Item::Prototype(_) => {}
            }
        }
        Ok(())
    }

    fn statement(&mut self, stmt: &Stmt<'a>) -> Result<()> {
        self.pos = stmt.pos;
        self.uses.clear();
        let guard = match stmt.guard {
            None => None,
            Some((name, negated)) => match self.find(name)? {
                Some(Sym::Reg { reg: reg @ Reg { class: Class::P, row }, .. }) => {
                    self.uses.push(reg);
                    Some(PredArg { row, negated })
                }
                Some(_) => return Err(Error::parse(stmt.pos, format!("guard `{name}` is not a predicate"))),
                None => return Err(Error::parse(stmt.pos, format!("unknown predicate `{name}`"))),
            },
        };
        let instrs = decode::decode(self, stmt)?;
        let mut name = stmt.opcode.to_string();
        for modifier in &stmt.mods {
            name.push('.');
            name.push_str(modifier);
        }
        for instr in instrs {
            self.emit(instr, guard, &name)?;
        }
        Ok(())
    }

    fn emit(&mut self, instr: Instr, guard: Option<PredArg>, name: &str) -> Result<()> {
        if self.program.ops.len() >= MAX_OPS {
            return Err(Error::parse(self.pos, format!("kernel has more than {MAX_OPS} instructions")));
        }
        let name = match self.names.get(name) {
            Some(index) => *index,
            None => {
                let index = self.program.names.len() as u16;
                self.program.names.push(name.into());
                self.names.insert(name.into(), index);
                index
            }
        };
        self.program.ops.push(Op { instr, guard });
        self.program.info.push(OpInfo { pos: self.pos, regs: self.uses.as_slice().into(), name });
        Ok(())
    }

    /// A row that holds a constant.
    pub(crate) fn constant(&mut self, class: Class, value: u64) -> Result<Reg> {
        if let Some(&row) = self.constants.get(&(class, value)) {
            return Ok(Reg { class, row });
        }
        let rows = if class == Class::W { &mut self.program.wide } else { &mut self.program.narrow };
        let row = Self::push_row(rows, Init::Const(value), self.pos)?;
        self.constants.insert((class, value), row);
        Ok(Reg { class, row })
    }

    pub(crate) fn special(&mut self, class: Class, special: Special) -> Result<Reg> {
        if let Some(&row) = self.specials.get(&(class, special)) {
            return Ok(Reg { class, row });
        }
        let rows = if class == Class::W { &mut self.program.wide } else { &mut self.program.narrow };
        let row = Self::push_row(rows, Init::Special(special), self.pos)?;
        self.specials.insert((class, special), row);
        Ok(Reg { class, row })
    }

    /// A row that holds an address which is known when the kernel is loaded.
    pub(crate) fn address_row(&mut self, class: Class, init: Init) -> Result<Reg> {
        let rows = if class == Class::W { &mut self.program.wide } else { &mut self.program.narrow };
        Ok(Reg { class, row: Self::push_row(rows, init, self.pos)? })
    }
}
