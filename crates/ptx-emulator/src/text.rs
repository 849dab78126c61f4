//! The front end's first half: text to a module whose names are not yet resolved.

pub(crate) mod ast;
mod constant;
mod declaration;
mod lexer;
pub(crate) mod parser;
