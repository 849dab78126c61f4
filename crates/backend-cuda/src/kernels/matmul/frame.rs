//! What the kernels of matrix products share: which tile a block makes, and what becomes of its sums.

use tensor_core::expr::lower::{LowType, Lowered, lower};
use tensor_core::plan::Plan;
use tensor_core::{DType, Expr, Result, Tensor};

use super::gather::Walk;
use crate::args::Args;
use crate::driver::Address;
use crate::emit::{self, Body};
use crate::index;
use crate::kernels::map::push_numbers;
use crate::kernels::reduce::shared;
use crate::kernels::{Text, address, names};
use crate::source::Source;

/// One operand: its first element and the elements from one to the next along M or N, and along K.
#[derive(Clone, Debug)]
pub(super) struct Operand {
    pub(super) address: Address,
    pub(super) outer: isize,
    pub(super) k: isize,
    /// How it is read if these two do not say it all.
    pub(super) walk: Option<Walk>,
}

impl Operand {
    /// An operand that two strides describe.
    pub(super) fn new(address: Address, outer: isize, k: isize) -> Self {
        Self { address, outer, k, walk: None }
    }

    /// Whether neighbours lie along K rather than along the result.
    pub(super) fn is_along_k(&self) -> bool {
        let is_nearer = || self.k.unsigned_abs().wrapping_sub(1) <= self.outer.unsigned_abs().wrapping_sub(1);
        self.walk.as_ref().map_or_else(is_nearer, Walk::is_along_k)
    }
}

/// Σₖ a·b of many matrices with what follows: all that a launch depends on.
#[derive(Clone, Debug)]
pub(super) struct Problem<'a> {
    pub(super) name: &'static str,
    pub(super) size: [usize; 3],
    pub(super) a: Operand,
    pub(super) b: Operand,
    /// The dtype of both operands.
    pub(super) dtype: DType,
    /// The dtype of the product, as the epilogue sees it: of parts of it, the one that sums are made in.
    pub(super) product: DType,
    pub(super) result: DType,
    pub(super) epilogue: Expr,
    pub(super) extra: &'a [&'a Tensor],
    /// The matrices of a and b.
    pub(super) batch: Plan,
    /// The matrices, columns and rows of the result and of the further inputs.
    pub(super) matrices: Plan,
    pub(super) columns: Plan,
    pub(super) rows: Plan,
}

/// The tile of a block and how its sums pass through shared memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Geometry {
    pub(super) rows: usize,
    pub(super) columns: usize,
    pub(super) depth: usize,
    pub(super) threads: usize,
    /// Rows of a half are taken from the tile in runs of so many.
    pub(super) quarter: usize,
    /// Sums from one line in shared memory to the next.
    pub(super) pitch: usize,
}

/// The parts of K: how many, and how long each is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Parts {
    pub(super) count: usize,
    pub(super) depth: usize,
}

/// Slots that the skeletons read by their numbers.
const FIXED_SLOTS: usize = 17;

