//! Folds over rows, and elements computed from them: one skeleton for reductions, softmax and normalisation.

use smallvec::SmallVec;
use tensor_core::op::ReduceKind;
use tensor_core::plan::Plan;
use tensor_core::{DType, Expr, Result};

use super::context::THREADS;
use super::map::push_numbers;
use super::{Context, vector};
use crate::args::Args;
use crate::driver::Address;
use crate::index;
use crate::module::Key;

mod text;

/// Elements of a row that a thread keeps in registers of 32 bits, all operands together.
const REGISTERS: usize = 32;
/// So short a row is one thread's: a line of the cache serves its neighbours.
const SHORT: usize = 8;
/// Elements that a thread has under way where rows do not fit in registers.
pub(super) const UNDER_WAY: usize = 4;

/// Whether a block per row keeps a device busy, or rows are short: else reductions in segments and maps are faster.
pub(crate) fn fits(shape: &[usize], axes: &[usize]) -> bool {
    let depth: usize = axes.iter().map(|&axis| shape[axis]).product();
    // Of nothing, moments are not numbers.
    depth > 0 && (depth <= 1 << 14 || shape.iter().product::<usize>() / depth >= 512)
}

/// How a row is shared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Form {
    /// Threads per row: 1, 32 or 256.
    pub(super) threads: usize,
    /// Elements per thread and round.
    pub(super) items: usize,
    /// Whether one round is the whole row, which then stays in registers.
    pub(super) is_kept: bool,
    /// Neighbours that a thread reads and writes at once; 1 where rows have gaps.
    pub(super) vector: usize,
    /// Whether a row may end within a vector.
    pub(super) has_tail: bool,
}

impl Form {
    /// A form in rounds.
    pub(super) fn rounds(threads: usize) -> Self {
        Self { threads, items: UNDER_WAY, is_kept: false, vector: 1, has_tail: false }
    }

    /// The same with vectors, where every row of all operands is one of neighbours and begins at a multiple of them.
    fn with_vectors(self, places: &Places, stored: &[DType], n_dense: usize) -> Self {
        let Places { kept, folded, addresses, .. } = places;
        if folded.rank() != 1 || folded.strides.iter().any(|strides| strides[0] != 1) {
            return self;
        }
        // Steps from row to row must be multiples as addresses are.
        let starts = stored.iter().zip(addresses).map(|(&dtype, &address)| (dtype, address)).take(n_dense);
        let steps = stored.iter().zip(&kept.strides).take(n_dense).flat_map(|(&dtype, strides)| {
            strides.iter().map(move |step| (dtype, (step.unsigned_abs() * dtype.size_bytes()) as u64))
        });
        let (mut vector, depth) = (vector::widest(starts.chain(steps), 1), folded.len());
        let items = if self.is_kept {
            while !self.items.is_multiple_of(vector) {
                vector /= 2;
            }
            self.items
        } else if depth <= self.threads * vector {
            vector.max(UNDER_WAY)
        } else {
            (2 * vector).max(UNDER_WAY)
        };
        Self { items, vector, has_tail: !depth.is_multiple_of(vector), ..self }
    }

    /// The form for rows that are read for several folds; `is_column`: neighbouring rows are neighbours in memory.
    pub(super) fn new(rows: &Rows, n_rows: usize, depth: usize, is_column: bool) -> Self {
        let words: usize = rows.elements.iter().map(|dtype| dtype.compute().size_bytes().div_ceil(4)).sum();
        let most = REGISTERS / words;
        let threads = match () {
            () if depth <= SHORT.min(most) || is_column && (depth <= most || n_rows >= 1024) => 1,
            () if depth <= 32 * most => 32,
            () => 256,
        };
        let items = depth.div_ceil(threads);
        // Few sizes, so that few kernels are compiled.
        match [1, 2, 4, 8, 12, 16, 24, 32].into_iter().find(|&size| size >= items) {
            Some(items) if items <= most => Self { items, is_kept: true, ..Self::rounds(threads) },
            _ => Self::rounds(threads),
        }
    }
}

/// One fold over a row.
pub(super) struct Fold {
    pub(super) kind: ReduceKind,
    /// What is folded: over the elements, the rows' values and the earlier folds' results.
    pub(super) term: Expr,
    /// The result from the total.
    pub(super) finish: Option<Expr>,
}

/// What is computed over rows.
pub(super) struct Rows {
    /// The op, for errors.
    pub(super) name: &'static str,
    /// The kernel's entry: not a word that PTX reserves, as `max` is.
    pub(super) entry: &'static str,
    /// Operands with an element per place, as stored.
    pub(super) elements: SmallVec<[DType; 4]>,
    /// Operands with a value per row, as stored.
    pub(super) values: SmallVec<[DType; 2]>,
    /// The types that expressions see operands in, and the type of totals.
    pub(super) types: SmallVec<[DType; 4]>,
    pub(super) total: DType,
    pub(super) folds: SmallVec<[Fold; 2]>,
    /// The result per element, over elements, values and all folds' results; and its type.
    pub(super) result: Option<(Expr, DType)>,
    /// The same over the last fold's term and result, for rows that stay in registers.
    pub(super) shortcut: Option<Expr>,
    /// Folds whose results are written per row, as these types.
    pub(super) totals: SmallVec<[(usize, DType); 2]>,
}

