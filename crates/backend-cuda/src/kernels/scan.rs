//! Running folds: one thread per lane of the axis, or, where lanes are long, one per segment of a lane.
//!
//! Long lanes take three phases, each in a fixed order: every segment's total; the running fold of the totals, which are
//! lanes in turn; every segment again, from the total of all before it. Read twice and written once: 3/2 of the floor.

use smallvec::SmallVec;
use tensor_core::expr::lower::lower;
use tensor_core::op::{ReduceKind, Scan, ScanKind};
use tensor_core::{DType, Meta, Record, Result, Storages, Tensor};

use super::copy::row_major;
use super::{Context, Text, address, reduce, storage};
use crate::args::Args;
use crate::driver::Address;
use crate::emit::{self, Body};
use crate::index;
use crate::module::Key;
use tensor_core::plan::Plan;

/// The longest lane that is one thread's work.
const LANE: usize = 1024;
/// Elements of a segment: a thread's of one axis without gaps fill a line of the cache.
const SEGMENT: usize = 32;

/// The fold of everything up to each position.
pub(crate) fn scan(cx: &Context, op: &Scan, x: &Tensor, meta: &Meta) -> Result<Storages> {
    let block = cx.output(meta)?;
    if !meta.shape.is_empty() {
        let kind = match op.kind {
            ScanKind::Sum => ReduceKind::Sum,
            ScanKind::Prod => ReduceKind::Prod,
            ScanKind::Max => ReduceKind::Max,
        };
        let strides = [row_major(&meta.shape), SmallVec::from_slice(x.layout().strides())];
        let starts = [block.address(), address(x)];
        let (dims, axis, reverse) = (x.dims(), op.axis, op.reverse);
        Lanes { name: op.name(), kind, dtype: meta.dtype, dims, axis, reverse, strides, starts }.run(cx)?;
    }
    Ok(Storages::from_iter([storage(block)]))
}

/// What a thread writes, and what it starts from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Every position, from nothing.
    Whole,
    /// The total alone.
    Totals,
    /// Every position, from the running fold of the totals.
    Carried,
}

/// A scan: of the result, then of the operand, strides and addresses.
struct Lanes<'a> {
    /// The op, for errors.
    name: &'a str,
    kind: ReduceKind,
    dtype: DType,
    dims: &'a [usize],
    axis: usize,
    reverse: bool,
    strides: [SmallVec<[isize; 4]>; 2],
    starts: [Address; 2],
}

impl Lanes<'_> {
    fn run(&self, cx: &Context) -> Result<()> {
        let depth = self.dims[self.axis];
        if depth <= LANE {
            return self.launch(cx, Phase::Whole, 1, 0);
        }
        let n_segments = depth.div_ceil(SEGMENT);
        let n_lanes = self.dims.iter().product::<usize>() / depth;
        let wide = self.dtype.compute();
        let totals = cx.pool.take(n_lanes * n_segments * wide.size_bytes())?;
        self.launch(cx, Phase::Totals, n_segments, totals.address())?;
        let (dims, axis) = if self.is_column() { ([n_segments, n_lanes], 0) } else { ([n_lanes, n_segments], 1) };
        let strides = row_major(&dims);
        let (strides, starts) = ([strides.clone(), strides], [totals.address(); 2]);
        Lanes { name: self.name, kind: self.kind, dtype: wide, dims: &dims, axis, reverse: false, strides, starts }
            .run(cx)?;
        self.launch(cx, Phase::Carried, n_segments, totals.address())
    }

    /// Whether neighbouring lanes are neighbours in memory: then threads go along lanes, else along segments.
    fn is_column(&self) -> bool {
        self.strides[1][self.axis].unsigned_abs() > 1
    }

    fn launch(&self, cx: &Context, phase: Phase, n_segments: usize, totals: Address) -> Result<()> {
        let (axis, depth, wide_bytes) = (self.axis, self.dims[self.axis], self.dtype.compute().size_bytes());
        let length = if n_segments == 1 { depth } else { SEGMENT };
        let sign = if self.reverse { -1 } else { 1 };
        // The axis' place is taken by its segments, which are the innermost axis or the outermost.
        let place = |of: &[usize], segments: usize| {
            let mut all: SmallVec<[usize; 4]> = SmallVec::from_slice(of);
            all[axis] = 1;
            all.insert(if self.is_column() { 0 } else { all.len() }, segments);
            all
        };
        let dims = place(self.dims, n_segments);
        let strides = self.strides.iter().map(|strides| {
            let mut all = strides.clone();
            all.insert(if self.is_column() { 0 } else { all.len() }, sign * (length as isize) * strides[axis]);
            all
        });
        let plan = Plan::of(&dims, strides.collect());
        let structure = [self.kind as u64, self.dtype as u64, plan.rank() as u64, phase as u64];
        let function =
            cx.modules.get(Key::new("scan", structure), || text(self.kind, self.dtype, plan.rank(), phase))?;
        let size = self.dtype.size_bytes() as i64;
        let last = if self.reverse { depth as i64 - 1 } else { 0 };
        let mut args = Args::default();
        args.push(plan.len() as u64);
        for (start, strides) in self.starts.iter().zip(&self.strides) {
            args.push(start.wrapping_add_signed(last * strides[axis] as i64 * size));
        }
        index::push(&mut args, &plan, |_| size as usize);
        args.push(length as u64);
        self.strides.iter().for_each(|strides| args.push_signed(sign as i64 * strides[axis] as i64 * size));
        if phase != Phase::Whole {
            let apart = if self.is_column() { plan.len() / n_segments } else { 1 };
            args.push(depth as u64);
            args.push(n_segments as u64);
            args.push(apart as u64);
            args.push(totals);
            args.push_signed(-((apart * wide_bytes) as i64));
        }
        let n = self.dims.iter().product::<usize>().max(plan.len());
        if n > i32::MAX as usize {
            return cx.launch(self.name, function, n, &args);
        }
        cx.launch(self.name, function, plan.len(), &args)
    }
}