impl Problem<'_> {
    /// Whether a block gathers an operand.
    pub(super) fn is_gathered(&self) -> bool {
        self.a.walk.is_some() || self.b.walk.is_some()
    }

    /// The entry's name.
    pub(super) fn kernel(&self, plain: &'static str, gathered: &'static str) -> &'static str {
        if self.is_gathered() { gathered } else { plain }
    }

    /// The dtypes of the epilogue's inputs.
    pub(super) fn dtypes(&self) -> Vec<DType> {
        std::iter::once(self.product).chain(self.extra.iter().map(|x| x.dtype())).collect()
    }

    /// What the text depends on, whatever the kernel.
    pub(super) fn structure(&self) -> impl Iterator<Item = u64> {
        let ranks = [&self.batch, &self.matrices, &self.columns, &self.rows].map(|plan| plan.rank() as u64);
        let dtypes = std::iter::once(self.dtype).chain(self.dtypes()).map(|dtype| dtype as u64);
        let dtypes: Vec<u64> = dtypes.collect();
        let walks = [&self.a, &self.b].map(|x| x.walk.as_ref().map_or(0, Walk::structure));
        [self.epilogue.code.id(), self.result as u64].into_iter().chain(walks).chain(ranks).chain(dtypes)
    }

    pub(super) fn tiles(&self, geometry: &Geometry) -> [usize; 2] {
        [self.size[0].div_ceil(geometry.rows), self.size[1].div_ceil(geometry.columns)]
    }

    /// Elements of the result in all matrices.
    pub(super) fn len(&self) -> usize {
        self.batch.len() * self.size[0] * self.size[1]
    }

    /// The arguments, in the order of [`operands`] and [`finish`].
    pub(super) fn args(&self, geometry: &Geometry, parts: Parts, to: Address) -> Result<Args> {
        let mut args = Args::default();
        let (bytes, [tiles_m, tiles_n]) = (self.dtype.size_bytes() as i64, self.tiles(geometry));
        self.size.iter().for_each(|&n| args.push(n as u64));
        [tiles_m, tiles_n, parts.depth].iter().for_each(|&n| args.push(n as u64));
        args.push((self.len() * self.result.size_bytes()) as u64);
        for stride in [self.a.outer, self.a.k, self.b.outer, self.b.k] {
            args.push_signed(stride as i64 * bytes);
        }
        [&self.a, &self.b].iter().for_each(|x| args.push((!x.is_along_k()).into()));
        // From a thread's element of a slice to its next one, and from slice to slice.
        for (x, side) in [(&self.a, geometry.rows), (&self.b, geometry.columns)] {
            let Geometry { depth, threads, .. } = *geometry;
            let step =
                if x.is_along_k() { x.outer * (threads / depth) as isize } else { x.k * (threads / side) as isize };
            args.push_signed(step as i64 * bytes);
            args.push_signed((x.k * depth as isize) as i64 * bytes);
        }
        [&self.a, &self.b].iter().for_each(|x| args.push(x.address));
        index::push(&mut args, &self.batch, |_| self.dtype.size_bytes());
        [&self.a, &self.b].iter().filter_map(|x| x.walk.as_ref()).for_each(|walk| walk.push(&mut args, bytes as usize));
        args.push(to);
        self.extra.iter().for_each(|x| args.push(address(x)));
        push_numbers(&mut args, self.name, std::slice::from_ref(&self.epilogue), &self.dtypes())?;
        let bytes = |i: usize| if i == 0 { self.result.size_bytes() } else { self.extra[i - 1].dtype().size_bytes() };
        [&self.matrices, &self.columns, &self.rows].iter().for_each(|plan| index::push(&mut args, plan, bytes));
        Ok(args)
    }

    pub(super) fn lowered(&self) -> Result<Lowered> {
        lower(self.name, std::slice::from_ref(&self.epilogue), &self.dtypes())
    }
}

/// A text whose first slots are the skeleton's.
pub(super) fn begin() -> Text {
    let mut text = Text::default();
    (0..FIXED_SLOTS).for_each(|_| drop(text.slots.next()));
    text.declare("    .reg .b32 %m, %n, %depth, %batch, %row0, %column0, %k0;");
    text
}

/// The piece that finds the tile.
pub(super) fn place(geometry: &Geometry) -> String {
    Source::new(include_str!("../../../kernels/matmul_place.ptx"))
        .put("ROWS", geometry.rows.to_string())
        .put("COLUMNS", geometry.columns.to_string())
        .finish()
}

/// Goes to the block's matrices of both operands.
pub(super) fn operands(text: &mut Text, problem: &Problem<'_>) -> String {
    let both = ["%a".to_string(), "%b".to_string()];
    both.iter().for_each(|register| text.wide(register));
    let advance = index::advance(&mut text.slots, problem.batch.rank(), "%batch", &both);
    text.push(&advance);
    text.take()
}

