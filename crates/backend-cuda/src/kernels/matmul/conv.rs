//! Convolutions and their adjoints as matrix products that gather an operand window by window; groups are the batch.
//!
//! | op | M | N | K |
//! |---|---|---|---|
//! | `conv` | channels out | images, positions | channels in, taps |
//! | `conv_input_grad` | channels in | images, positions that share their taps | channels out, those taps |
//! | `conv_weight_grad` | channels out | channels in, taps | images, positions |
//!
//! Large images under a kernel of one tap are matrices as they are, and one more axis of the batch.
//! With a stride, positions of the input that leave the same rest share their taps: a product for each such residue. Small
//! problems, few channels (depthwise convolutions among them) and many residues are reductions, as is what the tables of
//! windows have no room for.

use smallvec::{SmallVec, smallvec};
use tensor_core::op::{Conv, ConvInputGrad, ConvWeightGrad, Window};
use tensor_core::plan::Plan;
use tensor_core::{Dims, Expr, Meta, Result, Storages, Tensor};

use super::frame::{Operand, Problem};
use super::gather::{Coordinate, MAX_COORDINATE, MAX_EDGES, Walk};
use super::{Rung, choose, is_readable_operand, mma, run, tile};
use crate::kernels::{Context, address, contract, copy, storage};

/// So many residues at most are products of their own.
const MAX_RESIDUES: usize = 16;

/// Axes: how many, and the elements from one to the next.
type Axes = SmallVec<[(usize, isize); 4]>;
type Strides = SmallVec<[isize; 4]>;

/// y[n, g·o, p] = Σ x[n, g·c, p·stride + t·dilation − before] · w[g·o, c, t].
pub(crate) fn conv(cx: &Context, op: &Conv, inputs: &[&Tensor], meta: &Meta) -> Result<Storages> {
    let [x, w, extra @ ..] = inputs else { unreachable!("invariant: conv takes two or more") };
    let sizes = Sizes::new(op, x.dims(), w.dims(), &meta.shape);
    let strides = std::iter::once(copy::row_major(&meta.shape)).chain(extra.iter().map(|x| {
        let layout = x.layout().broadcast_to(&meta.shape).expect("invariant: core checked the broadcast");
        SmallVec::from_slice(layout.strides())
    }));
    let strides: SmallVec<[Strides; 4]> = strides.collect();
    let (positions, taps, coordinates) = sizes.windows(x);
    let ws = w.layout().strides();
    let weights = Side {
        x: w,
        offset: 0,
        group: ws[0] * sizes.n_out as isize,
        outer: smallvec![(sizes.n_out, ws[0])],
        k: axes(sizes.n_in, ws[1], sizes.taps, &ws[2..]),
        coordinates: SmallVec::new(),
    };
    let windows = Side {
        x,
        offset: sizes.first(x),
        group: x.layout().strides()[1] * sizes.n_in as isize,
        outer: positions,
        k: taps,
        coordinates,
    };
    let plain = problem("conv", weights, windows, &strides, |s| {
        let groups = smallvec![(sizes.groups, s[1] * sizes.n_out as isize)];
        [groups, smallvec![(sizes.n_out, s[1])], axes(sizes.n, s[0], sizes.output, &s[2..])]
    });
    let whole = Problem { result: meta.dtype, epilogue: op.epilogue.clone(), extra, ..plain };
    match products(cx, &sizes, vec![(whole, 0)], meta)? {
        Some(storages) => Ok(storages),
        None => contract::conv(cx, op, inputs, meta),
    }
}

/// x[n, g·c, u] = Σ y[n, g·o, p] · w[g·o, c, t] over p·stride + t·dilation − before = u.
pub(crate) fn input_grad(cx: &Context, op: &ConvInputGrad, inputs: &[&Tensor], meta: &Meta) -> Result<Storages> {
    let [g, w] = inputs else { unreachable!("invariant: conv_input_grad takes two") };
    let sizes = Sizes::new(&op.conv, &meta.shape, w.dims(), g.dims());
    let n_residues = |a: usize| sizes.window.stride[a].min(sizes.input[a]);
    let all: usize = (0..sizes.window.rank()).map(n_residues).fold(1, usize::saturating_mul);
    let mut parts = Vec::new();
    for i in 0..if all > MAX_RESIDUES { 0 } else { all } {
        let mut rest = i;
        let residues = (0..sizes.window.rank()).map(|a| {
            let of_axis = Residue::new(&sizes, a, rest % n_residues(a));
            rest /= n_residues(a);
            of_axis
        });
        parts.push(of_residue(&sizes, g, w, &residues.collect::<SmallVec<[_; 3]>>(), &meta.shape));
    }
    match products(cx, &sizes, parts, meta)? {
        Some(storages) => Ok(storages),
        None => contract::input_grad(cx, op, inputs, meta),
    }
}

