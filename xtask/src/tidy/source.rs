//! The files that tidy reads, and Rust files as one flat list of tokens.

use crate::process::Result;
use crate::workspace::relative;
use proc_macro2::{Delimiter, TokenStream, TokenTree};
use std::fs;
use std::path::Path;

/// Kinds of files that are read as text.
const EXTENSIONS: &[&str] = &["md", "py", "rs", "sh", "toml", "yml"];
/// Folders that hold no sources.
const SKIPPED: &[&str] = &["target", "runs", ".git", "__pycache__"];

/// One file of the repository.
pub(super) struct Source {
    /// Relative to the root, with forward slashes.
    pub(super) path: String,
    pub(super) text: String,
    /// A Rust file's tokens; the error where it is not Rust.
    pub(super) tokens: std::result::Result<Vec<Token>, String>,
}

/// One token, a bracket included.
pub(super) struct Token {
    pub(super) text: String,
    pub(super) line: usize,
    /// How many brackets are open around it; an opening and its closing bracket count what is around them.
    pub(super) depth: usize,
    /// Whether it is compiled for tests only.
    pub(super) test: bool,
}

impl Source {
    pub(super) fn new(path: &str, text: &str) -> Self {
        let tokens = if path.ends_with(".rs") { tokens(text) } else { Ok(Vec::new()) };
        Self { path: path.into(), text: text.into(), tokens }
    }

    /// The tokens, none where the file is not Rust.
    pub(super) fn tokens(&self) -> &[Token] {
        self.tokens.as_deref().unwrap_or_default()
    }

    /// Whether the file is code of a library, as opposed to tests, examples and tools.
    pub(super) fn is_library(&self) -> bool {
        let in_source = self.path.starts_with("crates/") && self.path.contains("/src/");
        let is_test =
            ["/tests.rs", "/testing.rs"].iter().any(|name| self.path.ends_with(name)) || self.path.contains("/tests/");
        in_source && self.path.ends_with(".rs") && !is_test
    }

    /// Every place where these tokens, written with spaces between them, follow one another.
    pub(super) fn places<'a>(&'a self, sequence: &str) -> impl Iterator<Item = &'a [Token]> {
        let sequence: Vec<String> = sequence.split(' ').map(str::to_owned).collect();
        let tokens = self.tokens();
        (0..tokens.len()).map(move |at| &tokens[at..]).filter(move |rest| {
            rest.len() >= sequence.len() && sequence.iter().zip(*rest).all(|(text, token)| token.text == *text)
        })
    }
}

/// All sources below a folder, sorted by path.
pub(super) fn walk(folder: &Path) -> Result<Vec<Source>> {
    let mut entries = fs::read_dir(folder)?.collect::<std::io::Result<Vec<_>>>()?;
    entries.sort_by_key(std::fs::DirEntry::path);
    let mut files = Vec::new();
    for entry in entries {
        let path = entry.path();
        let name = entry.file_name();
        if entry.file_type()?.is_dir() {
            if !SKIPPED.iter().any(|skipped| name == *skipped) {
                files.extend(walk(&path)?);
            }
        } else if path.extension().is_some_and(|have| EXTENSIONS.iter().any(|e| have == *e)) {
            let text = fs::read_to_string(&path).map_err(|e| format!("{}: {e}", relative(&path)))?;
            files.push(Source::new(&relative(&path), &text));
        }
    }
    Ok(files)
}

fn tokens(text: &str) -> std::result::Result<Vec<Token>, String> {
    let stream: TokenStream = text.parse().map_err(|e| format!("not Rust: {e}"))?;
    let mut flat = Vec::new();
    flatten(stream, 0, false, &mut flat);
    Ok(flat)
}

/// Appends the tokens of a stream. What follows `#[cfg(test)]` is for tests, up to the end of its item: the next `;` or
/// the next `{…}` of this level.
fn flatten(stream: TokenStream, depth: usize, test: bool, flat: &mut Vec<Token>) {
    let mut item_is_test = false;
    for tree in stream {
        let line = tree.span().start().line;
        let test = test || item_is_test;
        let mut push = |text: String, line| flat.push(Token { text, line, depth, test });
        match tree {
            TokenTree::Group(group) => {
                let (open, close) = match group.delimiter() {
                    Delimiter::Parenthesis => ("(", ")"),
                    Delimiter::Brace => ("{", "}"),
                    Delimiter::Bracket => ("[", "]"),
                    Delimiter::None => ("", ""),
                };
                push(open.into(), line);
                let last_line = group.span().end().line;
                let inside = group.stream().to_string();
                flatten(group.stream(), depth + 1, test, flat);
                flat.push(Token { text: close.into(), line: last_line, depth, test });
                match open {
                    "[" if inside.replace(' ', "") == "cfg(test)" => item_is_test = true,
                    "{" => item_is_test = false,
                    _ => {}
                }
            }
            TokenTree::Punct(punct) => {
                push(punct.as_char().to_string(), line);
                if punct.as_char() == ';' {
                    item_is_test = false;
                }
            }
            other => push(other.to_string(), line),
        }
    }
}
