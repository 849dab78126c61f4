//! Text to tokens.

use crate::error::{Error, Pos, Result};

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Tok<'a> {
    /// A name: opcode, register, label, variable.
    Ident(&'a str),
    /// What follows a dot, without the dot: directives, modifiers, types.
    Dot(&'a str),
    /// An integer, and whether it was written with a `U`.
    Int(u64),
    /// The bits of an f32, written `0f…`.
    F32(u32),
    /// The bits of an f64, written `0d…` or as a decimal.
    F64(u64),
    Str(&'a str),
    /// One character, or `<<`, `>>`, `==` and the like.
    Punct(&'static str),
    End,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Token<'a> {
    pub(crate) tok: Tok<'a>,
    pub(crate) pos: Pos,
}

const PUNCT: &[&str] = &[
    "<<", ">>", "<=", ">=", "==", "!=", "&&", "||", "{", "}", "[", "]", "(", ")", "<", ">", ",", ";", ":", "=", "+",
    "-", "*", "/", "%", "!", "@", "|", "&", "^", "~", "?",
];

pub(crate) fn lex(text: &str) -> Result<Vec<Token<'_>>> {
    let mut lexer = Lexer { text, at: 0, line: 1, line_start: 0 };
    let mut tokens = Vec::with_capacity(text.len() / 4);
    loop {
        lexer.skip_blank()?;
        let pos = lexer.pos();
        let tok = lexer.next()?;
        tokens.push(Token { tok, pos });
        if tok == Tok::End {
            return Ok(tokens);
        }
    }
}

struct Lexer<'a> {
    text: &'a str,
    at: usize,
    line: u32,
    line_start: usize,
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$'
}

impl<'a> Lexer<'a> {
    fn pos(&self) -> Pos {
        Pos { line: self.line, column: (self.at - self.line_start) as u32 + 1 }
    }

    fn rest(&self) -> &'a [u8] {
        &self.text.as_bytes()[self.at..]
    }

    fn error<T>(&self, message: impl Into<String>) -> Result<T> {
        Err(Error::parse(self.pos(), message))
    }

    /// Blanks, comments and lines of the preprocessor.
    fn skip_blank(&mut self) -> Result<()> {
        loop {
            let rest = self.rest();
            match rest.first() {
                Some(b'\n') => {
                    self.at += 1;
                    self.line += 1;
                    self.line_start = self.at;
                }
                Some(byte) if byte.is_ascii_whitespace() || *byte == 0x0b || *byte == 0 => self.at += 1,
                Some(b'#') if self.text[self.line_start..self.at].trim().is_empty() => self.skip_line(),
                Some(b'/') if rest.get(1) == Some(&b'/') => self.skip_line(),
                Some(b'/') if rest.get(1) == Some(&b'*') => {
                    let Some(len) = self.text[self.at + 2..].find("*/") else {
                        return self.error("comment is not closed: expected */");
                    };
                    let end = self.at + 2 + len + 2;
                    for (i, byte) in self.text.as_bytes()[self.at..end].iter().enumerate() {
                        if *byte == b'\n' {
                            self.line += 1;
                            self.line_start = self.at + i + 1;
                        }
                    }
                    self.at = end;
                }
                _ => return Ok(()),
            }
        }
    }

    fn skip_line(&mut self) {
        self.at += self.rest().iter().position(|byte| *byte == b'\n').unwrap_or(self.rest().len());
    }

    /// As many bytes as satisfy the test, which are ASCII.
    fn take(&mut self, test: impl Fn(u8) -> bool) -> &'a str {
        let len = self.rest().iter().position(|byte| !test(*byte)).unwrap_or(self.rest().len());
        let taken = &self.text[self.at..self.at + len];
        self.at += len;
        taken
    }

    fn next(&mut self) -> Result<Tok<'a>> {
        let rest = self.rest();
        let Some(&first) = rest.first() else { return Ok(Tok::End) };
        let second = rest.get(1).copied().unwrap_or(b' ');
        if first == b'.' && is_word(second) {
            self.at += 1;
            return Ok(Tok::Dot(self.modifier()));
        }
        if first.is_ascii_digit() {
            return self.number();
        }
        if first.is_ascii_alphabetic() || matches!(first, b'_' | b'$') || (first == b'%' && is_word(second)) {
            let start = self.at;
            self.at += 1;
            self.take(is_word);
            return Ok(Tok::Ident(&self.text[start..self.at]));
        }
        if first == b'"' {
            let Some(len) = self.text[self.at + 1..].find(['"', '\n']) else {
                return self.error("string is not closed: expected \"");
            };
            let text = &self.text[self.at + 1..self.at + 1 + len];
            self.at += len + 2;
            return match self.text.as_bytes()[self.at - 1] {
                b'"' => Ok(Tok::Str(text)),
                _ => {
                    self.at -= len + 2;
                    self.error("string is not closed: expected \"")
                }
            };
        }
        for punct in PUNCT {
            if rest.starts_with(punct.as_bytes()) {
                self.at += punct.len();
                return Ok(Tok::Punct(punct));
            }
        }
        let unexpected = self.text[self.at..].chars().next().unwrap_or(' ');
        self.error(format!("unexpected character {unexpected:?}"))
    }

    /// `f32`, `shared::cta`, `L2::128B`.
    fn modifier(&mut self) -> &'a str {
        let start = self.at;
        self.take(is_word);
        while self.rest().starts_with(b"::") && self.rest().get(2).is_some_and(|byte| is_word(*byte)) {
            self.at += 2;
            self.take(is_word);
        }
        &self.text[start..self.at]
    }

    fn number(&mut self) -> Result<Tok<'a>> {
        let start = self.at;
        let pos = self.pos();
        let second = self.rest().get(1).copied().unwrap_or(b' ').to_ascii_lowercase();
        if self.rest()[0] == b'0' && matches!(second, b'f' | b'd') {
            self.at += 2;
            let digits = self.take(|byte| byte.is_ascii_hexdigit());
            let expected = if second == b'f' { 8 } else { 16 };
            if digits.len() != expected {
                let message =
                    format!("0{} takes {expected} hexadecimal digits: found {}", second as char, digits.len());
                return Err(Error::parse(pos, message));
            }
            let bits = u64::from_str_radix(digits, 16).map_err(|_| Error::parse(pos, "bad hexadecimal float"))?;
            return Ok(if second == b'f' { Tok::F32(bits as u32) } else { Tok::F64(bits) });
        }
        if self.rest()[0] == b'0' && matches!(second, b'x' | b'b') {
            self.at += 2;
            let digits = self.take(|byte| byte.is_ascii_hexdigit());
            return self.integer(digits, if second == b'x' { 16 } else { 2 }, pos);
        }
        let digits = self.take(|byte| byte.is_ascii_digit());
        let next = self.rest().first().copied().unwrap_or(b' ');
        let after = self.rest().get(1).copied().unwrap_or(b' ');
        let exponent = matches!(next, b'e' | b'E') && (after.is_ascii_digit() || matches!(after, b'+' | b'-'));
        if exponent || (next == b'.' && !after.is_ascii_alphabetic()) {
            if next == b'.' {
                self.at += 1;
                self.take(|byte| byte.is_ascii_digit());
            }
            if matches!(self.rest().first(), Some(b'e' | b'E')) {
                self.at += 1;
                if matches!(self.rest().first(), Some(b'+' | b'-')) {
                    self.at += 1;
                }
                self.take(|byte| byte.is_ascii_digit());
            }
            let text = &self.text[start..self.at];
            let value: f64 = text.parse().map_err(|_| Error::parse(pos, format!("bad number {text}")))?;
            return Ok(Tok::F64(value.to_bits()));
        }
        let radix = if digits.len() > 1 && digits.starts_with('0') { 8 } else { 10 };
        self.integer(digits, radix, pos)
    }

    fn integer(&mut self, digits: &str, radix: u32, pos: Pos) -> Result<Tok<'a>> {
        let value = u64::from_str_radix(digits, radix);
        let value =
            value.map_err(|_| Error::parse(pos, format!("bad integer {digits:?}: expected 64 bits at most")))?;
        if self.rest().first() == Some(&b'U') {
            self.at += 1;
        }
        if self.rest().first().is_some_and(|byte| is_word(*byte)) {
            return self.error("a name cannot begin with a digit");
        }
        Ok(Tok::Int(value))
    }
}
