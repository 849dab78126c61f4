//! Folds over any subset of axes of an elementwise producer.
//!
//! Axes are put in the order in which they lie in memory, and neighbours that are both kept or both folded become one.
//! What is left alternates: rows are folded to one value, or added up side by side. Pieces are cut by sizes alone and
//! put together in order. Sums run in lanes over blocks of some thousand elements, and blocks are added in f64.

use std::ops::Range;

use bytemuck::{cast_slice, cast_slice_mut};
use half::{bf16, f16};
use smallvec::SmallVec;
use tensor_core::op::{Reduce, ReduceKind};
use tensor_core::{DType, Layout, Meta, Result, Shape, Storages, Strides, Tensor};

use super::copy;
use super::number::Arithmetic;
use crate::eval::{Bound, Evaluator, Input, LaneType, narrow};
use crate::storage::buffer;
use crate::{Context, threads};

mod fold;

use fold::{Folder, first_total, fold_totals};

/// Elements that one piece of spread work folds, if it can be cut so.
const PIECE: usize = 1 << 15;

pub(crate) fn run(op: &Reduce, inputs: &[&Tensor], outputs: &[Meta], cx: &Context<'_>) -> Result<Storages> {
    let dtypes: SmallVec<[DType; 4]> = inputs.iter().map(|x| x.dtype()).collect();
    let shape = inputs.iter().skip(1).fold(inputs[0].shape().clone(), |shape, x| {
        shape.broadcast(x.shape()).expect("invariant: core has checked that inputs broadcast")
    });
    let order = Order::new(&shape, &op.axes, inputs);
    let views: SmallVec<[Layout; 4]> = inputs.iter().map(|x| order.view(x.layout(), &shape)).collect();
    let operands: SmallVec<[Input<'_>; 4]> = inputs.iter().zip(&views).map(|(x, view)| Input::View(x, view)).collect();
    let evaluator = match op.producer.is_identity() && views[0].is_contiguous() {
        true => None,
        false => Some(Evaluator::new(op.name, std::slice::from_ref(&op.producer), &dtypes)?),
    };
    let bound = evaluator.as_ref().map(|evaluator| evaluator.bind(&order.shape, &operands));
    let dtype = outputs[0].dtype;
    let whole = inputs[0].with_layout(views[0].clone());
    let (source, work_ns) = match (&evaluator, &bound) {
        (Some(evaluator), Some(bound)) => (Source::Producer(bound), evaluator.work_ns(shape.len()) + shape.len() / 8),
        _ => (Source::Memory(contiguous_bytes(&whole)), shape.len() * dtype.size_bytes() / 16),
    };
    let plan = Plan { source, dtype, kind: op.kind, groups: order.groups(), work_ns };
    let mut out = cx.output(&outputs[0])?;
    let mut turned = if order.is_turned() { Some(cx.output(&outputs[0])?) } else { None };
    let bytes = turned.as_mut().unwrap_or(&mut out).bytes_mut();
    match LaneType::of(dtype) {
        LaneType::F64 => plan.run::<f64>(bytes),
        LaneType::F32 => plan.run::<f32>(bytes),
        LaneType::I64 => plan.run::<i64>(bytes),
        LaneType::I32 => plan.run::<i32>(bytes),
        LaneType::U8 => plan.run::<u8>(bytes),
    }
    if let Some(turned) = turned {
        let layout = order.kept_layout();
        let strides: SmallVec<[usize; 4]> =
            Layout::contiguous(layout.shape()).strides().iter().map(|&s| s as usize).collect();
        copy::into_part(dtype, turned.bytes(), &layout, out.bytes_mut(), 0, &strides);
    }
    Ok(out.into_storages())
}

/// The bytes of a tensor whose layout is row-major.
fn contiguous_bytes(x: &Tensor) -> &[u8] {
    let size = x.dtype().size_bytes();
    let start = if x.is_empty() { 0 } else { x.layout().offset() * size };
    &buffer(x).bytes()[start..][..x.len() * size]
}

/// Where the elements to be folded come from, row-major over the ordered axes.
#[derive(Clone, Copy)]
enum Source<'b, 'a> {
    Memory(&'b [u8]),
    Producer(&'b Bound<'a>),
}

/// The axes of more than one element in the order in which they are walked, outermost first.
struct Order {
    axes: SmallVec<[usize; 4]>,
    shape: Shape,
    is_folded: SmallVec<[bool; 4]>,
    /// Walked from the end: folded axes that lie backwards in memory.
    is_reversed: SmallVec<[bool; 4]>,
}

impl Order {
    /// The order of the input with the most elements.
    fn new(shape: &Shape, folded: &[usize], inputs: &[&Tensor]) -> Self {
        let mut largest = 0;
        for i in 1..inputs.len() {
            if inputs[i].len() > inputs[largest].len() {
                largest = i;
            }
        }
        let layout = inputs[largest].layout().broadcast_to(shape).expect("invariant: it broadcasts");
        let mut axes: SmallVec<[usize; 4]> = (0..shape.rank()).filter(|&axis| shape[axis] != 1).collect();
        if !shape.is_empty() {
            axes.sort_by_key(|&axis| {
                let stride = layout.strides()[axis].unsigned_abs();
                std::cmp::Reverse(if stride == 0 { usize::MAX } else { stride })
            });
        }
        let is_folded: SmallVec<[bool; 4]> = axes.iter().map(|axis| folded.contains(axis)).collect();
        let is_reversed = axes.iter().zip(&is_folded).map(|(&axis, &f)| f && layout.strides()[axis] < 0).collect();
        Self { shape: axes.iter().map(|&axis| shape[axis]).collect(), axes, is_folded, is_reversed }
    }

    /// A layout of the whole shape, its axes as they are walked.
    fn view(&self, layout: &Layout, shape: &Shape) -> Layout {
        let layout = layout.broadcast_to(shape).expect("invariant: core has checked that inputs broadcast");
        let mut offset = layout.offset() as isize;
        let mut strides = Strides::new();
        for (&axis, &is_reversed) in self.axes.iter().zip(&self.is_reversed) {
            let stride = layout.strides()[axis];
            if is_reversed && !shape.is_empty() {
                offset += (shape[axis] as isize - 1) * stride;
                strides.push(-stride);
            } else {
                strides.push(stride);
            }
        }
        Layout::from_parts(self.shape.clone(), strides, offset as usize)
    }

    /// Kept axes with their sizes, as they are walked.
    fn kept(&self) -> impl Iterator<Item = (usize, usize)> {
        let sizes = self.axes.iter().zip(self.shape.iter()).zip(&self.is_folded);
        sizes.filter(|&(_, &is_folded)| !is_folded).map(|((&axis, &n), _)| (axis, n))
    }

    /// Whether kept axes are walked in another order than they have in the result.
    fn is_turned(&self) -> bool {
        self.kept().zip(self.kept().skip(1)).any(|((a, _), (b, _))| a > b)
    }

    /// The result seen in the order in which its axes were walked.
    fn kept_layout(&self) -> Layout {
        let walked: Shape = self.kept().map(|(_, n)| n).collect();
        let strides = Layout::contiguous(&walked);
        let mut axes: SmallVec<[(usize, usize, isize); 4]> =
            self.kept().zip(strides.strides()).map(|((axis, n), &stride)| (axis, n, stride)).collect();
        axes.sort_by_key(|&(axis, ..)| axis);
        Layout::from_parts(axes.iter().map(|a| a.1).collect(), axes.iter().map(|a| a.2).collect(), 0)
    }

    /// Neighbours that are both kept, or both folded, as one.
    fn groups(&self) -> SmallVec<[Group; 4]> {
        let mut groups: SmallVec<[Group; 4]> = SmallVec::new();
        for (&n, &is_folded) in self.shape.iter().zip(&self.is_folded) {
            match groups.last_mut() {
                Some(last) if last.is_folded == is_folded => last.n *= n,
                _ => groups.push(Group { n, is_folded }),
            }
        }
        groups
    }
}

/// Neighbouring axes of which all are kept or all are folded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Group {
    n: usize,
    is_folded: bool,
}

fn elements(groups: &[Group]) -> usize {
    groups.iter().map(|g| g.n).product()
}

fn results(groups: &[Group]) -> usize {
    groups.iter().filter(|g| !g.is_folded).map(|g| g.n).product()
}

struct Plan<'b, 'a> {
    source: Source<'b, 'a>,
    dtype: DType,
    kind: ReduceKind,
    groups: SmallVec<[Group; 4]>,
    work_ns: usize,
}

impl Plan<'_, '_> {
    /// Splits into an outermost folded group, the first kept group, and the rest, and spreads pieces of them.
    fn run<L: Arithmetic>(&self, out: &mut [u8]) {
        let (n_folded, rest) = match &self.groups[..] {
            [first, rest @ ..] if first.is_folded => (first.n, rest),
            all => (1, all),
        };
        let (n_kept, rest) = match rest {
            [first, rest @ ..] => (first.n, rest),
            [] => (1, rest),
        };
        if out.is_empty() {
            return;
        }
        let part = Part { n_kept, rest };
        let folder = || Folder::<L>::new(self.source, self.dtype, self.kind);
        let total = elements(&self.groups);
        let n_pieces = (total / PIECE).max(1);
        // Columns are cut no narrower than some cache lines.
        let narrowest = if rest.is_empty() { 256 } else { 1 };
        let per_piece = n_kept.div_ceil(n_pieces).max(narrowest).min(n_kept);
        let n_results = results(rest);
        if n_kept / per_piece >= 8 || n_folded == 1 || n_pieces == 1 {
            let bytes = n_results * self.dtype.size_bytes();
            threads::for_each(self.work_ns, out.chunks_mut(per_piece * bytes).enumerate(), |(i, out)| {
                let first = i * per_piece;
                let kept = first..first + out.len() / bytes;
                let mut totals = vec![first_total::<L>(self.kind); kept.len() * n_results];
                part.fold(&mut folder(), 0..n_folded, kept, &mut totals);
                self.store::<L>(totals, out);
            });
            return;
        }
        // Few results of many elements: pieces of the outermost group, folded together in order at the end.
        let n_pieces = n_pieces.min(64).min(n_folded);
        let n_results = n_kept * n_results;
        let mut totals = vec![first_total::<L>(self.kind); n_pieces * n_results];
        threads::for_each(self.work_ns, totals.chunks_mut(n_results).enumerate(), |(i, totals)| {
            let folded = i * n_folded / n_pieces..(i + 1) * n_folded / n_pieces;
            part.fold(&mut folder(), folded, 0..n_kept, totals);
        });
        let (sums, others) = totals.split_at_mut(n_results);
        for other in others.chunks(n_results) {
            sums.iter_mut().zip(other).for_each(|(sum, &other)| *sum = fold_totals::<L>(self.kind, *sum, other));
        }
        totals.truncate(n_results);
        self.store::<L>(totals, out);
    }

    /// Rounds totals to elements.
    fn store<L: Arithmetic>(&self, totals: Vec<L::Total>, out: &mut [u8]) {
        let lanes: Vec<L> = totals.into_iter().map(L::from_total).collect();
        match self.dtype {
            DType::F16 => narrow::<f16>(cast_slice(&lanes), cast_slice_mut(out)),
            DType::BF16 => narrow::<bf16>(cast_slice(&lanes), cast_slice_mut(out)),
            // All of nothing is true, which is 1.
            DType::Bool => out.iter_mut().zip(cast_slice::<L, u8>(&lanes)).for_each(|(v, &lane)| *v = lane.min(1)),
            _ => out.copy_from_slice(cast_slice(&lanes)),
        }
    }
}

/// What lies inside an outermost folded group.
struct Part<'a> {
    n_kept: usize,
    rest: &'a [Group],
}

