//! Compiles expressions for given input types into steps over registers, once: shared nodes are computed once,
//! numbers and what is computed from numbers alone become scalars, registers are reused after their last reader.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use smallvec::SmallVec;
use tensor_core::expr::{Binary, Prim, Program, TypedNode, Unary};
use tensor_core::{DType, Expr, Number, Result};

use super::convert::Conversion;
use super::lane::{LaneType, number_slot};
use super::vector::Operand;
use super::{arithmetic, convert};

/// Where a step reads an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum From {
    Input(u16),
    Register(u16),
    Scalar(u16),
}

/// Where a step writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum To {
    Register(u16),
    Output(u16),
    /// Of a step that is done once, over one element.
    Scalar(u16),
}

/// What a step does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    Unary(Unary),
    Binary(Binary),
    Select,
    Convert(Conversion),
    /// Writes elements of an output's type.
    Store(DType),
}

/// One loop over a chunk.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    pub(super) action: Action,
    /// The lane of the operands (of the branches of a select).
    pub(super) lane: LaneType,
    /// Bytes per element of what is written.
    pub(super) out_bytes: usize,
    pub(super) from: [From; 3],
    pub(super) to: To,
}

/// A number among the scalars.
#[derive(Clone, Copy, Debug)]
struct Constant {
    scalar: u16,
    value: Value,
    dtype: DType,
}

#[derive(Clone, Copy, Debug)]
enum Value {
    Literal(Number),
    /// Position among the distinct run-time numbers.
    Argument(u16),
}

/// Expressions as steps.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) steps: Vec<Step>,
    constants: Vec<Constant>,
    /// Steps among scalars, done once per use.
    prelude: Vec<Step>,
    n_scalars: usize,
    /// The element type of each input.
    pub(super) inputs: SmallVec<[DType; 4]>,
    /// Bit i: input i is read.
    pub(super) reads: u64,
    /// The element type of each output.
    pub(super) outputs: SmallVec<[DType; 4]>,
    /// Estimated picoseconds per element, memory traffic aside.
    pub(super) cost_ps: usize,
}

/// Run-time numbers of several expressions, equal ones once.
pub(super) struct Arguments {
    distinct: SmallVec<[Number; 8]>,
    /// For every expression's numbers in turn the position among the distinct ones.
    places: SmallVec<[u16; 8]>,
}

impl Arguments {
    pub(super) fn new(exprs: &[Expr]) -> Self {
        let mut arguments = Self { distinct: SmallVec::new(), places: SmallVec::new() };
        for &number in exprs.iter().flat_map(|e| &e.args) {
            let found = arguments.distinct.iter().position(|&d| is_same(d, number));
            let place = found.unwrap_or_else(|| {
                arguments.distinct.push(number);
                arguments.distinct.len() - 1
            });
            arguments.places.push(place as u16);
        }
        arguments
    }
}

/// Same kind and bits.
fn is_same(a: Number, b: Number) -> bool {
    match (a, b) {
        (Number::Int(a), Number::Int(b)) => a == b,
        (Number::Float(a), Number::Float(b)) => a.to_bits() == b.to_bits(),
        _ => false,
    }
}

/// Structures, which of their numbers are equal, and input types.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Key {
    codes: SmallVec<[u64; 2]>,
    places: SmallVec<[u16; 8]>,
    dtypes: SmallVec<[DType; 4]>,
}

impl Key {
    #[inline]
    fn is(&self, exprs: &[Expr], arguments: &Arguments, dtypes: &[DType]) -> bool {
        self.codes.len() == exprs.len()
            && self.codes.iter().zip(exprs).all(|(&id, e)| id == e.code.id())
            && self.dtypes[..] == *dtypes
            && self.places == arguments.places
    }
}

/// How many plans a thread finds again without asking the table that all threads share.
const N_RECENT: usize = 64;

thread_local! {
    static RECENT: RefCell<[Option<(Key, Arc<Plan>)>; N_RECENT]> = const { RefCell::new([const { None }; N_RECENT]) };
}