/// w[g·o, c, t] = Σ x[n, g·c, p·stride + t·dilation − before] · y[n, g·o, p].
pub(crate) fn weight_grad(cx: &Context, op: &ConvWeightGrad, inputs: &[&Tensor], meta: &Meta) -> Result<Storages> {
    let [x, g] = inputs else { unreachable!("invariant: conv_weight_grad takes two") };
    let sizes = Sizes::new(&op.conv, x.dims(), &meta.shape, g.dims());
    let (positions, taps, mut coordinates) = sizes.windows(x);
    coordinates.iter_mut().for_each(|c| c.steps.reverse());
    let gs = g.layout().strides();
    let grad = Side {
        x: g,
        offset: 0,
        group: gs[1] * sizes.n_out as isize,
        outer: smallvec![(sizes.n_out, gs[1])],
        k: axes(sizes.n, gs[0], sizes.output, &gs[2..]),
        coordinates: SmallVec::new(),
    };
    let windows = Side {
        x,
        offset: sizes.first(x),
        group: x.layout().strides()[1] * sizes.n_in as isize,
        outer: taps,
        k: positions,
        coordinates,
    };
    let whole = problem("conv_weight_grad", grad, windows, &[copy::row_major(&meta.shape)], |s| {
        let groups = smallvec![(sizes.groups, s[0] * sizes.n_out as isize)];
        [groups, smallvec![(sizes.n_out, s[0])], axes(sizes.n_in, s[1], sizes.taps, &s[2..])]
    });
    match products(cx, &sizes, vec![(whole, 0)], meta)? {
        Some(storages) => Ok(storages),
        None => contract::weight_grad(cx, op, inputs, meta),
    }
}

/// The sizes of a convolution; channels are those of a group.
struct Sizes<'a> {
    window: &'a Window,
    groups: usize,
    n: usize,
    n_in: usize,
    n_out: usize,
    input: &'a [usize],
    output: &'a [usize],
    taps: &'a [usize],
}

impl<'a> Sizes<'a> {
    fn new(conv: &'a Conv, x: &'a [usize], w: &'a [usize], y: &'a [usize]) -> Self {
        let n_out = w[0] / conv.groups.max(1);
        let (input, output, taps) = (&x[2..], &y[2..], &w[2..]);
        Self { window: &conv.window, groups: conv.groups, n: x[0], n_in: w[1], n_out, input, output, taps }
    }

    /// Whether coordinates are few and small enough for the tables.
    fn fits(&self) -> bool {
        let is_short = |a: usize| self.input[a] + self.window.before[a] + self.window.after[a] < MAX_COORDINATE;
        self.window.rank() <= MAX_EDGES && (0..self.window.rank()).all(is_short)
    }

    /// The padded input by images and positions, and by channels and taps; and how both move its coordinates.
    fn windows(&self, x: &Tensor) -> (Axes, Axes, SmallVec<[Coordinate; 3]>) {
        let (s, Window { stride, before, dilation, .. }) = (x.layout().strides(), self.window);
        let by =
            |steps: &[usize]| -> Strides { s[2..].iter().zip(steps).map(|(&s, &step)| s * step as isize).collect() };
        let coordinate = |a: usize| Coordinate {
            axis: 1 + a,
            steps: [stride[a] as isize, dilation[a] as isize],
            start: -(before[a] as isize),
            below: self.input[a],
        };
        let positions = axes(self.n, s[0], self.output, &by(stride));
        let taps = axes(self.n_in, s[1], self.taps, &by(dilation));
        (positions, taps, (0..self.window.rank()).map(coordinate).collect())
    }

    /// From the input's first element to that of the padding.
    fn first(&self, x: &Tensor) -> isize {
        x.layout().strides()[2..].iter().zip(&self.window.before).map(|(s, &before)| -s * before as isize).sum()
    }
}

/// A first axis, then those of a shape.
fn axes(n: usize, stride: isize, shape: &[usize], strides: &[isize]) -> Axes {
    std::iter::once((n, stride)).chain(shape.iter().copied().zip(strides.iter().copied())).collect()
}

