//! Products in registers: the text of `matmul_tile.ptx`.

use tensor_core::expr::lower::LowType;
use tensor_core::op::ReduceKind;
use tensor_core::{DType, Result};

use super::frame::{self, Geometry, Problem};
use super::gather::{Gather, Tables};
use crate::emit::{load_if, register_type};
use crate::kernels::Text;
use crate::kernels::reduce::neutral;

/// Rows and columns of a thread.
const EACH: usize = 8;

/// The tile for elements of this size; a small one gives more blocks.
pub(super) fn geometry(dtype: DType, is_small: bool) -> Geometry {
    let is_wide = dtype.size_bytes() == 8;
    // Eight deep: more would take registers that two blocks of 256 threads do not have.
    let (side, depth) = (if is_wide || is_small { 64 } else { 128 }, 8);
    let vector = if is_wide { 2 } else { 4 };
    let across = side / EACH;
    Geometry { rows: side, columns: side, depth, threads: across * across, quarter: across / 2 * vector, pitch: side }
}

/// Shared memory of one buffer and of all.
fn shared_bytes(g: &Geometry, bytes: usize) -> (usize, usize) {
    let buffer = g.depth * (pitch(g.rows, bytes) + pitch(g.columns, bytes)) * bytes;
    (buffer, (2 * buffer).max(g.rows / 2 * g.pitch * bytes))
}

/// Elements from one K to the next in shared memory: 16 bytes more than there are, against conflicts of banks.
fn pitch(side: usize, bytes: usize) -> usize {
    side + 16 / bytes
}

/// The module.
pub(super) fn text(problem: &Problem<'_>, g: &Geometry) -> Result<String> {
    let lowered = problem.lowered()?;
    let mut text = frame::begin();
    let operands = frame::operands(&mut text, problem);
    let tables = Tables::new(&mut text, problem, g, 1);
    let wide = problem.dtype.compute();
    let ty = LowType::of(wide);
    let bytes = wide.size_bytes().max(4);
    let (buffer, shared) = shared_bytes(g, bytes);
    let [a, b] =
        [("a", g.rows, "%m", "%row0", 0, 56), ("b", g.columns, "%n", "%column0", g.depth * pitch(g.rows, bytes), 72)]
            .map(|(name, side, extent, first, at, slot)| Side {
                name,
                side,
                extent,
                first,
                shared: at * bytes,
                strides: slot,
                flag: if name == "a" { 88 } else { 96 },
                steps: if name == "a" { 104 } else { 120 },
                g: *g,
                bytes,
                dtype: problem.dtype,
                gather: tables.of(name),
            });
    text.declare(&format!("    .reg .{} %c<64>, %x<8>, %y<8>;", register_type(ty)));
    for side in [&a, &b] {
        side.start(&mut text);
    }
    let name = problem.kernel("matmul_tile", "conv_tile");
    threads(&mut text, g, bytes, &b);
    (0..EACH * EACH).for_each(|i| text.line(neutral(ReduceKind::Sum, wide, &format!("%c{i}"))));
    let start = text.take();
    let [first, next] = ["first", "next"].map(|tag| {
        let turn = match tag {
            "first" => tables.start(&mut text),
            // Buffers turn as the tables do.
            _ => tables.slice(&mut text, "setp.lt.s32 %t_p, %flip, 0;"),
        };
        [&a, &b].iter().for_each(|side| side.fetch(&mut text, tag, &turn));
        text.take()
    });
    [&a, &b].iter().for_each(|side| side.put(&mut text));
    let put_slice = text.take();
    multiply(&mut text, g, ty, bytes);
    let multiplied = text.take();
    put_sums(&mut text, g, ty, bytes);
    let put = text.take();
    // Two blocks of 256 threads leave 128 registers; widening 16-bit floats takes a few more, two gathered operands 15.
    let gathers_both = problem.a.walk.is_some() && problem.b.walk.is_some();
    let is_two_resident = g.threads == 256 && problem.dtype.size_bytes() >= 4 && !gathers_both;
    let finish = frame::finish(&mut text, problem, &lowered, g, put);
    Ok(text
        .skeleton(include_str!("../../../kernels/matmul_tile.ptx"), name)
        .put("DEPTH", g.depth.to_string())
        .put("THREADS", g.threads.to_string())
        .put("RESIDENT", if is_two_resident { ".minnctapersm 2" } else { "" })
        .put("ROWS", g.rows.to_string())
        .put("COLUMNS", g.columns.to_string())
        .put("SHARED_BYTES", shared.to_string())
        .put("BUFFER_BYTES", buffer.to_string())
        .put("PLACE", frame::place(g))
        .put("OPERANDS", operands)
        .put("START", start)
        .put("FETCH_FIRST", first)
        .put("PUT_SLICE", put_slice)
        .put("FETCH_NEXT", next)
        .put("MULTIPLY", multiplied)
        .put("FINISH", finish)
        .finish())
}