/// The plan for expressions over inputs of these types. Cached.
pub(super) fn plan(op: &'static str, exprs: &[Expr], arguments: &Arguments, dtypes: &[DType]) -> Result<Arc<Plan>> {
    let code = exprs.first().map_or(0, |e| e.code.id() ^ e.code.id() >> 8) as usize;
    let place = (code + dtypes.first().map_or(0, |&d| d as usize)) % N_RECENT;
    RECENT.with_borrow_mut(|recent| match &recent[place] {
        Some((key, plan)) if key.is(exprs, arguments, dtypes) => Ok(plan.clone()),
        _ => {
            let (key, plan) = shared_plan(op, exprs, arguments, dtypes)?;
            recent[place] = Some((key, plan.clone()));
            Ok(plan)
        }
    })
}

fn shared_plan(op: &'static str, exprs: &[Expr], arguments: &Arguments, dtypes: &[DType]) -> Result<(Key, Arc<Plan>)> {
    static PLANS: OnceLock<RwLock<HashMap<Key, Arc<Plan>>>> = OnceLock::new();
    let plans = PLANS.get_or_init(RwLock::default);
    let key = Key {
        codes: exprs.iter().map(|e| e.code.id()).collect(),
        places: arguments.places.clone(),
        dtypes: SmallVec::from_slice(dtypes),
    };
    let found = plans.read().unwrap_or_else(PoisonError::into_inner).get(&key).cloned();
    if let Some(plan) = found {
        return Ok((key, plan));
    }
    let programs: Vec<Arc<Program>> = exprs.iter().map(|e| e.code.program(op, dtypes)).collect::<Result<_>>()?;
    let plan = Arc::new(compile(exprs, &programs, arguments, dtypes));
    plans.write().unwrap_or_else(PoisonError::into_inner).insert(key.clone(), plan.clone());
    Ok((key, plan))
}

/// Nodes of all expressions, equal ones once; `Arg` and `ArgInt` count the distinct numbers.
fn merge(exprs: &[Expr], programs: &[Arc<Program>], arguments: &Arguments) -> (Vec<TypedNode>, Vec<usize>) {
    let mut nodes: Vec<TypedNode> = Vec::new();
    let mut roots = Vec::with_capacity(programs.len());
    let mut first_arg = 0;
    for (expr, program) in exprs.iter().zip(programs) {
        let mut place: Vec<usize> = Vec::with_capacity(program.nodes.len());
        for node in &program.nodes {
            let mut node = *node;
            match &mut node.prim {
                Prim::Arg(i) | Prim::ArgInt(i) => *i = arguments.places[first_arg + *i as usize].into(),
                prim => node.args[..prim.arity()].iter_mut().for_each(|k| *k = place[*k as usize] as u32),
            }
            let found = nodes.iter().position(|n| *n == node);
            place.push(found.unwrap_or(nodes.len()));
            if found.is_none() {
                nodes.push(node);
            }
        }
        roots.push(*place.last().expect("invariant: a program has a node"));
        first_arg += expr.args.len();
    }
    (nodes, roots)
}

/// Where a node's value is, before registers are given out.
#[derive(Clone, Copy, PartialEq)]
enum Place {
    Input(u16),
    Scalar(u16),
    /// The result of a draft.
    Draft(usize),
}

/// A step whose operands have no registers yet.
struct Draft {
    action: Action,
    lane: LaneType,
    out_bytes: usize,
    from: SmallVec<[Place; 3]>,
    /// Set where the result goes to an output.
    output: Option<u16>,
}

#[derive(Default)]
struct Compiler {
    drafts: Vec<Draft>,
    constants: Vec<Constant>,
    prelude: Vec<Step>,
    n_scalars: usize,
    reads: u64,
}

fn compile(exprs: &[Expr], programs: &[Arc<Program>], arguments: &Arguments, dtypes: &[DType]) -> Plan {
    let (nodes, roots) = merge(exprs, programs, arguments);
    let outputs: SmallVec<[DType; 4]> = roots.iter().map(|&root| nodes[root].dtype).collect();
    let mut compiler = Compiler::default();
    let mut places: Vec<Place> = Vec::with_capacity(nodes.len());
    for (i, node) in nodes.iter().enumerate() {
        let place = compiler.node(node, &nodes, &places);
        places.push(place);
        for (k, _) in roots.iter().enumerate().filter(|&(_, &root)| root == i) {
            compiler.store(place, k as u16, outputs[k]);
        }
    }
    let steps = compiler.registers();
    Plan {
        cost_ps: steps.iter().map(|s| cost_ps(s.action, s.lane)).sum(),
        steps,
        constants: compiler.constants,
        prelude: compiler.prelude,
        n_scalars: compiler.n_scalars,
        inputs: SmallVec::from_slice(dtypes),
        reads: compiler.reads,
        outputs,
    }
}

