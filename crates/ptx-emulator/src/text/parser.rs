//! Tokens to a module: directives, scopes and statements of one generic form.

use super::ast::{Ast, Item, Kind, Operand, Stmt};
use super::lexer::{Tok, Token, lex};
use crate::error::{Error, Pos, Result};

/// Scopes and lists deeper than this are refused.
pub(super) const MAX_DEPTH: usize = 64;
/// The newest version of the language that is known.
pub(crate) const NEWEST: (u32, u32) = (8, 8);
const OLDEST: (u32, u32) = (6, 0);

pub(crate) fn parse(text: &str) -> Result<Ast<'_>> {
    if text.len() > u32::MAX as usize / 2 {
        return Err(Error::parse(Pos { line: 1, column: 1 }, "module is longer than 2 GiB"));
    }
    let tokens = lex(text)?;
    let mut parser = Parser { tokens, at: 0, depth: 0 };
    parser.module()
}

pub(super) struct Parser<'a> {
    tokens: Vec<Token<'a>>,
    at: usize,
    pub(super) depth: usize,
}

impl<'a> Parser<'a> {
    pub(super) fn peek(&self) -> Tok<'a> {
        self.tokens[self.at].tok
    }

    fn peek_second(&self) -> Tok<'a> {
        self.tokens[(self.at + 1).min(self.tokens.len() - 1)].tok
    }

    pub(super) fn pos(&self) -> Pos {
        self.tokens[self.at].pos
    }

    pub(super) fn next(&mut self) -> Tok<'a> {
        let tok = self.peek();
        self.at = (self.at + 1).min(self.tokens.len() - 1);
        tok
    }

    pub(super) fn error<T>(&self, expected: &str) -> Result<T> {
        let found = match self.peek() {
            Tok::Ident(name) => format!("`{name}`"),
            Tok::Dot(name) => format!("`.{name}`"),
            Tok::Int(value) => format!("`{value}`"),
            Tok::F32(_) | Tok::F64(_) => "a floating number".into(),
            Tok::Str(text) => format!("{text:?}"),
            Tok::Punct(punct) => format!("`{punct}`"),
            Tok::End => "the end of the text".into(),
        };
        Err(Error::parse(self.pos(), format!("expected {expected}, found {found}")))
    }

    pub(super) fn accept(&mut self, punct: &str) -> bool {
        let found = matches!(self.peek(), Tok::Punct(p) if p == punct);
        if found {
            self.next();
        }
        found
    }

    pub(super) fn expect(&mut self, punct: &str) -> Result<()> {
        if self.accept(punct) { Ok(()) } else { self.error(&format!("`{punct}`")) }
    }

    pub(super) fn accept_dot(&mut self, name: &str) -> bool {
        let found = self.peek() == Tok::Dot(name);
        if found {
            self.next();
        }
        found
    }

    pub(super) fn ident(&mut self, what: &str) -> Result<&'a str> {
        match self.peek() {
            Tok::Ident(name) => {
                self.next();
                Ok(name)
            }
            _ => self.error(what),
        }
    }

    pub(super) fn small(&mut self, what: &str) -> Result<u32> {
        match self.peek() {
            Tok::Int(value) if value <= u32::MAX.into() => {
                self.next();
                Ok(value as u32)
            }
            _ => self.error(what),
        }
    }

    pub(super) fn nested<T>(&mut self, parse: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.depth >= MAX_DEPTH {
            return Err(Error::parse(self.pos(), format!("nested more than {MAX_DEPTH} deep")));
        }
        self.depth += 1;
        let result = parse(self);
        self.depth -= 1;
        result
    }

    fn module(&mut self) -> Result<Ast<'a>> {
        let mut ast = Ast::default();
        if !self.accept_dot("version") {
            return self.error("`.version`");
        }
        ast.version = self.version(&mut ast.warnings)?;
        loop {
            let pos = self.pos();
            match self.peek() {
                Tok::End => break,
                Tok::Punct(";") => {
                    self.next();
                }
                Tok::Dot("version") => {
                    self.next();
                    self.version(&mut ast.warnings)?;
                }
                Tok::Dot("target") => {
                    self.next();
                    ast.target.push(self.ident("a target such as sm_80")?);
                    while self.accept(",") {
                        ast.target.push(self.ident("a target option")?);
                    }
                }
                Tok::Dot("address_size") => {
                    self.next();
                    if self.small("64")? != 64 {
                        return Err(Error::parse(
                            pos,
                            "address_size: only 64-bit addresses are supported: expected 64",
                        ));
                    }
                }
                Tok::Dot("file" | "loc") => self.debug_line()?,
                Tok::Dot("section") => self.section()?,
                Tok::Dot("pragma") => self.skip_to_semicolon()?,
                Tok::Dot("alias") => return Err(Error::parse(pos, "`.alias` is not supported")),
                _ => self.declaration(&mut ast)?,
            }
        }
        if ast.target.is_empty() {
            return Err(Error::parse(
                Pos { line: 1, column: 1 },
                "module has no `.target`: expected one such as sm_80",
            ));
        }
        Ok(ast)
    }

    fn version(&mut self, warnings: &mut Vec<String>) -> Result<(u32, u32)> {
        let pos = self.pos();
        let version = match self.next() {
            Tok::F64(bits) => {
                let tenths = (f64::from_bits(bits) * 10.0).round();
                ((tenths / 10.0) as u32, (tenths % 10.0) as u32)
            }
            _ => return Err(Error::parse(pos, "expected a version such as 7.8")),
        };
        if version < OLDEST {
            let message = format!("version {}.{} is older than 6.0, the oldest supported", version.0, version.1);
            return Err(Error::parse(pos, message));
        }
        if version > NEWEST {
            warnings.push(format!(
                "{}:{}: version {}.{} is newer than 8.8, the newest known",
                pos.line, pos.column, version.0, version.1
            ));
        }
        Ok(version)
    }

    /// `.file 1 "a.cu"` and `.loc 1 2 3, function_name …`: to the end of what it takes.
    fn debug_line(&mut self) -> Result<()> {
        let line = self.pos().line;
        self.next();
        while self.pos().line == line && self.peek() != Tok::End {
            self.next();
        }
        Ok(())
    }

    fn section(&mut self) -> Result<()> {
        self.next();
        while !matches!(self.peek(), Tok::Punct("{") | Tok::End) {
            self.next();
        }
        self.expect("{")?;
        let mut depth = 1;
        while depth > 0 {
            match self.next() {
                Tok::Punct("{") => depth += 1,
                Tok::Punct("}") => depth -= 1,
                Tok::End => return self.error("`}`"),
                _ => {}
            }
        }
        Ok(())
    }

    pub(super) fn skip_to_semicolon(&mut self) -> Result<()> {
        while !self.accept(";") {
            if self.next() == Tok::End {
                return self.error("`;`");
            }
        }
        Ok(())
    }

    pub(super) fn declaration(&mut self, ast: &mut Ast<'a>) -> Result<()> {
        let mut is_extern = false;
        loop {
            match self.peek() {
                Tok::Dot("visible" | "weak" | "common") => {}
                Tok::Dot("extern") => is_extern = true,
                _ => break,
            }
            self.next();
        }
        match self.peek() {
            Tok::Dot("entry" | "func") => ast.funcs.push(self.function()?),
            Tok::Dot("global" | "const" | "shared") => {
                let vars = self.variables(is_extern)?;
                self.expect(";")?;
                ast.vars.extend(vars);
            }
            Tok::Dot(name) => return Err(Error::parse(self.pos(), format!("unknown directive `.{name}`"))),
            _ => return self.error("a directive such as `.entry`"),
        }
        Ok(())
    }

    /// The inside of braces, up to and with the closing one.
    pub(super) fn items(&mut self) -> Result<Vec<Item<'a>>> {
        self.nested(|parser| {
            let mut items = Vec::new();
            while !parser.accept("}") {
                parser.item(&mut items)?;
            }
            Ok(items)
        })
    }

    fn item(&mut self, items: &mut Vec<Item<'a>>) -> Result<()> {
        let pos = self.pos();
        match self.peek() {
            Tok::Punct("{") => {
                self.next();
                items.push(Item::Scope(self.items()?));
            }
            Tok::Punct(";") => {
                self.next();
            }
            Tok::Dot("loc" | "file") => self.debug_line()?,
            Tok::Dot("pragma") => self.skip_to_semicolon()?,
            Tok::Dot("reg" | "local" | "shared" | "param" | "global" | "const") => {
                items.extend(self.variables(false)?.into_iter().map(Item::Var));
                self.expect(";")?;
            }
            Tok::Dot("extern") => {
                self.next();
                items.extend(self.variables(true)?.into_iter().map(Item::Var));
                self.expect(";")?;
            }
            Tok::Ident(name) if self.peek_second() == Tok::Punct(":") => {
                self.next();
                self.next();
                match self.peek() {
                    Tok::Dot("branchtargets" | "calltargets") => {
                        self.next();
                        let mut names = vec![self.ident("a label")?];
                        while self.accept(",") {
                            names.push(self.ident("a label")?);
                        }
                        self.expect(";")?;
                        items.push(Item::Targets(name, names, pos));
                    }
                    Tok::Dot("callprototype") => {
                        self.skip_to_semicolon()?;
                        items.push(Item::Prototype(name));
                    }
                    _ => items.push(Item::Label(name, pos)),
                }
            }
            Tok::Ident(_) | Tok::Punct("@") => items.push(Item::Stmt(self.statement()?)),
            Tok::Dot(name) => return Err(Error::parse(pos, format!("unknown directive `.{name}` in a function"))),
            _ => return self.error("an instruction"),
        }
        Ok(())
    }

    fn statement(&mut self) -> Result<Stmt<'a>> {
        let guard = if self.accept("@") {
            let negated = self.accept("!");
            Some((self.ident("a predicate")?, negated))
        } else {
            None
        };
        let pos = self.pos();
        let opcode = self.ident("an opcode")?;
        let mut mods = Vec::new();
        while let Tok::Dot(name) = self.peek() {
            self.next();
            mods.push(name);
        }
        let mut operands = Vec::new();
        if !self.accept(";") {
            loop {
                operands.push(self.operand(opcode == "call")?);
                if self.accept(";") {
                    break;
                }
                self.expect(",")?;
            }
        }
        Ok(Stmt { guard, opcode, mods, operands, pos })
    }

    fn operand(&mut self, in_call: bool) -> Result<Operand<'a>> {
        let pos = self.pos();
        let kind = match self.peek() {
            Tok::Punct("!") if matches!(self.peek_second(), Tok::Ident(_)) => {
                self.next();
                Kind::Not(self.ident("a predicate")?)
            }
            Tok::Punct("{") => {
                self.next();
                Kind::Vector(self.operands_until("}")?)
            }
            Tok::Punct("(") if in_call => {
                self.next();
                Kind::List(self.operands_until(")")?)
            }
            Tok::Punct("[") => {
                self.next();
                self.address()?
            }
            Tok::Ident(name) => {
                self.next();
                match self.peek() {
                    Tok::Dot(component) => {
                        self.next();
                        Kind::Name(name, Some(component))
                    }
                    Tok::Punct("|") => {
                        self.next();
                        Kind::Pair(name, self.ident("a predicate")?)
                    }
                    Tok::Punct("+" | "-") => Kind::NameOffset(name, self.symbol_offset()?),
                    Tok::Punct("[") => {
                        self.next();
                        let index = self.constant_int()? as i64;
                        self.expect("]")?;
                        Kind::NameOffset(name, index)
                    }
                    _ => Kind::Name(name, None),
                }
            }
            _ => Kind::Const(self.constant()?),
        };
        Ok(Operand { kind, pos })
    }

    fn operands_until(&mut self, close: &str) -> Result<Vec<Operand<'a>>> {
        self.nested(|parser| {
            let mut operands = Vec::new();
            if parser.accept(close) {
                return Ok(operands);
            }
            loop {
                operands.push(parser.operand(false)?);
                if parser.accept(close) {
                    return Ok(operands);
                }
                parser.expect(",")?;
            }
        })
    }

    fn address(&mut self) -> Result<Kind<'a>> {
        let kind = match self.peek() {
            Tok::Ident(name) => {
                self.next();
                Kind::Address(Some(name), self.symbol_offset()?)
            }
            _ => Kind::Address(None, self.constant_int()? as i64),
        };
        if self.accept(",") {
            while !self.accept("]") {
                if self.next() == Tok::End {
                    return self.error("`]`");
                }
            }
            return Ok(Kind::Tensor);
        }
        self.expect("]")?;
        Ok(kind)
    }
}