/// The piece that takes the sums through the epilogue to the result; `put` writes a thread's own to shared memory.
pub(super) fn finish(
    text: &mut Text,
    problem: &Problem<'_>,
    lowered: &Lowered,
    geometry: &Geometry,
    put: String,
) -> String {
    text.declare("    .reg .b32 %column, %cell0, %cell, %half, %my_half, %line, %row;");
    let n = problem.extra.len();
    // Loaded only here: while sums are made, registers are scarce.
    let from: Vec<String> = std::iter::once("%to".to_string()).chain(names("e", n)).collect();
    from.iter().for_each(|register| text.wide(register));
    for (i, param) in lowered.params.iter().enumerate() {
        text.number(LowType::of(param.dtype), &format!("%number{i}"));
    }
    for (plan, index) in [(&problem.matrices, "%batch"), (&problem.columns, "%column")] {
        let advance = index::advance(&mut text.slots, plan.rank(), index, &from);
        text.push(&advance);
    }
    text.line("{ .reg .b32 %t_y; .reg .b64 %t_w, %t_s; ld.param.u64 %t_s, [args+48]; mov.u32 %t_y, %ctaid.y;");
    text.line("cvt.u64.u32 %t_w, %t_y; mad.lo.s64 %to, %t_w, %t_s, %to; }");
    let column = text.take();

    let at = names("at", n + 1);
    for (at, from) in at.iter().zip(&from) {
        text.register("b64", at);
        text.line(format!("mov.b64 {at}, {from};"));
    }
    let advance = index::advance(&mut text.slots, problem.rows.rank(), "%row", &at);
    text.push(&advance);
    let (dtypes, inputs) = (problem.dtypes(), names("in", n + 1));
    for (i, (register, &dtype)) in inputs.iter().zip(&dtypes).enumerate() {
        text.value(dtype, register);
        if i > 0 {
            text.push(&emit::load(dtype, register, &at[i]));
        }
    }
    text.push(&shared(problem.dtype.compute(), "%cell", &inputs[0], false));
    text.push(&rounded(problem.product, &inputs[0]));
    text.value(problem.result, "%result");
    let (numbers, outputs) = (names("number", lowered.params.len()), ["%result".to_string()]);
    text.push(&Body { lowered, inputs: &inputs, numbers: &numbers, outputs: &outputs }.text());
    text.push(&emit::store(problem.result, &at[0], "%result"));
    let element = text.take();

    let sum_bytes = problem.dtype.compute().size_bytes().max(4);
    Source::new(include_str!("../../../kernels/matmul_finish.ptx"))
        .put("COLUMNS_MASK", (geometry.columns - 1).to_string())
        .put("COLUMNS_SHIFT", geometry.columns.ilog2().to_string())
        .put("SUM_SHIFT", sum_bytes.ilog2().to_string())
        .put("HALF_SHIFT", (geometry.threads / 2).ilog2().to_string())
        .put("QUARTER_MASK", (geometry.quarter - 1).to_string())
        .put("QUARTER", geometry.quarter.to_string())
        .put("PITCH_BYTES", (geometry.pitch * sum_bytes).to_string())
        .put("LINES_STEP", (geometry.threads / geometry.columns).to_string())
        .put("LINES", (geometry.rows / 2).to_string())
        .put("COLUMN", column)
        .put("PUT", put)
        .put("ELEMENT", element)
        .finish()
}

/// The sum in a register as a number of its dtype, which is what the epilogue sees.
pub(super) fn rounded(dtype: DType, sum: &str) -> String {
    match dtype {
        DType::F16 | DType::BF16 => format!("    {}\n", emit::round_to(dtype, LowType::F32, sum, sum)),
        DType::U8 => format!("    and.b32 {sum}, {sum}, 255;\n"),
        DType::F64 | DType::F32 | DType::I64 | DType::I32 | DType::Bool => String::new(),
    }
}