/// Positions `rest`, `rest` + stride, … of an axis of the input: a correlation of neighbouring positions of the output.
struct Residue {
    rest: usize,
    /// How many positions, and which of the output the first one's first tap reads.
    n: usize,
    first: isize,
    /// The taps that reach them: the first, how many, from one to the next, and what that moves in the output.
    tap: usize,
    n_taps: usize,
    step: usize,
    back: isize,
}

impl Residue {
    fn new(sizes: &Sizes<'_>, a: usize, rest: usize) -> Self {
        let Window { stride, before, dilation, .. } = sizes.window;
        let (stride, dilation, at) = (stride[a], dilation[a], rest + before[a]);
        let step = (1..=stride).find(|&step| (step * dilation).is_multiple_of(stride)).unwrap_or(1);
        let tap = (0..sizes.taps[a].min(step)).find(|&t| t * dilation % stride == at % stride);
        let n_taps = tap.map_or(0, |tap| (sizes.taps[a] - tap).div_ceil(step));
        let tap = tap.unwrap_or(0);
        let first = (at as isize - (tap * dilation) as isize).div_euclid(stride as isize);
        let n = (sizes.input[a] - rest).div_ceil(stride);
        Self { rest, n, first, tap, n_taps, step, back: (step * dilation / stride) as isize }
    }
}

/// The product for residues of all axes, and the first element that it makes.
fn of_residue<'a>(
    sizes: &Sizes<'_>,
    g: &Tensor,
    w: &Tensor,
    residues: &[Residue],
    shape: &[usize],
) -> (Problem<'a>, usize) {
    let (gs, ws, to) = (g.layout().strides(), w.layout().strides(), copy::row_major(shape));
    let list = |f: &dyn Fn(usize, &Residue) -> (usize, isize), n: usize, stride: isize| -> Axes {
        std::iter::once((n, stride)).chain(residues.iter().enumerate().map(|(a, r)| f(2 + a, r))).collect()
    };
    let sum =
        |f: &dyn Fn(usize, &Residue) -> isize| -> isize { residues.iter().enumerate().map(|(a, r)| f(2 + a, r)).sum() };
    let weights = Side {
        x: w,
        offset: sum(&|a, r| ws[a] * r.tap as isize),
        group: ws[0] * sizes.n_out as isize,
        outer: smallvec![(sizes.n_in, ws[1])],
        k: list(&|a, r| (r.n_taps, ws[a] * r.step as isize), sizes.n_out, ws[0]),
        coordinates: SmallVec::new(),
    };
    let coordinate = |(a, r): (usize, &Residue)| Coordinate {
        axis: 1 + a,
        steps: [1, -r.back],
        start: r.first,
        below: sizes.output[a],
    };
    let grad = Side {
        x: g,
        offset: sum(&|a, r| gs[a] * r.first),
        group: gs[1] * sizes.n_out as isize,
        outer: list(&|a, r| (r.n, gs[a]), sizes.n, gs[0]),
        k: list(&|a, r| (r.n_taps, -gs[a] * r.back), sizes.n_out, gs[1]),
        coordinates: residues.iter().enumerate().map(coordinate).collect(),
    };
    let first = sum(&|a, r| to[a] * r.rest as isize) as usize;
    let part = problem("conv_input_grad", weights, grad, &[to], |s| {
        let columns = list(&|a, r| (r.n, s[a] * sizes.window.stride[a - 2] as isize), sizes.n, s[0]);
        [smallvec![(sizes.groups, s[1] * sizes.n_in as isize)], smallvec![(sizes.n_in, s[1])], columns]
    });
    (part, first)
}

/// An operand of a product: the elements from group to group, along M or N, and along K.
struct Side<'a> {
    x: &'a Tensor,
    offset: isize,
    group: isize,
    outer: Axes,
    k: Axes,
    coordinates: SmallVec<[Coordinate; 3]>,
}