fn text(kind: ReduceKind, dtype: DType, rank: usize, phase: Phase) -> Result<String> {
    let wide = dtype.compute();
    let fold = lower("scan", &[reduce::fold(kind)], &[wide, wide])?;
    let mut text = Text::of_elements();
    let places = ["%to".to_string(), "%from".to_string()];
    places.iter().for_each(|place| text.wide(place));
    let advance = index::advance(&mut text.slots, rank, "%i", &places);
    text.push(&advance);
    text.word("%depth");
    text.wide("%to_step");
    text.wide("%from_step");
    ["%total", "%term"].iter().for_each(|register| text.value(wide, register));
    text.register("b32", "%k");
    text.register("pred", "%goes_on");
    text.line(reduce::neutral(kind, wide, "%total"));
    if phase != Phase::Whole {
        ["%whole", "%segments", "%apart"].iter().for_each(|register| text.word(register));
        ["%totals", "%before"].iter().for_each(|register| text.wide(register));
        // The thread's segment, how much of it there is, and where its total is.
        text.register("b32", "%segment");
        text.line("div.u32 %segment, %i, %apart;");
        text.line("rem.u32 %segment, %segment, %segments;");
        text.line("mul.lo.u32 %k, %segment, %depth;");
        text.line("sub.u32 %k, %whole, %k;");
        text.line("min.u32 %depth, %depth, %k;");
        text.advance("%totals", "%i", wide.size_bytes());
    }
    if phase == Phase::Carried {
        text.line("setp.eq.u32 %goes_on, %segment, 0;");
        text.line("@%goes_on bra $start;");
        text.line("add.s64 %totals, %totals, %before;");
        text.push(&emit::load(wide, "%total", "%totals"));
        text.push("$start:\n");
    }
    text.line("mov.b32 %k, 0;");
    text.push("$next:\n");
    text.push(&emit::load(dtype, "%term", "%from"));
    let (operands, total) = (["%total".to_string(), "%term".to_string()], ["%total".to_string()]);
    text.push(&Body { lowered: &fold, inputs: &operands, numbers: &[], outputs: &total }.text());
    if phase != Phase::Totals {
        text.push(&emit::store(dtype, "%to", "%total"));
    }
    text.line("add.s64 %to, %to, %to_step;");
    text.line("add.s64 %from, %from, %from_step;");
    text.line("add.s32 %k, %k, 1;");
    text.line("setp.lt.u32 %goes_on, %k, %depth;");
    text.line("@%goes_on bra $next;");
    if phase == Phase::Totals {
        text.push(&emit::store(wide, "%totals", "%total"));
    }
    Ok(text.element("scan"))
}
