//! An expression made ready ([`Evaluator`]) and tied to inputs and a shape ([`Bound`]).

use std::sync::Arc;

use bytemuck::cast_slice;
use smallvec::SmallVec;
use tensor_core::{DType, Expr, Layout, Result, Shape, Tensor};

use super::lane::Stored;
use super::plan::{self, Arguments, Plan};
use super::space::{Space, Strides};
use super::worker::Worker;
use crate::eval::Lane;
use crate::for_dtype;
use crate::storage::buffer;

/// One or more expressions over the same inputs, ready to run; cheap to make, for the compiled form is cached.
pub(crate) struct Evaluator {
    pub(super) plan: Arc<Plan>,
    pub(super) scalars: SmallVec<[u64; 8]>,
}

impl Evaluator {
    /// For inputs of these types; `op` names the op in errors.
    pub(crate) fn new(op: &'static str, exprs: &[Expr], dtypes: &[DType]) -> Result<Self> {
        let arguments = Arguments::new(exprs);
        let plan = plan::plan(op, exprs, &arguments, dtypes)?;
        let scalars = plan.scalars(&arguments);
        Ok(Self { plan, scalars })
    }

    /// The element type of each output.
    pub(crate) fn outputs(&self) -> &[DType] {
        &self.plan.outputs
    }

    /// Estimated nanoseconds for `n` elements on one thread, with every stream in the cache or in memory.
    pub(crate) fn work_ns(&self, n: usize) -> usize {
        let streams = self.plan.inputs.iter().chain(&self.plan.outputs).map(|d| d.size_bytes()).sum::<usize>();
        // Below a megabyte the caches serve; above about 10 GB/s come from memory.
        let memory_ps = if n * streams < 1 << 20 { 15 * streams } else { 80 * streams };
        n.saturating_mul(self.plan.cost_ps + memory_ps) / 1000
    }

    /// Ties it to inputs, which broadcast to `shape`.
    pub(crate) fn bind<'a>(&'a self, shape: &Shape, inputs: &[Input<'a>]) -> Bound<'a> {
        let reads = |i: usize| self.plan.reads >> i & 1 == 1;
        let is_simple = inputs.iter().enumerate().all(|(i, input)| match input {
            Input::Tensor(x) if reads(i) => x.len() == 1 || (x.shape() == shape && x.is_contiguous()),
            Input::View(..) => !reads(i),
            _ => true,
        });
        if is_simple {
            return self.bind_flat(shape.len(), inputs);
        }
        let mut strides: SmallVec<[Strides; 4]> = SmallVec::new();
        for (i, input) in inputs.iter().enumerate() {
            match input.layout() {
                Some(layout) if reads(i) => strides.push(broadcast_strides(layout, shape)),
                Some(_) => {}
                // Given values come in row-major order, as an output does.
                None => strides.push(Layout::contiguous(shape).strides().into()),
            }
        }
        let space = Space::merge(shape, &mut strides);
        let row_major = row_major(&space.dims);
        let mut strides = strides.into_iter();
        let sources = inputs.iter().enumerate().map(|(i, &input)| match input {
            Input::Tensor(x) | Input::View(x, _) => {
                if !reads(i) {
                    return Source::Unread;
                }
                let layout = input.layout().expect("invariant: a view has a layout");
                let strides = strides.next().expect("invariant: one per view");
                Source::view(x, layout.offset(), strides, &space, &row_major)
            }
            Input::Given => {
                strides.next();
                Source::Given
            }
            Input::Old(k) => {
                strides.next();
                Source::Old(k)
            }
        });
        let sources = sources.collect();
        Bound { evaluator: self, space, sources }
    }

    /// Ties it to inputs that are all row-major of `len` elements, or have one element.
    fn bind_flat<'a>(&'a self, len: usize, inputs: &[Input<'a>]) -> Bound<'a> {
        let mut sources: SmallVec<[Source<'a>; 4]> = SmallVec::new();
        for (i, &input) in inputs.iter().enumerate() {
            sources.push(match input {
                Input::Tensor(x) | Input::View(x, _) if self.plan.reads >> i & 1 == 1 && !x.is_empty() => {
                    if x.len() == 1 && len != 1 {
                        Source::Scalar(scalar(x, x.layout().offset()))
                    } else {
                        Source::flat(x, x.layout().offset(), len)
                    }
                }
                Input::Tensor(_) | Input::View(..) => Source::Unread,
                Input::Given => Source::Given,
                Input::Old(k) => Source::Old(k),
            });
        }
        Bound { evaluator: self, space: Space::flat(len), sources }
    }
}

/// What an input of an expression is.
#[derive(Clone, Copy)]
pub(crate) enum Input<'a> {
    /// A tensor that broadcasts to the shape.
    Tensor(&'a Tensor),
    /// A tensor's storage under another layout, which broadcasts to the shape.
    View(&'a Tensor, &'a Layout),
    /// Computed values that are handed over with every range, in the type they are computed in.
    Given,
    /// What output `k` holds before it is overwritten; it has the input's element type.
    Old(usize),
}

impl<'a> Input<'a> {
    fn layout(self) -> Option<&'a Layout> {
        match self {
            Self::Tensor(x) => Some(x.layout()),
            Self::View(_, layout) => Some(layout),
            Self::Given | Self::Old(_) => None,
        }
    }
}

/// An [`Evaluator`] tied to inputs and a shape. Any thread may take a [`Worker`] from it.
pub(crate) struct Bound<'a> {
    pub(super) evaluator: &'a Evaluator,
    pub(super) space: Space,
    pub(super) sources: SmallVec<[Source<'a>; 4]>,
}

impl<'a> Bound<'a> {
    /// A worker for the calling thread.
    pub(crate) fn worker(&self) -> Worker<'_, 'a> {
        Worker::new(self)
    }
}

/// Where an input's values come from.
#[derive(Clone)]
pub(super) enum Source<'a> {
    Unread,
    /// One value for all, as a slot.
    Scalar(u64),
    /// Row-major elements that are computed in their own type: read in place.
    Flat(&'a [u8]),
    /// Row-major 16-bit floats.
    FlatHalf(&'a [u8], DType),
    /// Elements of a storage by position and strides.
    Strided(Box<Strided<'a>>),
    Given,
    Old(usize),
}

/// A strided input.
#[derive(Clone)]
pub(super) struct Strided<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) dtype: DType,
    pub(super) offset: usize,
    pub(super) strides: Strides,
    pub(super) pattern: Pattern,
}

/// What a strided input looks like within a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pattern {
    /// Consecutive elements, read in place.
    Consecutive,
    /// One element.
    Constant,
    /// The same elements in every piece: loaded once.
    Repeated,
    /// Anything: loaded for every piece.
    Any,
}

impl<'a> Source<'a> {
    fn flat(x: &'a Tensor, offset: usize, len: usize) -> Self {
        let size = x.dtype().size_bytes();
        let bytes = &buffer(x).bytes()[offset * size..][..len * size];
        if x.dtype().compute() == x.dtype() { Self::Flat(bytes) } else { Self::FlatHalf(bytes, x.dtype()) }
    }

