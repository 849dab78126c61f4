//! Constant expressions.

use super::ast::Const;
use super::lexer::Tok;
use super::parser::Parser;
use crate::error::{Error, Result};

/// Binary operators, weakest first.
const LEVELS: &[&[&str]] = &[
    &["||"],
    &["&&"],
    &["|"],
    &["^"],
    &["&"],
    &["==", "!="],
    &["<", "<=", ">", ">="],
    &["<<", ">>"],
    &["+", "-"],
    &["*", "/", "%"],
];

impl<'a> Parser<'a> {
    /// An expression whose value is an integer.
    pub(super) fn constant_int(&mut self) -> Result<u64> {
        let pos = self.pos();
        match self.constant()? {
            Const::Int(value) => Ok(value),
            _ => Err(Error::parse(pos, "expected an integer constant, found a floating one")),
        }
    }

    pub(super) fn constant(&mut self) -> Result<Const> {
        self.nested(|parser| {
            let condition = parser.binary(0)?;
            if !parser.accept("?") {
                return Ok(condition);
            }
            let yes = parser.constant()?;
            parser.expect(":")?;
            let no = parser.constant()?;
            Ok(if truth(condition) { yes } else { no })
        })
    }

    fn binary(&mut self, level: usize) -> Result<Const> {
        let Some(operators) = LEVELS.get(level) else { return self.unary() };
        let mut left = self.binary(level + 1)?;
        while let Tok::Punct(operator) = self.peek() {
            if !operators.contains(&operator) {
                break;
            }
            let pos = self.pos();
            self.next();
            let right = self.binary(level + 1)?;
            left =
                apply(operator, left, right).ok_or_else(|| Error::parse(pos, format!("`{operator}`: bad operands")))?;
        }
        Ok(left)
    }

    fn unary(&mut self) -> Result<Const> {
        let pos = self.pos();
        match self.peek() {
            Tok::Int(value) => {
                self.next();
                Ok(Const::Int(value))
            }
            Tok::F32(bits) => {
                self.next();
                Ok(Const::F32(bits))
            }
            Tok::F64(bits) => {
                self.next();
                Ok(Const::F64(bits))
            }
            Tok::Ident("WARP_SZ") => {
                self.next();
                Ok(Const::Int(32))
            }
            Tok::Punct(operator @ ("-" | "+" | "!" | "~")) => {
                self.next();
                let value = self.nested(|parser| parser.unary())?;
                match (operator, value) {
                    ("+", value) => Ok(value),
                    ("-", Const::Int(value)) => Ok(Const::Int(value.wrapping_neg())),
                    ("-", Const::F32(bits)) => Ok(Const::F32(bits ^ 1 << 31)),
                    ("-", Const::F64(bits)) => Ok(Const::F64(bits ^ 1 << 63)),
                    ("~", Const::Int(value)) => Ok(Const::Int(!value)),
                    ("!", value) => Ok(Const::Int(u64::from(!truth(value)))),
                    _ => Err(Error::parse(pos, "`~`: expected an integer")),
                }
            }
            Tok::Punct("(") => {
                self.next();
                if let Tok::Dot("s64" | "u64") = self.peek() {
                    self.next();
                    self.expect(")")?;
                    return self.nested(|parser| parser.unary());
                }
                let value = self.constant()?;
                self.expect(")")?;
                Ok(value)
            }
            _ => self.error("a constant"),
        }
    }
}

fn truth(value: Const) -> bool {
    match value {
        Const::Int(value) => value != 0,
        Const::F32(bits) => f32::from_bits(bits) != 0.0,
        Const::F64(bits) => f64::from_bits(bits) != 0.0,
    }
}

fn float(value: Const) -> f64 {
    match value {
        Const::Int(value) => value as i64 as f64,
        Const::F32(bits) => f32::from_bits(bits).into(),
        Const::F64(bits) => f64::from_bits(bits),
    }
}

fn apply(operator: &str, left: Const, right: Const) -> Option<Const> {
    let (Const::Int(a), Const::Int(b)) = (left, right) else {
        let (a, b) = (float(left), float(right));
        let value = match operator {
            "+" => a + b,
            "-" => a - b,
            "*" => a * b,
            "/" => a / b,
            "<" => return Some(Const::Int(u64::from(a < b))),
            ">" => return Some(Const::Int(u64::from(a > b))),
            _ => return None,
        };
        return Some(Const::F64(value.to_bits()));
    };
    let (sa, sb) = (a as i64, b as i64);
    Some(Const::Int(match operator {
        "||" => u64::from(a != 0 || b != 0),
        "&&" => u64::from(a != 0 && b != 0),
        "|" => a | b,
        "^" => a ^ b,
        "&" => a & b,
        "==" => u64::from(a == b),
        "!=" => u64::from(a != b),
        "<" => u64::from(sa < sb),
        "<=" => u64::from(sa <= sb),
        ">" => u64::from(sa > sb),
        ">=" => u64::from(sa >= sb),
        "<<" => a.checked_shl(b.try_into().ok()?).unwrap_or(0),
        ">>" => (sa >> b.min(63)) as u64,
        "+" => a.wrapping_add(b),
        "-" => a.wrapping_sub(b),
        "*" => a.wrapping_mul(b),
        "/" => sa.checked_div(sb)? as u64,
        "%" => sa.checked_rem(sb)? as u64,
        _ => return None,
    }))
}
