//! Elementwise work that is put off until its value is needed, so that a chain of it is one pass over memory.
//!
//! A map on a device whose backend asks for that ([`Backend::defers_from`](crate::Backend::defers_from)) is not run:
//! its tensor's cell holds it with its inputs, *pending*. Shapes and dtypes have been checked by then. Whatever needs
//! the value forces it: a read, an optimizer's step, any op that is not elementwise. Only then are the maps that it is
//! made of written into one expression, common parts once, and run as one map; a sum takes them in as its producer.
//!
//! A value that a second op reads is computed once and kept, unless it comes from a single large tensor: then reading
//! that again costs no more than reading the value. Deferral lies below the interpreters: a tape records the ops as they
//! are called, and what it keeps may be pending, so that the maps of a gradient and those of the values that they
//! read become one, too.

use std::sync::atomic::{AtomicBool, AtomicU8, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use smallvec::{SmallVec, smallvec};

use super::tensor::Cell;
use crate::expr::{Prim, Sym, build_with_args};
use crate::op::{Map, Reduce, ReduceKind};
use crate::{DType, Device, Expr, Meta, Number, Op, Result, Shape, Support, Tensor};

/// Nodes of an expression from which on its inputs are computed first; this also bounds how deep pending work nests.
const MAX_NODES: usize = 64;
/// Tensors that one expression reads: some devices bind no more than eight buffers.
const MAX_INPUTS: usize = 7;

/// When elementwise work is put off; one setting for the process.
///
/// A tensor whose work is put off is *pending*: every use of its value computes it, and so does [`Tensor::force`], which is how a
/// single op is timed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Deferral {
    /// Every op runs when it is called: to find out which one fails, or takes the time.
    Never,
    /// From the size on that the device asks for.
    #[default]
    Worthwhile,
    /// At any size, on devices that ask for it at some size: for tests.
    Always,
}

static MODE: AtomicU8 = AtomicU8::new(Deferral::Worthwhile as u8);

impl Deferral {
    /// The setting now.
    pub fn get() -> Self {
        [Self::Never, Self::Worthwhile, Self::Always][MODE.load(Relaxed) as usize]
    }

    /// Changes the setting, for ops called from now on.
    pub fn set(self) {
        MODE.store(self as u8, Relaxed);
    }

    /// Elements from which maps on this device are put off.
    fn from_elements(device: &Device) -> usize {
        match (Self::get(), device.backend().defers_from()) {
            (Self::Never, _) | (_, usize::MAX) => usize::MAX,
            (Self::Worthwhile, n) => n,
            (Self::Always, _) => 1,
        }
    }
}

/// What a cell without a value holds.
pub(crate) struct Pending {
    /// `None` once it has been forced.
    work: Mutex<Option<Arc<Work>>>,
    /// Whether some op reads it.
    is_read: AtomicBool,
}

/// A map with one output, all of whose pending inputs have the output's shape.
struct Work {
    map: Map,
    inputs: SmallVec<[Tensor; 4]>,
    meta: Meta,
    /// Of the whole expression, with what is pending among the inputs.
    n_nodes: usize,
    n_leaves: usize,
    n_large: usize,
}