/// Where operands and results are.
pub(super) struct Places {
    /// The result per element if there is one, elements, values: strides along rows' axes.
    pub(super) kept: Plan,
    /// The result per element if there is one, elements: strides along folded axes.
    pub(super) folded: Plan,
    pub(super) addresses: SmallVec<[Address; 8]>,
    /// Of what is written per row, row-major.
    pub(super) totals: SmallVec<[Address; 2]>,
}

impl Rows {
    fn exprs(&self) -> impl Iterator<Item = &Expr> {
        let folds = self.folds.iter().flat_map(|fold| std::iter::once(&fold.term).chain(&fold.finish));
        folds.chain(self.result.iter().map(|(expr, _)| expr)).chain(&self.shortcut)
    }

    /// The types of what each of [`Rows::exprs`] is over, in that order.
    fn inputs(&self) -> Vec<SmallVec<[DType; 4]>> {
        let over = |n: usize| self.types.iter().copied().chain(std::iter::repeat_n(self.total, n)).collect();
        let mut all = Vec::new();
        for (k, fold) in self.folds.iter().enumerate() {
            all.push(over(k));
            all.extend(fold.finish.iter().map(|_| SmallVec::from_elem(self.total, 1)));
        }
        all.extend(self.result.iter().map(|_| over(self.folds.len())));
        all.extend(self.shortcut.iter().map(|_| SmallVec::from_elem(self.total, 2)));
        all
    }

    /// Runs in a form, with every row cut into so many segments.
    pub(super) fn run(&self, cx: &Context, form: Form, places: &Places, segments: usize) -> Result<()> {
        let (n_rows, depth) = (places.kept.len(), places.folded.len());
        let ranks = [places.kept.rank(), places.folded.rank()];
        let n_results = usize::from(self.result.is_some());
        let stored: SmallVec<[DType; 8]> = self
            .result
            .iter()
            .map(|&(_, dtype)| dtype)
            .chain(self.elements.iter().chain(&self.values).copied())
            .collect();
        let form = form.with_vectors(places, &stored, n_results + self.elements.len());
        let mut structure: SmallVec<[u64; 16]> = self.exprs().map(|expr| expr.code.id()).collect();
        structure.extend(self.folds.iter().map(|fold| fold.kind as u64));
        structure.extend(self.elements.iter().chain(&self.values).chain(&self.types).map(|&dtype| dtype as u64));
        structure.extend(self.result.iter().map(|&(_, dtype)| dtype as u64));
        structure.extend(self.totals.iter().flat_map(|&(k, dtype)| [k as u64, dtype as u64]));
        structure.extend([
            form.threads as u64,
            form.items as u64,
            form.is_kept.into(),
            form.vector as u64,
            form.has_tail.into(),
            ranks[0] as u64,
            ranks[1] as u64,
        ]);
        let function = cx.modules.get(Key::new(self.entry, structure), || text::text(self, form, ranks))?;
        let mut args = Args::default();
        args.push(n_rows as u64);
        args.push(depth as u64);
        args.push(depth.div_ceil(segments).next_multiple_of(form.vector) as u64);
        places.addresses.iter().chain(&places.totals).for_each(|&address| args.push(address));
        index::push(&mut args, &places.kept, |k| stored[k].size_bytes());
        for (expr, inputs) in self.exprs().zip(self.inputs()) {
            push_numbers(&mut args, self.name, std::slice::from_ref(expr), &inputs)?;
        }
        let Plan { dims, strides } = &places.folded;
        let part = |range: std::ops::Range<usize>| Plan {
            dims: dims.clone(),
            strides: range.map(|k| strides[k].clone()).collect(),
        };
        let n_elements = n_results + self.elements.len();
        index::push(&mut args, &part(n_results..n_elements), |k| stored[n_results + k].size_bytes());
        if n_results > 0 {
            index::push(&mut args, &part(0..1), |_| stored[0].size_bytes());
        }
        let blocks = n_rows.div_ceil(THREADS as usize / form.threads);
        let largest = n_rows.saturating_mul(segments).max(depth);
        cx.launch_blocks(self.name, function, largest, [blocks as u32, segments as u32, 1], [THREADS, 1, 1], 0, &args)
    }
}

/// The axes that are kept, and those that are folded, of operands with these strides along a shape.
pub(super) fn plans(shape: &[usize], strides: &[SmallVec<[isize; 4]>], axes: &[usize]) -> (Plan, Plan) {
    let part = |is_folded: bool| {
        let axes: SmallVec<[usize; 4]> = (0..shape.len()).filter(|axis| axes.contains(axis) == is_folded).collect();
        let dims: SmallVec<[usize; 4]> = axes.iter().map(|&axis| shape[axis]).collect();
        Plan::of(&dims, strides.iter().map(|all| axes.iter().map(|&axis| all[axis]).collect()).collect())
    };
    (part(false), part(true))
}

/// Whether neighbouring rows are nearer to each other in memory than a row's own elements, for operand `k`.
pub(super) fn is_column(kept: &Plan, folded: &Plan, k: usize) -> bool {
    let step = |plan: &Plan| plan.strides[k].last().map_or(0, |stride| stride.unsigned_abs());
    let (along, across) = (step(folded), step(kept));
    folded.len() > 1 && across > 0 && across < along
}
