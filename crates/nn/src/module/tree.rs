//! A model printed as a tree: names, layers, shapes, parameter counts.

use std::fmt::{self, Write};

use tensor_core::Param;

use super::{Leaf, Module, Visitor};

/// A model's tree, to be printed; see [`tree`].
pub struct Tree<'a>(&'a dyn Module);

/// The model as a tree: one line per module with its name, description and number of parameters, and the total.
///
/// `#[derive(Module)]` prints a model by this.
pub fn tree(model: &dyn Module) -> Tree<'_> {
    Tree(model)
}

/// One line of the tree.
struct Line {
    depth: usize,
    name: String,
    text: String,
    n_parameters: usize,
    /// Leaves directly in this module.
    leaves: String,
}

struct Collect {
    lines: Vec<Line>,
    /// The open modules' lines.
    open: Vec<usize>,
    seen: Vec<u64>,
    n_parameters: usize,
    n_frozen: usize,
}

impl Collect {
    fn new(text: String) -> Self {
        let root = Line { depth: 0, name: String::new(), text, n_parameters: 0, leaves: String::new() };
        Self { lines: vec![root], open: vec![0], seen: Vec::new(), n_parameters: 0, n_frozen: 0 }
    }

    fn param(&mut self, param: &Param) -> &'static str {
        if self.seen.contains(&param.id()) {
            return " (tied)";
        }
        self.seen.push(param.id());
        for &line in &self.open {
            self.lines[line].n_parameters += param.len();
        }
        self.n_parameters += param.len();
        if param.is_trainable() {
            return "";
        }
        self.n_frozen += param.len();
        " (frozen)"
    }
}

impl<'a> Visitor<'a> for Collect {
    fn leaf(&mut self, name: &str, leaf: Leaf<'a>) {
        let (shape, mark) = match leaf {
            Leaf::Param(param) => (param.shape().to_string(), self.param(param)),
            Leaf::Buffer(buffer) => (buffer.get().shape().to_string(), " (buffer)"),
            Leaf::Constant(tensor) => (tensor.shape().to_string(), " (constant)"),
            Leaf::Mode(_) => return,
        };
        let open = *self.open.last().expect("invariant: the root is never left");
        let leaves = &mut self.lines[open].leaves;
        let separator = if leaves.is_empty() { "" } else { ", " };
        let _ = write!(leaves, "{separator}{name} {shape}{mark}");
    }

    fn enter(&mut self, name: &str, describe: &dyn Fn() -> String) {
        let line = Line {
            depth: self.open.len(),
            name: name.to_string(),
            text: describe(),
            n_parameters: 0,
            leaves: String::new(),
        };
        self.open.push(self.lines.len());
        self.lines.push(line);
    }

    fn exit(&mut self) {
        self.open.pop();
    }
}

/// 1234567 as `1,234,567`.
fn thousands(n: usize) -> String {
    let digits = n.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

impl fmt::Display for Tree<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut collect = Collect::new(self.0.describe());
        self.0.visit(&mut collect);
        let heads: Vec<String> = collect.lines.iter().map(head).collect();
        let wide = |line: &Line| line.n_parameters > 0 || !line.leaves.is_empty();
        let width = heads.iter().zip(&collect.lines).filter(|(_, l)| wide(l)).map(|(h, _)| h.chars().count()).max();
        let counts: Vec<String> = collect.lines.iter().map(|line| thousands(line.n_parameters)).collect();
        let count_width = counts.iter().map(String::len).max().unwrap_or(0);
        for ((line, head), count) in collect.lines.iter().zip(&heads).zip(&counts) {
            if wide(line) {
                let row = format!("{head:width$}  {count:>count_width$}  {}", line.leaves, width = width.unwrap_or(0));
                writeln!(f, "{}", row.trim_end())?;
            } else {
                writeln!(f, "{head}")?;
            }
        }
        let plural = if collect.n_parameters == 1 { "" } else { "s" };
        write!(f, "{} parameter{plural}", thousands(collect.n_parameters))?;
        if collect.n_frozen > 0 {
            write!(f, ", {} of them frozen", thousands(collect.n_frozen))?;
        }
        Ok(())
    }
}

fn head(line: &Line) -> String {
    let indent = "  ".repeat(line.depth);
    match (&*line.name, &*line.text) {
        ("", text) => format!("{indent}{text}"),
        (name, "") => format!("{indent}{name}"),
        (name, text) => format!("{indent}{name}: {text}"),
    }
}