impl Part<'_> {
    /// Folds these indices of the outermost group, for these of the kept one.
    fn fold<L: Arithmetic>(
        &self,
        folder: &mut Folder<'_, '_, L>,
        folded: Range<usize>,
        kept: Range<usize>,
        totals: &mut [L::Total],
    ) {
        let &Self { n_kept, rest } = self;
        let inner = elements(rest);
        match *rest {
            [] if n_kept == 1 => folder.rows(folded.start, 1, folded.len(), totals),
            [] => folder.columns(folded.start * n_kept + kept.start, folded.len(), n_kept, kept.len(), totals),
            [row] => {
                for r in folded {
                    folder.rows((r * n_kept + kept.start) * inner, kept.len(), row.n, totals);
                }
            }
            _ => {
                let n_results = results(rest);
                for r in folded {
                    for (k, totals) in kept.clone().zip(totals.chunks_mut(n_results)) {
                        deeper(folder, rest, (r * n_kept + k) * inner, totals);
                    }
                }
            }
        }
    }
}

/// Folds groups from element `start` on.
fn deeper<L: Arithmetic>(folder: &mut Folder<'_, '_, L>, groups: &[Group], start: usize, totals: &mut [L::Total]) {
    match *groups {
        [] => unreachable!("invariant: a fold has a group"),
        [row] if row.is_folded => folder.rows(start, 1, row.n, totals),
        [row] => folder.columns(start, 1, row.n, row.n, totals),
        [outer, row] if outer.is_folded => folder.columns(start, outer.n, row.n, row.n, totals),
        [outer, row] => folder.rows(start, outer.n, row.n, totals),
        [outer, ref rest @ ..] => {
            let (inner, n_results) = (elements(rest), results(rest));
            for i in 0..outer.n {
                let totals = if outer.is_folded { &mut *totals } else { &mut totals[i * n_results..][..n_results] };
                deeper(folder, rest, start + i * inner, totals);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Array, Expected, N_LAYOUTS, check, indices, run, tensor, values};
    use super::*;
    use tensor_core::expr::build;
    use tensor_core::{Expr, Op};

    const NUMBERS: [DType; 7] = [DType::F64, DType::F32, DType::F16, DType::BF16, DType::I64, DType::I32, DType::U8];
    const KINDS: [ReduceKind; 4] = [ReduceKind::Sum, ReduceKind::Prod, ReduceKind::Max, ReduceKind::Min];

    fn reduce(kind: ReduceKind, axes: &[usize], producer: Expr) -> Op {
        Op::Reduce(Reduce { producer, ..Reduce::new("reduce", kind, axes, false) })
    }

    /// Folds `f` of the elements of the broadcast inputs.
    fn reference(kind: ReduceKind, axes: &[usize], inputs: &[Array], f: impl Fn(&[f64]) -> f64) -> Vec<Expected> {
        let rank = inputs.iter().map(|x| x.shape.len()).max().expect("an input");
        let mut shape = vec![1; rank];
        for x in inputs {
            let lead = rank - x.shape.len();
            x.shape.iter().enumerate().filter(|(_, n)| **n != 1).for_each(|(a, &n)| shape[lead + a] = n);
        }
        let kept: Vec<usize> = (0..rank).filter(|a| !axes.contains(a)).collect();
        let out = Array::new(
            &kept.iter().map(|&a| shape[a]).collect::<Vec<_>>(),
            vec![0.0; kept.iter().map(|&a| shape[a]).product()],
        );
        let first = match kind {
            ReduceKind::Sum => 0.0,
            ReduceKind::Prod => 1.0,
            ReduceKind::Max => f64::NEG_INFINITY,
            ReduceKind::Min => f64::INFINITY,
        };
        let mut folded = vec![(first, 0.0); out.data.len()];
        for index in indices(&shape) {
            let operands: Vec<f64> = inputs
                .iter()
                .map(|x| {
                    let index = &index[rank - x.shape.len()..];
                    let index: Vec<usize> =
                        index.iter().zip(&x.shape).map(|(&i, &n)| if n == 1 { 0 } else { i }).collect();
                    x.get(&index)
                })
                .collect();
            let v = f(&operands);
            let (sum, scale) = &mut folded[out.at(&kept.iter().map(|&a| index[a]).collect::<Vec<_>>())];
            *sum = match kind {
                ReduceKind::Sum => *sum + v,
                ReduceKind::Prod => *sum * v,
                _ if sum.is_nan() || v.is_nan() => f64::NAN,
                ReduceKind::Max => sum.max(v),
                ReduceKind::Min => sum.min(v),
            };
            *scale = if kind == ReduceKind::Sum { *scale + v.abs() } else { sum.abs() };
        }
        let n = (shape.iter().product::<usize>() / folded.len().max(1)) as f64;
        vec![Expected::within(if kind == ReduceKind::Prod { n } else { 1.0 + n.min(80.0) / 4.0 }, folded)]
    }

    #[test]
    fn every_subset_of_axes() {
        for shape in [&[7][..], &[4, 5], &[3, 1, 6], &[2, 3, 4, 5], &[1, 1], &[]] {
            for subset in 0..1usize << shape.len() {
                let axes: Vec<usize> = (0..shape.len()).filter(|a| subset >> a & 1 == 1).collect();
                for kind in KINDS {
                    // Products stay small.
                    let mut x = Array::sample(shape, 1);
                    if kind == ReduceKind::Prod {
                        x.data.iter_mut().enumerate().for_each(|(i, v)| *v = [1.0, 2.0, 1.0, -1.0, 0.5][i % 5]);
                    }
                    let op = reduce(kind, &axes, Expr::identity());
                    let dtypes = if kind == ReduceKind::Prod { &NUMBERS[..4] } else { &NUMBERS };
                    check(&op, &[x], dtypes, |x| reference(kind, &axes, x, |v| v[0]));
                }
            }
        }
    }

    #[test]
    fn large_folds_are_cut_and_accurate() {
        for (shape, axes) in [
            (&[200_003][..], &[0][..]),
            (&[300, 700], &[0]),
            (&[300, 700], &[1]),
            (&[40_000, 3], &[0]),
            (&[40_000, 3], &[1]),
            (&[2, 70_000], &[0]),
            (&[16, 8, 900], &[0, 2]),
            (&[64, 2, 900], &[0, 2]),
            (&[9, 50, 11, 13], &[1, 3]),
            (&[9, 50, 11, 13], &[0, 2]),
        ] {
            for kind in [ReduceKind::Sum, ReduceKind::Max] {
                let op = reduce(kind, axes, Expr::identity());
                let dtypes = [DType::F32, DType::BF16, DType::I32];
                check(&op, &[Array::noise(shape, 3)], &dtypes, |x| reference(kind, axes, x, |v| v[0]));
            }
        }
    }

    #[test]
    fn producers_are_computed_on_the_way() {
        let square = build(|[x]| x * x);
        let product = build(|[x, y]| x * y);
        for (shape, axes) in [(&[5, 6, 7][..], &[0, 2][..]), (&[5, 6, 7], &[1]), (&[90, 800], &[0]), (&[9000], &[0])] {
            let x = Array::noise(shape, 1);
            let op = reduce(ReduceKind::Sum, axes, square.clone());
            check(&op, std::slice::from_ref(&x), &DType::FLOATS, |x| {
                // 16-bit products are rounded before they are added.
                let mut expected = reference(ReduceKind::Sum, axes, x, |v| v[0] * v[0]);
                expected[0].slack += 1.0;
                expected
            });
            let y = Array::sample(&[shape[shape.len() - 1]], 2);
            let op = reduce(ReduceKind::Sum, axes, product.clone());
            check(&op, &[x, y], &[DType::F64, DType::F32], |x| reference(ReduceKind::Sum, axes, x, |v| v[0] * v[1]));
        }
    }

    #[test]
    fn nothing_folds_to_the_neutral_element() {
        for (shape, axes) in
            [(&[0][..], &[0][..]), (&[3, 0], &[1]), (&[0, 3], &[0]), (&[3, 0], &[0]), (&[2, 0, 3], &[1])]
        {
            for kind in [ReduceKind::Sum, ReduceKind::Prod] {
                let op = reduce(kind, axes, Expr::identity());
                check(&op, &[Array::sample(shape, 1)], &NUMBERS, |x| reference(kind, axes, x, |v| v[0]));
            }
        }
        let none = tensor(&Array::new(&[2, 0], vec![]), DType::Bool, 0);
        for (kind, expected) in [(ReduceKind::Max, 0.0), (ReduceKind::Min, 1.0)] {
            let y = run(&reduce(kind, &[1], Expr::identity()), &[&none]).expect("a value");
            assert_eq!(values(&y[0]), [expected; 2]);
        }
    }

    #[test]
    fn sum_of_transposed() {
        let x = Array::new(&[2, 3], vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        for layout in 0..N_LAYOUTS {
            let x = tensor(&x, DType::F32, layout);
            let x = x.permute([1, 0]).expect("a view");
            for (kind, expected) in [(ReduceKind::Sum, [5.0, 7.0, 9.0]), (ReduceKind::Prod, [4.0, 10.0, 18.0])] {
                let y = run(&reduce(kind, &[1], Expr::identity()), &[&x]).expect("a sum");
                assert_eq!(values(&y[0]), expected);
            }
        }
    }

    #[test]
    fn extremum_seed_and_nan() {
        let extremum = |kind, x: Vec<f64>| {
            let x = tensor(&Array::new(&[x.len()], x), DType::F32, 0);
            values(&run(&reduce(kind, &[0], Expr::identity()), &[&x]).expect("a value")[0])[0]
        };
        assert_eq!(extremum(ReduceKind::Min, vec![32768.0, 32767.0]), 32767.0);
        assert_eq!(extremum(ReduceKind::Max, vec![-32768.0, -32767.0]), -32767.0);
        for at in [0, 1, 40, 199] {
            let mut x: Vec<f64> = (0..200).map(f64::from).collect();
            x[at] = f64::NAN;
            assert!(extremum(ReduceKind::Max, x.clone()).is_nan() && extremum(ReduceKind::Min, x).is_nan());
        }
    }

    #[test]
    fn any_and_all() {
        let mut one = vec![0.0; 1000];
        one[777] = 1.0;
        for (x, any, all) in [(vec![0.0; 256], 0.0, 0.0), (vec![1.0; 256], 1.0, 1.0), (one, 1.0, 0.0)] {
            let x = tensor(&Array::new(&[x.len()], x), DType::Bool, 0);
            for (kind, expected) in [(ReduceKind::Max, any), (ReduceKind::Min, all)] {
                assert_eq!(values(&run(&reduce(kind, &[0], Expr::identity()), &[&x]).expect("a value")[0]), [expected]);
            }
        }
    }
}