/// Elements of a load or store of 16 bytes.
fn vector(bytes: usize) -> usize {
    16 / bytes
}

/// Where a thread's rows and columns are: a warp has 4×8 threads, so that it reads few factors.
fn threads(text: &mut Text, g: &Geometry, bytes: usize, b: &Side) {
    let v = vector(bytes);
    text.declare("    .reg .b32 %a_from, %b_from, %sums;");
    place(text, g);
    text.line(format!("mad.lo.u32 %a_from, %t_y, {}, %t_z;", v * bytes));
    text.line(format!("mad.lo.u32 %b_from, %t_x, {}, %t_z; add.u32 %b_from, %b_from, {}; }}", v * bytes, b.shared));
}

/// Opens a scope with a thread's place (`%t_y`, `%t_x`) and the tiles' address `%t_z`: lanes 8 wide, warps side by side.
fn place(text: &mut Text, g: &Geometry) {
    let across = g.columns / EACH;
    text.line("{ .reg .b32 %t_lane, %t_warp, %t_x, %t_y, %t_z;");
    text.line("and.b32 %t_lane, %thread, 31; shr.u32 %t_warp, %thread, 5;");
    text.line(format!("and.b32 %t_x, %t_warp, {}; shl.b32 %t_x, %t_x, 3;", across / 8 - 1));
    text.line("and.b32 %t_z, %t_lane, 7; add.u32 %t_x, %t_x, %t_z;");
    text.line(format!("shr.u32 %t_y, %t_warp, {}; shl.b32 %t_y, %t_y, 2;", (across / 8).ilog2()));
    text.line("shr.u32 %t_z, %t_lane, 3; add.u32 %t_y, %t_y, %t_z; mov.u32 %t_z, tiles;");
}

/// The 8×8 products of every K of a slice.
fn multiply(text: &mut Text, g: &Geometry, ty: LowType, bytes: usize) {
    let (v, groups) = (vector(bytes), EACH / vector(bytes));
    let (t, fma) = (register_type(ty), fma(ty));
    for k in 0..g.depth {
        for (factor, from, side) in [("x", "%a_from", g.rows), ("y", "%b_from", g.columns)] {
            for group in 0..groups {
                let at = (k * pitch(side, bytes) + group * side / groups) * bytes;
                let to: Vec<String> = (0..v).map(|i| format!("%{factor}{}", group * v + i)).collect();
                text.line(format!("ld.shared.v{v}.{t} {{{}}}, [{from}+{at}];", to.join(", ")));
            }
        }
        for i in 0..EACH {
            for j in 0..EACH {
                let c = i * EACH + j;
                text.line(format!("{fma} %c{c}, %x{i}, %y{j}, %c{c};"));
            }
        }
    }
}

