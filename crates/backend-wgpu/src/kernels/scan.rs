//! Running folds: one invocation per lane of the axis, or, where lanes are long, one per segment of a lane.
//!
//! Long lanes take three phases, each in a fixed order: every segment's total; the running fold of the totals, which are
//! lanes in turn; every segment again, from the total of all before it. Read twice and written once: 3/2 of the floor.

use smallvec::SmallVec;
use tensor_core::expr::lower::{LowType, lower};
use tensor_core::op::{ReduceKind, Scan, ScanKind};
use tensor_core::plan::Plan;
use tensor_core::{DType, Meta, Result, Storages, Tensor};

use super::Context;
use super::context::window;
use super::map::expressions;
use super::moves::row_major;
use super::reduce::{fold, narrowed, neutral};
use super::rows::{total, wide_tensor};
use crate::args::Args;
use crate::batch::Window;
use crate::emit;
use crate::index;
use crate::memory::Block;
use crate::pipeline::Key;
use crate::shader::{Finished, Shader};

/// The longest lane that is one invocation's work.
const LANE: usize = 1024;
/// Elements of a segment: an invocation's of one axis without gaps fill a line of the cache.
const SEGMENT: usize = 32;

/// The fold of everything up to each position.
pub(crate) fn scan(cx: &Context, op: &Scan, x: &Tensor, meta: &Meta) -> Result<Storages> {
    let (name, kind) = match op.kind {
        ScanKind::Sum => ("cumsum", ReduceKind::Sum),
        ScanKind::Prod => ("cumprod", ReduceKind::Prod),
        ScanKind::Max => ("cummax", ReduceKind::Max),
    };
    let to = cx.output(&Meta::new(meta.shape.clone(), total(meta.dtype)))?;
    if !meta.shape.is_empty() {
        let lanes = Lanes {
            name,
            kind,
            dtype: meta.dtype,
            dims: x.dims(),
            axis: op.axis,
            reverse: op.reverse,
            to: Window::all(to.buffer()),
            to_strides: row_major(&meta.shape),
            from: window(x),
            from_strides: SmallVec::from_slice(x.layout().strides()),
            begin: x.layout().offset(),
        };
        lanes.run(cx)?;
    }
    narrowed(cx, name, wide_tensor(to, meta, x), meta)
}

/// What an invocation writes, and what it starts from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Every position, from nothing.
    Whole,
    /// The total alone.
    Totals,
    /// Every position, from the running fold of the totals.
    Carried,
}

/// A scan of elements of a type into the type that totals have.
struct Lanes<'a> {
    name: &'static str,
    kind: ReduceKind,
    dtype: DType,
    dims: &'a [usize],
    axis: usize,
    reverse: bool,
    to: Window<'a>,
    to_strides: SmallVec<[isize; 4]>,
    from: Window<'a>,
    from_strides: SmallVec<[isize; 4]>,
    begin: usize,
}

