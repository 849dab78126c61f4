//! Type inference: an expression and its inputs' element types give a program whose every node has a type.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError};

use smallvec::SmallVec;

use super::{Binary, Code, Node, Prim, Unary};
use crate::{DType, Error, Result};

/// A node with its element type; number nodes have the type of the node that uses them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TypedNode {
    /// What is computed; never [`Prim::Call`].
    pub prim: Prim,
    /// The operands' positions.
    pub args: [u32; 3],
    /// The type of the result.
    pub dtype: DType,
}

/// An expression for given input types: named formulas expanded, every node typed. What backends execute.
#[derive(Debug)]
pub struct Program {
    /// Nodes in order; the last is the value.
    pub nodes: Vec<TypedNode>,
    /// The structure's number and the input types make the key of kernel caches.
    pub id: u64,
}

impl Program {
    /// The type of the value.
    pub fn dtype(&self) -> DType {
        self.nodes.last().expect("invariant: a program has a node").dtype
    }
}

impl Code {
    /// The program for these input types, or an error that names the mismatch. Cached.
    pub fn program(self: &Arc<Self>, op: &'static str, inputs: &[DType]) -> Result<Arc<Program>> {
        if let Some((dtypes, program)) = self.programs.first.get()
            && dtypes[..] == *inputs
        {
            return Ok(program.clone());
        }
        let mut more = self.programs.more.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, program)) = more.iter().find(|(dtypes, _)| dtypes[..] == *inputs) {
            return Ok(program.clone());
        }
        let expanded = expand(self.nodes());
        let program = Arc::new(Program { nodes: infer(op, &expanded, inputs)?, id: self.id() });
        let typed = (SmallVec::from_slice(inputs), program.clone());
        if let Err(typed) = self.programs.first.set(typed) {
            more.push(typed);
        }
        Ok(program)
    }
}

impl Code {
    /// The type of the value for these input types, or an error that names the mismatch.
    pub fn result(self: &Arc<Self>, op: &'static str, inputs: &[DType]) -> Result<DType> {
        match self.programs.first.get() {
            Some((dtypes, program)) if dtypes[..] == *inputs => Ok(program.dtype()),
            _ => Ok(self.program(op, inputs)?.dtype()),
        }
    }
}

/// Replaces named formulas by their graphs, to the bottom.
fn expand(nodes: &[Node]) -> Vec<Node> {
    fn splice(nodes: &[Node], inputs: Option<&[u32]>, out: &mut Vec<Node>) -> u32 {
        let mut place: Vec<u32> = Vec::with_capacity(nodes.len());
        for node in nodes {
            let mut args = [0; 3];
            for (arg, &k) in args.iter_mut().zip(node.operands()) {
                *arg = place[k as usize];
            }
            place.push(match (node.prim, inputs) {
                (Prim::Input(i), Some(inputs)) => inputs[i as usize],
                (Prim::Call(id), _) => splice(id.expansion().code.nodes(), Some(&args), out),
                (prim, _) => {
                    let node = Node { prim, args };
                    match out.iter().position(|n| *n == node) {
                        Some(i) => i as u32,
                        None => {
                            out.push(node);
                            out.len() as u32 - 1
                        }
                    }
                }
            });
        }
        *place.last().expect("invariant: an expression has a node")
    }
    let mut out = Vec::with_capacity(nodes.len());
    let root = splice(nodes, None, &mut out) as usize;
    // The root must be last; a formula that returns an operand unchanged can leave it earlier.
    out.truncate(root + 1);
    out
}

/// The type of a node, or that it is still a number waiting for its partner's.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Ty {
    Known(DType),
    WeakInt,
    WeakFloat,
}

fn infer(op: &'static str, nodes: &[Node], inputs: &[DType]) -> Result<Vec<TypedNode>> {
    let mut types: Vec<Ty> = Vec::with_capacity(nodes.len());
    for node in nodes {
        let arg = |i: usize| types[node.args[i] as usize];
        types.push(match node.prim {
            Prim::Input(i) => Ty::Known(inputs[i as usize]),
            Prim::Arg(_) | Prim::Lit(_) => Ty::WeakFloat,
            Prim::ArgInt(_) | Prim::LitInt(_) => Ty::WeakInt,
            Prim::Unary(unary) => infer_unary(op, unary, arg(0))?,
            Prim::Binary(binary) => infer_binary(op, binary, arg(0), arg(1))?,
            Prim::Select => {
                if !matches!(arg(0), Ty::Known(DType::Bool)) {
                    return Err(Error::dtype(op, format!("the condition must be bool: condition {}", name(arg(0)))));
                }
                join(op, arg(1), arg(2))?
            }
            Prim::Cast(dtype) => Ty::Known(dtype),
            Prim::Call(_) => unreachable!("invariant: formulas are expanded"),
        });
    }
    Ok(settle(nodes, &types, inputs))
}

/// Gives every waiting number the type of the node that uses it; one that two types use is written twice.
fn settle(nodes: &[Node], types: &[Ty], inputs: &[DType]) -> Vec<TypedNode> {
    let mut settler = Settler { nodes, types, inputs, placed: HashMap::new(), out: Vec::with_capacity(nodes.len()) };
    let root = settler.place(nodes.len() - 1, None);
    settler.out.truncate(root as usize + 1);
    settler.out
}

struct Settler<'a> {
    nodes: &'a [Node],
    types: &'a [Ty],
    inputs: &'a [DType],
    placed: HashMap<(usize, DType), u32>,
    out: Vec<TypedNode>,
}