/// A thread's sums to the half of the tile in shared memory.
fn put_sums(text: &mut Text, g: &Geometry, ty: LowType, bytes: usize) {
    let (v, groups) = (vector(bytes), EACH / vector(bytes));
    // Its first sum in that half.
    place(text, g);
    text.line(format!("and.b32 %t_y, %t_y, {};", g.columns / EACH / 2 - 1));
    text.line(format!("mad.lo.u32 %sums, %t_y, {}, %t_z;", v * g.pitch * bytes));
    text.line(format!("mad.lo.u32 %sums, %t_x, {}, %sums; }}", v * bytes));
    for i in 0..EACH {
        let line = i / v * g.quarter + i % v;
        for group in 0..groups {
            let at = (line * g.pitch + group * g.columns / groups) * bytes;
            let from: Vec<String> = (0..v).map(|j| format!("%c{}", i * EACH + group * v + j)).collect();
            text.line(format!("st.shared.v{v}.{} [%sums+{at}], {{{}}};", register_type(ty), from.join(", ")));
        }
    }
}

fn fma(ty: LowType) -> &'static str {
    match ty {
        LowType::F32 => "fma.rn.f32",
        LowType::F64 => "fma.rn.f64",
        LowType::I32 => "mad.lo.s32",
        LowType::I64 => "mad.lo.s64",
        LowType::Bool => unreachable!("invariant: core refuses truth values"),
    }
}

/// One operand's way into shared memory.
struct Side {
    name: &'static str,
    /// Its part of the tile along M or N, how long that axis is, and where the tile begins.
    side: usize,
    extent: &'static str,
    first: &'static str,
    /// Where its slices begin in a buffer.
    shared: usize,
    /// The slot of its strides, and of whether neighbours lie along M or N.
    strides: usize,
    flag: usize,
    /// The slot of the steps from a thread's element to its next one and from slice to slice.
    steps: usize,
    g: Geometry,
    bytes: usize,
    dtype: DType,
    gather: Option<Gather>,
}

impl Side {
    /// Elements per thread and slice.
    fn n_each(&self) -> usize {
        self.side * self.g.depth / self.g.threads
    }

    /// A thread's first element, the step to its next ones, and which of them lie inside along M or N.
    fn start(&self, text: &mut Text) {
        let Self { name, side, extent, first, shared, strides, flag, g, bytes, .. } = self;
        let pitch = pitch(*side, *bytes);
        text.declare(&format!("    .reg .b32 %{name}_k, %{name}_put, %{name}_inside;"));
        let ty = register_type(LowType::of(self.dtype));
        text.declare(&format!("    .reg .{ty} %{name}_x<{}>;", self.n_each()));
        text.line("{ .reg .pred %t_p; .reg .b32 %t_o, %t_do, %t_x; .reg .b64 %t_w, %t_so, %t_sk;");
        text.line(format!("ld.param.u32 %t_x, [args+{flag}]; setp.ne.u32 %t_p, %t_x, 0;"));
        text.line(format!("ld.param.u64 %t_so, [args+{strides}]; ld.param.u64 %t_sk, [args+{}];", strides + 8));
        text.line(format!("and.b32 %t_o, %thread, {}; shr.u32 %t_x, %thread, {};", side - 1, g.depth.ilog2()));
        text.line("selp.b32 %t_o, %t_o, %t_x, %t_p;");
        text.line(format!("shr.u32 %{name}_k, %thread, {}; and.b32 %t_x, %thread, {};", side.ilog2(), g.depth - 1));
        text.line(format!("selp.b32 %{name}_k, %{name}_k, %t_x, %t_p;"));
        text.line(format!("selp.b32 %t_do, 0, {}, %t_p;", g.threads / g.depth));
        // Its place in shared memory.
        text.line(format!("mad.lo.u32 %{name}_put, %{name}_k, {pitch}, %t_o; mov.u32 %t_x, tiles;"));
        text.line(format!(
            "mad.lo.u32 %{name}_put, %{name}_put, {bytes}, %t_x; add.u32 %{name}_put, %{name}_put, {shared};"
        ));
        if self.gather.is_some() {
            return text.line("}");
        }
        // Its address.
        text.line(format!(
            "add.u32 %t_o, %t_o, {first}; cvt.u64.u32 %t_w, %t_o; mad.lo.s64 %{name}, %t_w, %t_so, %{name};"
        ));
        text.line(format!(
            "add.u32 %t_x, %k0, %{name}_k; cvt.u64.u32 %t_w, %t_x; mad.lo.s64 %{name}, %t_w, %t_sk, %{name};"
        ));
        text.line(format!("mov.b32 %{name}_inside, 0;"));
        for i in 0..self.n_each() {
            text.line(format!(
                "setp.lt.u32 %t_p, %t_o, {extent}; @%t_p or.b32 %{name}_inside, %{name}_inside, {};",
                1 << i
            ));
            text.line("add.u32 %t_o, %t_o, %t_do;");
        }
        text.line("}");
    }

