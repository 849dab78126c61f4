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
        let mut programs = self.programs.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, program)) = programs.iter().find(|(dtypes, _)| dtypes[..] == *inputs) {
            return Ok(program.clone());
        }
        let expanded = expand(self.nodes());
        let program = Arc::new(Program { nodes: infer(op, &expanded, inputs)?, id: self.id() });
        programs.push((SmallVec::from_slice(inputs), program.clone()));
        Ok(program)
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
                    return Err(Error::dtype(op, format!("the condition of select must be bool: {}", name(arg(0)))));
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
    /// Writes node `i`, as `wanted` if it still waits for a type, and returns where it stands.
    fn place(&mut self, i: usize, wanted: Option<DType>) -> u32 {
        let dtype = match (self.types[i], wanted, self.inputs.first()) {
            (Ty::Known(dtype), ..) | (_, Some(dtype), _) => dtype,
            (Ty::WeakInt, None, Some(&dtype)) => dtype,
            (Ty::WeakFloat, None, Some(&dtype)) if dtype.is_float() => dtype,
            (Ty::WeakInt, None, None) => DType::I64,
            (Ty::WeakFloat, None, _) => DType::F32,
        };
        if let Some(&place) = self.placed.get(&(i, dtype)) {
            return place;
        }
        let node = self.nodes[i];
        // Comparisons type their operands among themselves, casts leave them alone, everything else has its own type.
        let wanted = match node.prim {
            Prim::Binary(Binary::Eq | Binary::Ne | Binary::Lt | Binary::Le) => {
                node.operands().iter().find_map(|&k| match self.types[k as usize] {
                    Ty::Known(dtype) => Some(dtype),
                    _ => None,
                })
            }
            Prim::Cast(_) => None,
            _ => Some(dtype),
        };
        let mut args = [0; 3];
        for (arg, &k) in args.iter_mut().zip(node.operands()) {
            *arg = self.place(k as usize, wanted);
        }
        self.out.push(TypedNode { prim: node.prim, args, dtype });
        let place = self.out.len() as u32 - 1;
        self.placed.insert((i, dtype), place);
        place
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
            Err(Error::dtype(op, format!("operands have different dtypes: {x} and {y}; cast one with .cast(..)")))
        }
        (Ty::Known(d), Ty::WeakFloat) | (Ty::WeakFloat, Ty::Known(d)) if !d.is_float() => {
            Err(Error::dtype(op, format!("a float number meets a tensor of {d}; cast the tensor with .cast(..)")))
        }
        (Ty::Known(_), _) => Ok(a),
        (_, Ty::Known(_)) => Ok(b),
        (Ty::WeakInt, Ty::WeakInt) => Ok(Ty::WeakInt),
        _ => Ok(Ty::WeakFloat),
    }
}

fn not_supported(op: &'static str, what: &str, t: Ty) -> Error {
    Error::dtype(op, format!("{what} is not defined for {}; cast first", name(t)))
}

fn infer_unary(op: &'static str, unary: Unary, x: Ty) -> Result<Ty> {
    let known = if let Ty::Known(d) = x { Some(d) } else { None };
    match unary {
        Unary::Not if known.is_none_or(|d| d == DType::Bool) => Ok(Ty::Known(DType::Bool)),
        Unary::Neg if known == Some(DType::U8) => Err(not_supported(op, "neg", x)),
        Unary::Neg | Unary::Abs | Unary::Sign | Unary::Floor | Unary::Ceil | Unary::Round
            if known != Some(DType::Bool) =>
        {
            Ok(x)
        }
        _ if known.is_none_or(DType::is_float) && unary != Unary::Not => {
            Ok(if x == Ty::WeakInt { Ty::WeakFloat } else { x })
        }
        _ => Err(not_supported(op, &format!("{unary:?}").to_lowercase(), x)),
    }
}

fn infer_binary(op: &'static str, binary: Binary, a: Ty, b: Ty) -> Result<Ty> {
    let joined = join(op, a, b)?;
    let is_bool = joined == Ty::Known(DType::Bool);
    match binary {
        Binary::Eq | Binary::Ne | Binary::Lt | Binary::Le => Ok(Ty::Known(DType::Bool)),
        Binary::And | Binary::Or if is_bool => Ok(joined),
        Binary::And | Binary::Or => Err(not_supported(op, &format!("{binary:?}").to_lowercase(), joined)),
        Binary::Min | Binary::Max => Ok(joined),
        _ if is_bool => Err(not_supported(op, &format!("{binary:?}").to_lowercase(), joined)),
        _ => Ok(joined),
    }
}