impl Settler<'_> {
    /// The type itself, or that of a number which no node gives one: the first input's that can hold it.
    fn or_default(&self, ty: Ty) -> DType {
        let first = |fits: fn(DType) -> bool| self.inputs.iter().copied().find(|&d| fits(d));
        match ty {
            Ty::Known(dtype) => dtype,
            Ty::WeakFloat => first(DType::is_float).unwrap_or(DType::F32),
            Ty::WeakInt => first(|d| d != DType::Bool).unwrap_or(DType::I64),
        }
    }

    /// The type that node `i`, of type `dtype`, gives to operands that still wait for one.
    fn wanted(&self, i: usize, dtype: DType) -> Option<DType> {
        let node = self.nodes[i];
        let operand = |k: usize| self.types[node.args[k] as usize];
        match node.prim {
            // Comparisons type their operands among themselves.
            Prim::Binary(op) if op.is_comparison() => Some(match (operand(0), operand(1)) {
                (Ty::Known(d), _) | (_, Ty::Known(d)) => d,
                (Ty::WeakInt, Ty::WeakInt) => self.or_default(Ty::WeakInt),
                _ => self.or_default(Ty::WeakFloat),
            }),
            // A number is converted where it stands, if it can be.
            Prim::Cast(to) if to.is_float() || (operand(0) == Ty::WeakInt && to.is_int()) => Some(to),
            Prim::Cast(_) => None,
            _ => Some(dtype),
        }
    }

    /// Writes node `i`, as `wanted` if it still waits for a type, and returns where it stands.
    fn place(&mut self, i: usize, wanted: Option<DType>) -> u32 {
        let dtype = match (self.types[i], wanted) {
            (Ty::WeakInt | Ty::WeakFloat, Some(dtype)) => dtype,
            (ty, _) => self.or_default(ty),
        };
        if let Some(&place) = self.placed.get(&(i, dtype)) {
            return place;
        }
        let node = self.nodes[i];
        let wanted = self.wanted(i, dtype);
        let mut args = [0; 3];
        for (arg, &k) in args.iter_mut().zip(node.operands()) {
            *arg = self.place(k as usize, wanted);
        }
        let place = if self.is_idle_cast(node, args[0]) {
            args[0]
        } else {
            self.out.push(TypedNode { prim: node.prim, args, dtype });
            self.out.len() as u32 - 1
        };
        self.placed.insert((i, dtype), place);
        place
    }

    /// Whether a cast changes nothing. One of a 16-bit float that was computed does: it rounds.
    fn is_idle_cast(&self, node: Node, operand: u32) -> bool {
        let Prim::Cast(to) = node.prim else { return false };
        let from = self.out[operand as usize];
        let is_computed = !matches!(from.prim, Prim::Input(_) | Prim::Cast(_));
        from.dtype == to && (to.compute() == to || !is_computed)
    }
}

fn name(t: Ty) -> &'static str {
    match t {
        Ty::Known(dtype) => dtype.name(),
        Ty::WeakInt => "an integer number",
        Ty::WeakFloat => "a float number",
    }
}

fn join(op: &'static str, a: Ty, b: Ty) -> Result<Ty> {
    match (a, b) {
        (Ty::Known(x), Ty::Known(y)) if x == y => Ok(a),
        (Ty::Known(x), Ty::Known(y)) => {
            Err(Error::dtype(op, format!("operands have different dtypes: lhs {x}, rhs {y}; cast one with .cast(..)")))
        }
        (Ty::Known(d), Ty::WeakFloat) | (Ty::WeakFloat, Ty::Known(d)) if !d.is_float() => {
            Err(Error::dtype(op, format!("a float number needs a float tensor: tensor {d}; cast it with .cast(..)")))
        }
        (Ty::Known(_), _) => Ok(a),
        (_, Ty::Known(_)) => Ok(b),
        (Ty::WeakInt, Ty::WeakInt) => Ok(Ty::WeakInt),
        _ => Ok(Ty::WeakFloat),
    }
}

/// A primitive that a type does not have; `needs` says what it takes.
fn not_defined(op: &'static str, what: &str, needs: &str, t: Ty) -> Error {
    let what = if what == op { String::new() } else { format!("{what} ") };
    Error::dtype(op, format!("{what}needs {needs}: input {}; cast it with .cast(..)", name(t)))
}

fn infer_unary(op: &'static str, unary: Unary, x: Ty) -> Result<Ty> {
    let known = if let Ty::Known(d) = x { Some(d) } else { None };
    let needs = match unary {
        Unary::Not if known == Some(DType::Bool) => return Ok(x),
        Unary::Not => "a bool dtype",
        Unary::Neg if known == Some(DType::U8) => "a signed dtype",
        Unary::Neg | Unary::Abs | Unary::Sign | Unary::Floor | Unary::Ceil | Unary::Round => {
            if known != Some(DType::Bool) {
                return Ok(x);
            }
            "a dtype other than bool"
        }
        _ if known.is_none() => return Ok(Ty::WeakFloat),
        _ if known.is_some_and(DType::is_float) => return Ok(x),
        _ => "a float dtype",
    };
    Err(not_defined(op, unary.name(), needs, x))
}

fn infer_binary(op: &'static str, binary: Binary, a: Ty, b: Ty) -> Result<Ty> {
    let joined = join(op, a, b)?;
    let is_bool = joined == Ty::Known(DType::Bool);
    match binary {
        Binary::Eq | Binary::Ne | Binary::Lt | Binary::Le => Ok(Ty::Known(DType::Bool)),
        Binary::And | Binary::Or if !is_bool => Err(not_defined(op, binary.name(), "a bool dtype", joined)),
        Binary::And | Binary::Or | Binary::Min | Binary::Max => Ok(joined),
        _ if is_bool => Err(not_defined(op, binary.name(), "a dtype other than bool", joined)),
        _ => Ok(joined),
    }
}