impl Lanes<'_> {
    fn run(&self, cx: &Context) -> Result<()> {
        let depth = self.dims[self.axis];
        if depth <= LANE {
            return self.dispatch(cx, Phase::Whole, 1, None);
        }
        let n_segments = depth.div_ceil(SEGMENT);
        let n_lanes = self.dims.iter().product::<usize>() / depth;
        let wide = total(self.dtype);
        let room = || cx.pool.take(n_lanes * n_segments * wide.size_bytes());
        let (totals, carried) = (room()?, room()?);
        self.dispatch(cx, Phase::Totals, n_segments, Some(&totals))?;
        let (dims, axis) = if self.is_column() { ([n_segments, n_lanes], 0) } else { ([n_lanes, n_segments], 1) };
        let of_totals = Lanes {
            dtype: wide,
            dims: &dims,
            axis,
            reverse: false,
            to: Window::all(carried.buffer()),
            to_strides: row_major(&dims),
            from: Window::all(totals.buffer()),
            from_strides: row_major(&dims),
            begin: 0,
            ..*self
        };
        of_totals.run(cx)?;
        self.dispatch(cx, Phase::Carried, n_segments, Some(&carried))
    }

    /// Whether neighbouring lanes are neighbours in memory: then invocations go along lanes, else along segments.
    fn is_column(&self) -> bool {
        self.from_strides[self.axis].unsigned_abs() > 1
    }

    fn dispatch(&self, cx: &Context, phase: Phase, n_segments: usize, totals: Option<&Block>) -> Result<()> {
        let (axis, depth) = (self.axis, self.dims[self.axis]);
        let length = if n_segments == 1 { depth } else { SEGMENT };
        let sign = if self.reverse { -1 } else { 1 };
        // The axis' place is taken by its segments, which are the innermost axis or the outermost.
        let at = if self.is_column() { 0 } else { self.dims.len() };
        let mut dims: SmallVec<[usize; 4]> = SmallVec::from_slice(self.dims);
        dims[axis] = 1;
        dims.insert(at, n_segments);
        // The total alone has no place among the results.
        let with_result = phase != Phase::Totals;
        let all = [(&self.to_strides, 0), (&self.from_strides, self.begin)];
        let operands = &all[usize::from(!with_result)..];
        let strides = operands.iter().map(|(strides, _)| {
            let mut strides = (*strides).clone();
            strides.insert(at, sign * length as isize * strides[axis]);
            strides
        });
        let plan = Plan::of(&dims, strides.collect());
        let last = if self.reverse { depth as isize - 1 } else { 0 };
        let mut args = Args::new();
        args.push(plan.len());
        let begins = operands.iter().map(|(strides, begin)| begin.wrapping_add_signed(last * strides[axis]));
        index::push_places(&mut args, &plan, begins);
        args.push(length);
        operands.iter().for_each(|(strides, _)| args.push_signed(sign * strides[axis]));
        if phase != Phase::Whole {
            args.push(depth);
            args.push(n_segments);
            args.push(if self.is_column() { plan.len() / n_segments } else { 1 });
        }
        let mut windows = vec![self.from];
        windows.extend(with_result.then_some(self.to));
        windows.extend(totals.map(|totals| Window::all(totals.buffer())));
        let key = Key::new("scan", [self.kind as u64, self.dtype as u64, plan.rank() as u64, phase as u64]);
        let text = || text(self.kind, self.dtype, plan.rank(), phase);
        cx.run_elements(self.name, key, text, &windows, &args, plan.len(), 1)
    }
}

fn text(kind: ReduceKind, dtype: DType, rank: usize, phase: Phase) -> Result<Finished> {
    let wide = total(dtype);
    let mut shader = Shader::new();
    let count = shader.arg();
    shader.read("x", dtype);
    let with_result = phase != Phase::Totals;
    if with_result {
        shader.write("to", wide);
    }
    match phase {
        Phase::Whole => {}
        Phase::Totals => shader.write("totals", wide),
        Phase::Carried => shader.read("totals", wide),
    }
    let (ty, t) = (LowType::of(wide), shader.type_of(wide));
    let both = lower("scan", &[fold(kind)], &[wide, wide])?;
    let joined = expressions(&mut shader, &both, "v", &["a".to_string(), "b".to_string()], &["y".to_string()]);
    shader.push(&format!("fn fold(a: {t}, b: {t}) -> {t} {{\n{joined}    return y;\n}}\n"));
    let operands: Vec<String> = ["to_at", "at_x"][usize::from(!with_result)..].iter().map(|&s| s.into()).collect();
    let places = index::places(&mut shader, rank, "first", &operands);
    let length = shader.arg();
    let steps: Vec<String> =
        operands.iter().map(|operand| format!("        {operand} += {};\n", shader.arg())).collect();
    let steps = steps.concat();
    let mut begin = format!(
        "{places}    var total: {t} = {};\n    var length = {length};\n",
        emit::constant(ty, neutral(kind, wide))
    );
    if phase != Phase::Whole {
        let [depth, segments, apart] = std::array::from_fn(|_| shader.arg());
        begin.push_str(&format!(
            "    let segment = first / {apart} % {segments};\n    length = min(length, {depth} - segment * length);\n"
        ));
        if phase == Phase::Carried {
            begin.push_str(&format!("    if segment > 0u {{\n        total = load_totals(first - {apart});\n    }}\n"));
        }
    }
    let each = if with_result { "        to[to_at] = total;\n" } else { "" };
    let end = if with_result { "" } else { "    totals[first] = total;\n" };
    let body = format!(
        "{begin}    for (var k = 0u; k < length; k++) {{\n        total = fold(total, load_x(at_x));\n{each}{steps}    }}\n{end}"
    );
    let entry = include_str!("../../shaders/element.wgsl")
        .replace("{{PER}}", "1")
        .replace("{{COUNT}}", &count)
        .replace("{{STORES}}", &body);
    Ok(shader.finish(&entry))
}