impl Pending {
    fn lock(&self) -> MutexGuard<'_, Option<Arc<Work>>> {
        self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Tensor {
    /// Computes what is still [pending](Deferral) of this tensor. Every use of a value does this by itself.
    ///
    /// # Errors
    /// What the device reports, under the name of the op that was put off; the work stays pending.
    pub fn force(&self) -> Result<()> {
        let Some(work) = self.work() else { return Ok(()) };
        let device = self.place();
        let (map, inputs) = (&work.map, work.inputs.iter().collect::<SmallVec<[&Tensor; 4]>>());
        let outputs = [work.meta.clone()];
        let storages = run_map(device, map, &inputs, &outputs)?;
        let cell = self.cell();
        // Another thread may have been first: its value is the same.
        let _ = cell.value.set(storages.into_iter().next().expect("invariant: a map has an output"));
        let done = cell.pending.as_ref().and_then(|pending| pending.lock().take());
        drop(done);
        Ok(())
    }

    /// Whether the value is still to be computed.
    pub fn is_pending(&self) -> bool {
        self.cell().value.get().is_none()
    }

    fn work(&self) -> Option<Arc<Work>> {
        if !self.is_pending() {
            return None;
        }
        self.cell().pending.as_ref().and_then(|pending| pending.lock().clone())
    }

    /// The pending work, where an expression of this shape could take it in.
    fn work_of_shape(&self, shape: &Shape) -> Option<Arc<Work>> {
        let work = self.work()?;
        (work.meta.shape == *shape && self.shape() == shape && self.is_contiguous()).then_some(work)
    }

    /// [`Tensor::work_of_shape`] for one more op that reads it: `None` where the value had better be computed.
    fn work_to_join(&self, shape: &Shape) -> Option<Arc<Work>> {
        let work = self.work_of_shape(shape)?;
        let was_read = self.cell().pending.as_ref().is_some_and(|pending| pending.is_read.swap(true, Relaxed));
        (!was_read || work.n_large <= 1).then_some(work)
    }
}

/// Puts a map off, if that pays: gives its output, pending.
pub(crate) fn put_off(device: &Device, map: &Map, inputs: &[&Tensor], outputs: &[Meta]) -> Result<Option<Tensor>> {
    let ([expr], [meta]) = (&map.exprs[..], outputs) else { return Ok(None) };
    let n_own = expr.code.nodes().len();
    let is_read = |i: usize| expr.code.reads(i);
    if meta.shape.len() < Deferral::from_elements(device).max(1) || n_own > MAX_NODES || !(0..inputs.len()).any(is_read)
    {
        return Ok(None);
    }
    let count_large = |x: &Tensor| usize::from(2 * x.layout().len() > meta.shape.len());
    let [mut n_nodes, mut n_leaves, mut n_large] = [n_own, 0, 0];
    let mut read: SmallVec<[&Tensor; 4]> = smallvec![];
    for x in (0..inputs.len()).filter(|&i| is_read(i)).map(|i| inputs[i]) {
        if read.iter().any(|y| y.is_same(x)) {
            continue;
        }
        read.push(x);
        match x.work_to_join(&meta.shape) {
            Some(work) => {
                n_nodes += work.n_nodes + 1;
                n_leaves += work.n_leaves;
                n_large += work.n_large;
            }
            None => {
                x.force()?;
                n_leaves += 1;
                n_large += count_large(x);
            }
        }
    }
    if n_nodes > MAX_NODES || n_leaves > MAX_INPUTS {
        read.iter().try_for_each(|x| x.force())?;
        (n_nodes, n_leaves, n_large) = (n_own, read.len(), read.iter().map(|x| count_large(x)).sum());
    }
    let inputs = inputs.iter().map(|&x| x.clone()).collect();
    let work = Work { map: map.clone(), inputs, meta: meta.clone(), n_nodes, n_leaves, n_large };
    let pending = Pending { work: Mutex::new(Some(Arc::new(work))), is_read: AtomicBool::new(false) };
    Ok(Some(Tensor::from_cell(Cell::pending(device.clone(), pending), meta)))
}

/// Runs a device's op; what is pending among its inputs is taken in where the op can, else computed before.
pub(crate) fn run(device: &Device, op: &Op, inputs: &[&Tensor], outputs: &[Meta]) -> Result<crate::Storages> {
    match op {
        _ if !inputs.iter().any(|x| x.is_pending()) => device.backend().execute(op, inputs, outputs),
        Op::Map(map) => {
            for (i, x) in inputs.iter().enumerate() {
                let is_read = map.exprs.iter().any(|expr| expr.code.reads(i));
                if is_read && x.work_to_join(&outputs[0].shape).is_none() {
                    x.force()?;
                }
            }
            run_map(device, map, inputs, outputs)
        }
        Op::Reduce(reduce) if reduce.kind == ReduceKind::Sum => run_sum(device, reduce, inputs, outputs),
        _ => run_forced(device, op, inputs, outputs),
    }
}

fn run_forced(device: &Device, op: &Op, inputs: &[&Tensor], outputs: &[Meta]) -> Result<crate::Storages> {
    inputs.iter().try_for_each(|x| x.force())?;
    device.backend().execute(op, inputs, outputs)
}

/// A map with its pending inputs as one map.
fn run_map(device: &Device, map: &Map, inputs: &[&Tensor], outputs: &[Meta]) -> Result<crate::Storages> {
    let is_read = |i: usize| map.exprs.iter().any(|expr| expr.code.reads(i));
    if let Some(joined) = Joined::new(inputs, is_read, &outputs[0].shape) {
        let exprs = map.exprs.iter().map(|expr| joined.expr(expr)).collect();
        if let Some(result) = joined.run(device, Op::Map(Map { name: map.name, exprs }), outputs) {
            return result;
        }
    }
    run_forced(device, &Op::Map(map.clone()), inputs, outputs)
}

/// A sum over pending inputs that nothing else holds takes them into its producer.
fn run_sum(device: &Device, reduce: &Reduce, inputs: &[&Tensor], outputs: &[Meta]) -> Result<crate::Storages> {
    let shape = inputs[1..].iter().try_fold(inputs[0].shape().clone(), |shape, x| shape.broadcast(x.shape()));
    let shape = shape.expect("invariant: core has checked that the inputs broadcast");
    inputs.iter().filter(|x| !x.is_held_once()).try_for_each(|x| x.force())?;
    if let Some(joined) = Joined::new(inputs, |i| reduce.producer.code.reads(i), &shape) {
        let op = Op::Reduce(Reduce { producer: joined.expr(&reduce.producer), ..reduce.clone() });
        if let Some(result) = joined.run(device, op, outputs) {
            return result;
        }
    }
    run_forced(device, &Op::Reduce(reduce.clone()), inputs, outputs)
}

/// The pending work among an op's inputs, in order, and the tensors with values that it all starts from.
#[derive(Default)]
struct Joined {
    steps: Vec<Step>,
    leaves: SmallVec<[Tensor; 8]>,
    /// What each of the op's inputs is.
    inputs: SmallVec<[Source; 4]>,
}

struct Step {
    work: Arc<Work>,
    /// Whose value it is: one that is read twice is one step.
    cell: *const Cell,
    inputs: SmallVec<[Source; 4]>,
}

#[derive(Clone, Copy)]
enum Source {
    Leaf(usize),
    Step(usize),
    Unread,
}

impl Joined {
    /// `None` where nothing that is read is pending, the whole would be too large, or its leaves would not give its shape.
    fn new(inputs: &[&Tensor], is_read: impl Fn(usize) -> bool, shape: &Shape) -> Option<Self> {
        let mut joined = Self::default();
        for (i, x) in inputs.iter().enumerate() {
            let source = if is_read(i) { joined.add(x, shape) } else { Source::Unread };
            joined.inputs.push(source);
        }
        let (first, rest) = joined.leaves.split_first()?;
        let spanned = rest.iter().try_fold(first.shape().clone(), |shape, x| shape.broadcast(x.shape()));
        let fits = joined.leaves.len() <= MAX_INPUTS && spanned.as_ref() == Some(shape);
        (fits && !joined.steps.is_empty()).then_some(joined)
    }