impl Compiler {
    fn node(&mut self, node: &TypedNode, nodes: &[TypedNode], places: &[Place]) -> Place {
        let lane = LaneType::of(node.dtype);
        let operand = |i: usize| places[node.args[i] as usize];
        let dtype_of = |i: usize| nodes[node.args[i] as usize].dtype;
        let (action, lane, operands) = match node.prim {
            Prim::Input(i) => {
                self.reads |= 1 << i;
                return Place::Input(i as u16);
            }
            Prim::Arg(i) | Prim::ArgInt(i) => return self.constant(Value::Argument(i as u16), node.dtype),
            Prim::Lit(bits) => return self.constant(Value::Literal(Number::Float(f64::from_bits(bits))), node.dtype),
            Prim::LitInt(v) => return self.constant(Value::Literal(Number::Int(v)), node.dtype),
            // Integers are whole already.
            Prim::Unary(Unary::Floor | Unary::Ceil | Unary::Round) if !node.dtype.is_float() => return operand(0),
            Prim::Unary(op) => (Action::Unary(op), lane, 1),
            Prim::Binary(op) => (Action::Binary(op), LaneType::of(dtype_of(0)), 2),
            Prim::Select => (Action::Select, lane, 3),
            Prim::Cast(to) => {
                let (mut place, mut lane) = (operand(0), LaneType::of(dtype_of(0)));
                for conversion in Conversion::between(dtype_of(0), to) {
                    place = self.push(Action::Convert(conversion), lane, conversion.to().size_bytes(), &[place]);
                    lane = conversion.to();
                }
                return place;
            }
            Prim::Call(_) => unreachable!("invariant: programs have their formulas expanded"),
        };
        let from: SmallVec<[Place; 3]> = (0..operands).map(operand).collect();
        self.push(action, lane, LaneType::of(node.dtype).size_bytes(), &from)
    }

    fn constant(&mut self, value: Value, dtype: DType) -> Place {
        let scalar = self.scalar();
        self.constants.push(Constant { scalar, value, dtype });
        Place::Scalar(scalar)
    }

    fn scalar(&mut self) -> u16 {
        self.n_scalars += 1;
        self.n_scalars as u16 - 1
    }

    fn push(&mut self, action: Action, lane: LaneType, out_bytes: usize, from: &[Place]) -> Place {
        if from.iter().all(|p| matches!(p, Place::Scalar(_))) {
            let scalar = self.scalar();
            let from = sources(from, |_| unreachable!("invariant: scalars only"));
            self.prelude.push(Step { action, lane, out_bytes, from, to: To::Scalar(scalar) });
            return Place::Scalar(scalar);
        }
        self.drafts.push(Draft { action, lane, out_bytes, from: SmallVec::from_slice(from), output: None });
        Place::Draft(self.drafts.len() - 1)
    }

    /// Sends a value to an output: the step that computes it writes there if nobody else reads it, which the later
    /// pass [`registers`](Self::registers) decides.
    fn store(&mut self, place: Place, output: u16, dtype: DType) {
        let (action, lane) = (Action::Store(dtype), LaneType::of(dtype));
        let from = SmallVec::from_slice(&[place]);
        self.drafts.push(Draft { action, lane, out_bytes: dtype.size_bytes(), from, output: Some(output) });
    }

