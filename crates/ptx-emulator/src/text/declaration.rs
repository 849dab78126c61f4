//! Functions, parameters and variables.

use super::ast::{Func, Init, Var, VarSpace};
use super::lexer::Tok;
use super::parser::Parser;
use crate::error::{Error, Result};
use crate::types::{Space, Ty};

impl<'a> Parser<'a> {
    pub(super) fn function(&mut self) -> Result<Func<'a>> {
        let is_entry = self.next() == Tok::Dot("entry");
        if !is_entry && self.accept_dot("attribute") {
            self.expect("(")?;
            while !self.accept(")") {
                if self.next() == Tok::End {
                    return self.error("`)`");
                }
            }
        }
        let rets = if !is_entry && self.peek() == Tok::Punct("(") { self.params()? } else { Vec::new() };
        let pos = self.pos();
        let name = self.ident("a function name")?;
        let params = if self.peek() == Tok::Punct("(") { self.params()? } else { Vec::new() };
        let mut func =
            Func { is_entry, name, rets, params, body: None, max_threads: None, required_threads: None, pos };
        loop {
            match self.peek() {
                Tok::Dot("maxntid") => func.max_threads = Some(self.triple()?),
                Tok::Dot("reqntid") => func.required_threads = Some(self.triple()?),
                Tok::Dot("reqnctapercluster") => {
                    if self.triple()? != [1; 3] {
                        return Err(Error::parse(pos, "clusters of several blocks are not supported"));
                    }
                }
                Tok::Dot("minnctapersm" | "maxnctapersm" | "maxnreg" | "maxclusterrank") => {
                    self.next();
                    self.small("a number")?;
                }
                Tok::Dot("noreturn" | "explicitcluster" | "unique") => {
                    self.next();
                }
                Tok::Dot("pragma") => self.skip_to_semicolon()?,
                _ => break,
            }
        }
        if !self.accept(";") {
            self.expect("{")?;
            func.body = Some(self.items()?);
        }
        Ok(func)
    }

    fn triple(&mut self) -> Result<[u32; 3]> {
        self.next();
        let mut triple = [self.small("a number of threads")?, 1, 1];
        for axis in &mut triple[1..] {
            if !self.accept(",") {
                break;
            }
            *axis = self.small("a number of threads")?;
        }
        Ok(triple)
    }

    fn params(&mut self) -> Result<Vec<Var<'a>>> {
        self.expect("(")?;
        let mut params = Vec::new();
        if self.accept(")") {
            return Ok(params);
        }
        loop {
            match self.peek() {
                Tok::Dot("param" | "reg") => params.push(self.variable_list(false, true)?.remove(0)),
                _ => return self.error("`.param`"),
            }
            if self.accept(")") {
                return Ok(params);
            }
            self.expect(",")?;
        }
    }

    pub(super) fn variables(&mut self, is_extern: bool) -> Result<Vec<Var<'a>>> {
        self.variable_list(is_extern, false)
    }

    /// `.space .align n .v4 .type name<n>[d] = init, …`; one alone in a list of parameters.
    fn variable_list(&mut self, is_extern: bool, single: bool) -> Result<Vec<Var<'a>>> {
        let space = match self.next() {
            Tok::Dot("reg") => VarSpace::Reg,
            Tok::Dot("global") => VarSpace::Memory(Space::Global),
            Tok::Dot("const") => VarSpace::Memory(Space::Const),
            Tok::Dot("shared") => VarSpace::Memory(Space::Shared),
            Tok::Dot("local") => VarSpace::Memory(Space::Local),
            _ => VarSpace::Memory(Space::Param),
        };
        let (mut align, mut vector, mut ty, mut is_pointer) = (None, 1, None, false);
        loop {
            let pos = self.pos();
            match self.peek() {
                Tok::Dot("align") => {
                    self.next();
                    let value = self.small("an alignment")?;
                    if !value.is_power_of_two() || value > 1 << 16 {
                        return Err(Error::parse(pos, format!("align {value}: expected a power of two")));
                    }
                    // An alignment behind `.ptr` is that of what it points to.
                    if !is_pointer {
                        align = Some(value);
                    }
                }
                Tok::Dot("ptr") => {
                    self.next();
                    is_pointer = true;
                }
                Tok::Dot("global" | "shared" | "const" | "local") if is_pointer => {
                    self.next();
                }
                Tok::Dot("attribute") => {
                    self.next();
                    self.expect("(")?;
                    while !self.accept(")") {
                        if self.next() == Tok::End {
                            return self.error("`)`");
                        }
                    }
                }
                Tok::Dot("v2") => {
                    self.next();
                    vector = 2;
                }
                Tok::Dot("v4") => {
                    self.next();
                    vector = 4;
                }
                Tok::Dot(name) => {
                    if ty.is_some() {
                        return Err(Error::parse(pos, format!("unexpected `.{name}` in a declaration")));
                    }
                    self.next();
                    let Some(parsed) = Ty::parse(name) else {
                        return Err(Error::parse(pos, format!("unknown type `.{name}`")));
                    };
                    ty = Some(parsed);
                }
                _ => break,
            }
        }
        let Some(ty) = ty else { return self.error("a type such as `.b32`") };
        let mut vars = Vec::new();
        loop {
            let pos = self.pos();
            let name = self.ident("a name")?;
            let mut var = Var {
                space,
                is_extern,
                align,
                ty,
                vector,
                name,
                range: None,
                dims: Vec::new(),
                init: None,
                is_pointer,
                pos,
            };
            if self.accept("<") {
                var.range = Some(self.small("how many registers")?);
                self.expect(">")?;
            }
            while self.accept("[") {
                if self.accept("]") {
                    var.dims.push(None);
                } else {
                    let size = self.constant_int()?;
                    var.dims.push(Some(size));
                    self.expect("]")?;
                }
                if var.dims.len() > 8 {
                    return Err(Error::parse(pos, "array has more than 8 dimensions"));
                }
            }
            if self.accept("=") {
                var.init = Some(self.initialiser()?);
            }
            vars.push(var);
            if single || !self.accept(",") {
                return Ok(vars);
            }
        }
    }

    fn initialiser(&mut self) -> Result<Init<'a>> {
        if self.accept("{") {
            return self.nested(|parser| {
                let mut list = Vec::new();
                if parser.accept("}") {
                    return Ok(Init::List(list));
                }
                loop {
                    list.push(parser.initialiser()?);
                    if parser.accept("}") {
                        return Ok(Init::List(list));
                    }
                    parser.expect(",")?;
                }
            });
        }
        let pos = self.pos();
        if let Tok::Ident(name) = self.peek() {
            self.next();
            if name == "generic" && self.accept("(") {
                let symbol = self.ident("a variable")?;
                self.expect(")")?;
                let offset = self.symbol_offset()?;
                return Ok(Init::Symbol(symbol, offset, pos));
            }
            let offset = self.symbol_offset()?;
            return Ok(Init::Symbol(name, offset, pos));
        }
        Ok(Init::Const(self.constant()?))
    }

    pub(super) fn symbol_offset(&mut self) -> Result<i64> {
        if self.accept("+") {
            return Ok(self.constant_int()? as i64);
        }
        if self.accept("-") {
            return Ok((self.constant_int()? as i64).wrapping_neg());
        }
        Ok(0)
    }
}