    fn add(&mut self, x: &Tensor, shape: &Shape) -> Source {
        let cell: *const Cell = x.cell();
        if let Some(i) = self.steps.iter().position(|step| std::ptr::eq(step.cell, cell)) {
            return Source::Step(i);
        }
        let Some(work) = x.work_of_shape(shape) else {
            let known = self.leaves.iter().position(|leaf| leaf.is_same(x));
            return Source::Leaf(known.unwrap_or_else(|| {
                self.leaves.push(x.clone());
                self.leaves.len() - 1
            }));
        };
        let code = &work.map.exprs[0].code;
        let inputs = work.inputs.iter().enumerate();
        let inputs = inputs.map(|(i, x)| if code.reads(i) { self.add(x, shape) } else { Source::Unread }).collect();
        self.steps.push(Step { work, cell, inputs });
        Source::Step(self.steps.len() - 1)
    }

    /// The op's expression over the leaves.
    fn expr(&self, root: &Expr) -> Expr {
        let exprs = || self.steps.iter().map(|step| &step.work.map.exprs[0]).chain([root]);
        let numbers: SmallVec<[Number; 8]> = exprs().flat_map(|expr| expr.args.iter().copied()).collect();
        build_with_args(self.leaves.len(), &numbers, |leaves| {
            let mut values: SmallVec<[Sym; 8]> = SmallVec::new();
            let mut first_number = 0;
            let sources = self.steps.iter().map(|step| (&step.inputs, Some(step.work.meta.dtype)));
            for (expr, (inputs, dtype)) in exprs().zip(sources.chain([(&self.inputs, None)])) {
                let input = |i: usize| match inputs[i] {
                    Source::Leaf(k) => leaves[k],
                    Source::Step(k) => values[k],
                    Source::Unread => unreachable!("invariant: an input that is not read"),
                };
                let value = written(expr, input, first_number);
                // Rounded as it would have been in memory, and typed by itself.
                values.push(dtype.map_or(value, |dtype: DType| value.cast(dtype)));
                first_number += expr.args.len() as u32;
            }
            values[self.steps.len()]
        })
    }

    /// `None` where the device does not take the whole.
    fn run(&self, device: &Device, op: Op, outputs: &[Meta]) -> Option<Result<crate::Storages>> {
        // What could not be taken in, for its layout, is computed first.
        if let Err(error) = self.leaves.iter().try_for_each(Tensor::force) {
            return Some(Err(error));
        }
        let metas: SmallVec<[Meta; 8]> = self.leaves.iter().map(Tensor::meta).collect();
        let leaves: SmallVec<[&Tensor; 8]> = self.leaves.iter().collect();
        let is_native = device.backend().supports(&op, &metas) == Support::Native;
        is_native.then(|| device.backend().execute(&op, &leaves, outputs))
    }
}

/// Writes an expression's nodes into the one that is being built; its numbers begin at `first_number` there.
fn written(expr: &Expr, input: impl Fn(usize) -> Sym, first_number: u32) -> Sym {
    let mut values: SmallVec<[Sym; 16]> = smallvec![];
    for node in expr.code.nodes() {
        let value = match node.prim {
            Prim::Input(i) => input(i as usize),
            Prim::Arg(i) => Sym::raw(Prim::Arg(first_number + i), &[]),
            Prim::ArgInt(i) => Sym::raw(Prim::ArgInt(first_number + i), &[]),
            prim => {
                let operands: SmallVec<[Sym; 3]> = node.operands().iter().map(|&k| values[k as usize]).collect();
                Sym::raw(prim, &operands)
            }
        };
        values.push(value);
    }
    *values.last().expect("invariant: an expression has a node")
}