    /// Gives every draft's result a register, free again after its last reader.
    fn registers(&mut self) -> Vec<Step> {
        let mut n_readers = vec![0usize; self.drafts.len()];
        let mut last_reader = vec![0usize; self.drafts.len()];
        for (i, draft) in self.drafts.iter().enumerate() {
            for place in &draft.from {
                if let &Place::Draft(d) = place {
                    n_readers[d] += 1;
                    last_reader[d] = i;
                }
            }
        }
        // A store that alone reads its value, of a type that needs no conversion, merges into the step before.
        for i in 0..self.drafts.len() {
            let draft = &self.drafts[i];
            if let (Action::Store(dtype), &[Place::Draft(d)], Some(output)) =
                (draft.action, &draft.from[..], draft.output)
                && n_readers[d] == 1
                && dtype.compute() == dtype
            {
                self.drafts[d].output = Some(output);
                self.drafts[i].output = None;
            }
        }
        let mut register = vec![0u16; self.drafts.len()];
        let mut free: Vec<u16> = Vec::new();
        let mut n_registers = 0;
        let mut steps = Vec::with_capacity(self.drafts.len());
        for (i, draft) in self.drafts.iter().enumerate() {
            let to = match (draft.action, draft.output) {
                (Action::Store(_), None) => continue,
                (_, Some(output)) => To::Output(output),
                (_, None) => {
                    register[i] = free.pop().unwrap_or_else(|| {
                        n_registers += 1;
                        n_registers as u16 - 1
                    });
                    To::Register(register[i])
                }
            };
            let from = sources(&draft.from, |d| register[d]);
            steps.push(Step { action: draft.action, lane: draft.lane, out_bytes: draft.out_bytes, from, to });
            for (k, place) in draft.from.iter().enumerate() {
                if let &Place::Draft(d) = place
                    && last_reader[d] == i
                    && !draft.from[..k].contains(place)
                {
                    free.push(register[d]);
                }
            }
        }
        steps
    }
}

fn sources(places: &[Place], register: impl Fn(usize) -> u16) -> [From; 3] {
    let mut from = [From::Scalar(0); 3];
    for (from, &place) in from.iter_mut().zip(places) {
        *from = match place {
            Place::Input(i) => From::Input(i),
            Place::Scalar(s) => From::Scalar(s),
            Place::Draft(d) => From::Register(register(d)),
        };
    }
    from
}

impl Step {
    /// Runs the loop over the elements that `out` has room for.
    #[inline]
    pub(super) fn run<'a>(&self, from: impl Fn(usize) -> Operand<'a>, out: &mut [u8]) {
        match self.action {
            Action::Binary(op) => arithmetic::binary(op, self.lane, from(0), from(1), out),
            Action::Unary(op) => arithmetic::unary(op, self.lane, from(0), out),
            Action::Select => arithmetic::choose(self.lane, from(0), from(1), from(2), out),
            Action::Convert(conversion) => conversion.run(self.lane, from(0), out),
            Action::Store(dtype) => convert::store(dtype, from(0), out),
        }
    }
}

impl Plan {
    /// The scalars for these run-time numbers.
    pub(super) fn scalars(&self, arguments: &Arguments) -> SmallVec<[u64; 8]> {
        let mut scalars: SmallVec<[u64; 8]> = SmallVec::from_elem(0, self.n_scalars);
        for constant in &self.constants {
            let number = match constant.value {
                Value::Literal(number) => number,
                Value::Argument(i) => arguments.distinct[i as usize],
            };
            scalars[constant.scalar as usize] = number_slot(number, constant.dtype);
        }
        for step in &self.prelude {
            let mut out = [0u64];
            let from = |k: usize| match step.from[k] {
                From::Scalar(s) => Operand::Scalar(scalars[s as usize]),
                other => unreachable!("invariant: the prelude reads scalars only, not {other:?}"),
            };
            step.run(from, &mut bytemuck::cast_slice_mut(&mut out)[..step.out_bytes]);
            if let To::Scalar(s) = step.to {
                scalars[s as usize] = out[0];
            }
        }
        scalars
    }
}

/// A guess at a step's time per element.
fn cost_ps(action: Action, lane: LaneType) -> usize {
    let cost = match action {
        Action::Unary(op) => match op {
            Unary::Exp | Unary::Rsqrt | Unary::Recip | Unary::Sqrt => 300,
            Unary::ExpM1 | Unary::Ln | Unary::Ln1p | Unary::Tanh | Unary::Erf => 600,
            Unary::Sin | Unary::Cos => 3000,
            _ => 60,
        },
        Action::Binary(Binary::Pow) => 2500,
        Action::Binary(Binary::Rem) => 800,
        Action::Binary(Binary::Div) => 200,
        _ => 60,
    };
    if lane.size_bytes() == 8 { 2 * cost } else { cost }
}