impl Side<'_> {
    /// Whether its images, of a tile's width and more, are matrices as they are: those of kernels of one tap.
    fn is_plain_by_image(&self) -> bool {
        let is_inside = Walk::new(&self.outer, &self.k, &self.coordinates).is_inside();
        let [(n, _), positions @ ..] = &self.outer[..] else { return false };
        *n > 1 && is_inside && count(positions) >= 128 && Walk::new(positions, &self.k, &[]).strides().is_some()
    }

    fn operand(&self) -> Operand {
        let bytes = self.offset * self.x.dtype().size_bytes() as isize;
        let address = address(self.x).wrapping_add_signed(bytes as i64);
        let walk = Walk::new(&self.outer, &self.k, &self.coordinates);
        match walk.strides() {
            Some([outer, k]) => Operand::new(address, outer, k),
            None => Operand { walk: Some(walk), ..Operand::new(address, 0, 0) },
        }
    }
}

/// The product of two operands; `to` gives the axes of groups, M and N from the strides of the result and of what its
/// epilogue reads.
fn problem<'a>(
    name: &'static str,
    a: Side<'_>,
    mut b: Side<'_>,
    strides: &[Strides],
    to: impl Fn(&Strides) -> [Axes; 3],
) -> Problem<'a> {
    let mut places: SmallVec<[[Axes; 3]; 2]> = strides.iter().map(to).collect();
    let mut groups: SmallVec<[Strides; 4]> = smallvec![smallvec![a.group], smallvec![b.group]];
    if b.is_plain_by_image() {
        let (_, image) = b.outer.remove(0);
        b.coordinates.clear();
        groups[0].push(0);
        groups[1].push(image);
        for [matrices, _, columns] in &mut places {
            matrices.push(columns.remove(0));
        }
    }
    let dims = |i: usize| places[0][i].iter().map(|axis| axis.0).collect::<Dims>();
    let plan =
        |i: usize| Plan::of(&dims(i), places.iter().map(|axes| axes[i].iter().map(|axis| axis.1).collect()).collect());
    Problem {
        name,
        size: [count(&a.outer), count(&b.outer), count(&a.k)],
        a: a.operand(),
        b: b.operand(),
        dtype: a.x.dtype(),
        product: a.x.dtype(),
        result: a.x.dtype(),
        epilogue: Expr::identity(),
        extra: &[],
        batch: Plan::of(&dims(0), groups),
        matrices: plan(0),
        rows: plan(1),
        columns: plan(2),
    }
}

fn count(axes: &[(usize, isize)]) -> usize {
    axes.iter().map(|axis| axis.0).product()
}

/// The products whose elements, from these on, make up the result; nothing if it is better reduced.
fn products(
    cx: &Context,
    sizes: &Sizes<'_>,
    problems: Vec<(Problem<'_>, usize)>,
    meta: &Meta,
) -> Result<Option<Storages>> {
    if meta.shape.is_empty() {
        return Ok(Some(Storages::from_iter([storage(cx.output(meta)?)])));
    }
    let choices: Vec<_> = problems.iter().map(|(problem, _)| choose(cx, problem)).collect();
    // All are alike but for some taps.
    let largest = problems.iter().zip(&choices).max_by_key(|((problem, _), _)| problem.size[2]);
    if !sizes.fits() || largest.is_none_or(|(_, choice)| choice.0 == Rung::Reduce) {
        return Ok(None);
    }
    let block = cx.output(meta)?;
    let is_whole = problems.len() == 1;
    for ((mut problem, first), (rung, limit)) in problems.into_iter().zip(choices) {
        let (geometry, is_mma) = match rung {
            Rung::Mma => (mma::geometry(problem.dtype), true),
            Rung::Tile { is_small } => (tile::geometry(problem.dtype, is_small), false),
            Rung::Reduce => (tile::geometry(problem.dtype, true), false),
        };
        if is_mma {
            gather_what_is_not_readable(&mut problem);
        }
        let to = block.address() + (first * meta.dtype.size_bytes()) as u64;
        // Parts are kept in whole results.
        run(cx, &problem, &geometry, is_mma, &meta.shape, if is_whole { limit } else { 1 }, to)?;
    }
    Ok(Some(Storages::from_iter([storage(block)])))
}

/// Operands that copies of 16 bytes cannot read pass through registers.
fn gather_what_is_not_readable(problem: &mut Problem<'_>) {
    let [m, n, k] = problem.size;
    for (x, outer, i) in [(&mut problem.a, m, 0), (&mut problem.b, n, 1)] {
        let is_readable = is_readable_operand(x, &problem.batch.strides[i], problem.dtype);
        if x.walk.is_none() && !is_readable {
            x.walk = Some(Walk::new(&[(outer, x.outer)], &[(k, x.k)], &[]));
        }
    }
}