    fn view(x: &'a Tensor, offset: usize, strides: Strides, space: &Space, row_major: &[isize]) -> Self {
        if space.dims.contains(&0) {
            return Self::Unread;
        }
        if strides.iter().all(|&s| s == 0) {
            return Self::Scalar(scalar(x, offset));
        }
        if strides[..] == *row_major {
            return Self::flat(x, offset, space.dims.iter().product());
        }
        let dtype = x.dtype();
        let is_consecutive = strides[space.split..] == row_major[space.split..] && dtype.compute() == dtype;
        let pattern = if is_consecutive {
            Pattern::Consecutive
        } else if strides[space.split..].iter().all(|&s| s == 0) {
            Pattern::Constant
        } else if strides[..=space.split].iter().all(|&s| s == 0) {
            Pattern::Repeated
        } else {
            Pattern::Any
        };
        Self::Strided(Box::new(Strided { bytes: buffer(x).bytes(), dtype, offset, strides, pattern }))
    }
}

/// An element as a slot.
fn scalar(x: &Tensor, offset: usize) -> u64 {
    slot(buffer(x).bytes(), x.dtype(), offset)
}

/// An element of a storage as a slot.
pub(super) fn slot(bytes: &[u8], dtype: DType, position: usize) -> u64 {
    for_dtype!(dtype, T => Lane::to_slot(Stored::load(cast_slice::<u8, T>(bytes)[position])))
}

fn broadcast_strides(layout: &Layout, shape: &Shape) -> Strides {
    let lead = shape.rank() - layout.shape().rank();
    let mut strides = Strides::from_elem(0, shape.rank());
    for (axis, &n) in layout.shape().iter().enumerate() {
        if n != 1 {
            strides[lead + axis] = layout.strides()[axis];
        }
    }
    strides
}

fn row_major(dims: &[usize]) -> Strides {
    let mut strides = Strides::from_elem(0, dims.len());
    let mut stride = 1;
    for (s, &n) in strides.iter_mut().zip(dims).rev() {
        *s = stride;
        stride *= n as isize;
    }
    strides
}