    /// Loads a slice into registers: zeros beyond the edges.
    fn fetch(&self, text: &mut Text, tag: &str, turn: &str) {
        let Self { name, side, g, dtype, flag, steps, .. } = self;
        if let Some(gather) = &self.gather {
            return self.fetch_gathered(text, gather, turn);
        }
        text.line("{ .reg .pred %t_p; .reg .b32 %t_in, %t_x, %t_dk; .reg .b64 %t_at, %t_step;");
        text.line(format!("mov.b32 %t_in, %{name}_inside; mov.b64 %t_at, %{name};"));
        text.line(format!("setp.ge.u32 %t_p, %left, {}; @%t_p bra $whole_{name}_{tag};", g.depth));
        text.line(format!("ld.param.u32 %t_x, [args+{flag}]; setp.ne.u32 %t_p, %t_x, 0;"));
        text.line(format!("selp.b32 %t_dk, {}, 0, %t_p; mov.b32 %t_x, %{name}_k;", g.threads / side));
        for i in 0..self.n_each() {
            text.line(format!("setp.ge.u32 %t_p, %t_x, %left; @%t_p and.b32 %t_in, %t_in, {};", !(1_i32 << i)));
            text.line("add.u32 %t_x, %t_x, %t_dk;");
        }
        text.push(&format!("$whole_{name}_{tag}:\n"));
        text.line(format!("ld.param.u64 %t_step, [args+{steps}];"));
        for i in 0..self.n_each() {
            text.line(format!("and.b32 %t_x, %t_in, {}; setp.ne.u32 %t_p, %t_x, 0;", 1 << i));
            text.line(load_if(*dtype, "%t_p", &format!("%{name}_x{i}"), "%t_at"));
            text.line("add.s64 %t_at, %t_at, %t_step;");
        }
        text.line(format!("ld.param.u64 %t_step, [args+{}]; add.s64 %{name}, %{name}, %t_step; }}", steps + 8));
    }

    /// The same by the tables.
    fn fetch_gathered(&self, text: &mut Text, gather: &Gather, turn: &str) {
        gather.open(text, turn);
        for i in 0..self.n_each() {
            gather.side(text);
            gather.element(text, 0);
            text.line(load_if(self.dtype, "%t_p", &format!("%{}_x{i}", self.name), "%t_at"));
            gather.step(text);
        }
        text.line("}");
    }

    /// Writes the slice to shared memory.
    fn put(&self, text: &mut Text) {
        let Self { name, side, g, bytes, dtype, flag, .. } = self;
        let steps = [g.threads / side * pitch(*side, *bytes) * bytes, g.threads / g.depth * bytes];
        text.line(format!(
            "{{ .reg .pred %t_p; .reg .b32 %t_x, %t_d; ld.param.u32 %t_x, [args+{flag}]; setp.ne.u32 %t_p, %t_x, 0;"
        ));
        text.line(format!("selp.b32 %t_d, {}, {}, %t_p; mov.b32 %t_x, %{name}_put;", steps[0], steps[1]));
        for i in 0..self.n_each() {
            text.line(format!("st.shared.{} [%t_x], %{name}_x{i};", register_type(LowType::of(*dtype))));
            text.line("add.u32 %t_x, %t_x, %t_d;");
        }
        text.line("}");
    }
}
