//! Products on tensor cores: the text of `matmul_mma.ptx`.

use tensor_core::op::ReduceKind;
use tensor_core::{DType, Result};

use super::frame::{self, Geometry, Problem};
use super::gather::{Gather, Tables};
use crate::kernels::Text;
use crate::kernels::reduce::neutral;

/// The tile of a block: the sums' pitch of 8 words more than columns keeps eight rows in different banks.
pub(super) const GEOMETRY: Geometry =
    Geometry { rows: 128, columns: 128, depth: 32, threads: 256, quarter: 64, pitch: 136 };

/// Bytes of a buffer, which holds a slice of both operands.
const BUFFER_BYTES: usize = 16384;

/// Bytes of half a tile's sums, which take the buffers' place.
const SUMS_BYTES: usize = GEOMETRY.rows / 2 * GEOMETRY.pitch * 4;
/// Elements of a copy of 16 bytes.
const CHUNK: usize = 8;

/// Products of a warp along M and N.
const TALL: usize = 4;
const WIDE: usize = 4;

/// The module.
pub(super) fn text(problem: &Problem<'_>) -> Result<String> {
    let lowered = problem.lowered()?;
    let mut text = frame::begin();
    let operands = frame::operands(&mut text, problem);
    let tables = Tables::new(&mut text, problem, &GEOMETRY, CHUNK);
    let [a, b] = [("a", &problem.a), ("b", &problem.b)].map(|(name, x)| {
        let gather = tables.of(name);
        Side { name, is_along_k: gather.is_some() || x.is_along_k(), gather }
    });
    let name = problem.kernel("matmul_mma", "conv_mma");
    // What is gathered passes through registers: a slice ahead, not two.
    let buffers_bytes = BUFFER_BYTES * if tables.is_empty() { 3 } else { 2 };
    text.declare("    .reg .f32 %c<64>;");
    text.declare("    .reg .b32 %lane, %warp_m, %warp_n, %sums, %a_m<16>, %b_m<8>;");
    text.line("and.b32 %lane, %thread, 31; shr.u32 %warp_m, %thread, 7;");
    text.line("shr.u32 %warp_n, %thread, 5; and.b32 %warp_n, %warp_n, 3;");
    [&a, &b].iter().for_each(|side| side.start(&mut text));
    (0..64).for_each(|i| text.line(neutral(ReduceKind::Sum, DType::F32, &format!("%c{i}"))));
    let start = text.take();
    let ty = if problem.dtype == DType::F16 { "f16" } else { "bf16" };
    let sides = [&a, &b];
    let [first, second, next, multiplied] = if tables.is_empty() {
        let copies = ["first", "second", "next"].map(|tag| {
            copy(&mut text, sides, tag, buffers_bytes);
            text.take()
        });
        (0..2).for_each(|step| multiply(&mut text, sides, step, ty));
        let [first, second, next] = copies;
        [first, second, next, text.take()]
    } else {
        gathered(&mut text, sides, &tables, ty)
    };
    sums(&mut text);
    for (i, j, pair) in products().flat_map(|(i, j)| [(i, j, 0), (i, j, 1)]) {
        let at = ((i * 16 + pair * 8) * GEOMETRY.pitch + j * 8) * 4;
        let c = (i * WIDE + j) * 4 + pair * 2;
        text.line(format!("st.shared.v2.f32 [%sums+{at}], {{%c{c}, %c{}}};", c + 1));
    }
    let put = text.take();
    let finish = frame::finish(&mut text, problem, &lowered, &GEOMETRY, put);
    Ok(text
        .skeleton(include_str!("../../../kernels/matmul_mma.ptx"), name)
        .put("TILES_BYTES", buffers_bytes.max(SUMS_BYTES).to_string())
        .put("BUFFERS_BYTES", buffers_bytes.to_string())
        // A gathered operand takes a few registers more than two blocks leave.
        .put("RESIDENT", if tables.is_empty() { "2" } else { "1" })
        .put("PENDING", if tables.is_empty() { "1" } else { "0" })
        .put("PLACE", frame::place(&GEOMETRY))
        .put("OPERANDS", operands)
        .put("START", start)
        .put("COPY_FIRST", first)
        .put("COPY_SECOND", second)
        .put("COPY_NEXT", next)
        .put("MULTIPLY", multiplied)
        .put("FINISH", finish)
        .finish())
}

fn products() -> impl Iterator<Item = (usize, usize)> {
    (0..TALL).flat_map(|i| (0..WIDE).map(move |j| (i, j)))
}

/// Where a thread's sums go in the half of the tile: rows of its group of four lanes, pairs of columns.
fn sums(text: &mut Text) {
    text.line("{ .reg .b32 %t_x, %t_y; mov.u32 %t_x, tiles; shr.u32 %t_y, %thread, 2; and.b32 %t_y, %t_y, 7;");
    text.line(format!("mad.lo.u32 %sums, %t_y, {}, %t_x;", GEOMETRY.pitch * 4));
    text.line("shr.u32 %t_y, %thread, 5; and.b32 %t_y, %t_y, 3; mad.lo.u32 %sums, %t_y, 128, %sums;");
    text.line("and.b32 %t_y, %thread, 3; mad.lo.u32 %sums, %t_y, 8, %sums; }");
}

/// The pieces where an operand is gathered: loads of the next slice are under way while a step is multiplied.
fn gathered(text: &mut Text, sides: [&Side; 2], tables: &Tables, ty: &str) -> [String; 4] {
    let mut loads: Vec<(&Side, &Gather)> = Vec::new();
    loads.extend(sides.into_iter().filter_map(|side| Some((side, side.gather.as_ref()?))));
    text.declare("    .reg .b16 %loaded<16>;");
    let turn = tables.start(text);
    copy(text, sides, "first", 2 * BUFFER_BYTES);
    for (side, gather) in &loads {
        side.load(text, gather, &turn);
        side.put(text);
    }
    let other = format!("xor.b32 %in, %in, {BUFFER_BYTES};");
    text.line(&other);
    let first = text.take();
    // Buffers turn as the tables do.
    let turn = tables.slice(text, "setp.eq.u32 %t_p, %in, 0;");
    copy(text, sides, "next", 2 * BUFFER_BYTES);
    let next = text.take();
    for step in 0..2 {
        // Of one operand the loads have both steps to arrive.
        let under_way = loads.get(step);
        if let Some((side, gather)) = under_way {
            side.load(text, gather, &turn);
        }
        multiply(text, sides, step, ty);
        let arrived = if loads.len() == 1 { loads.get(1 - step) } else { under_way };
        if let Some((side, _)) = arrived {
            side.put(text);
        }
    }
    text.line(&other);
    [first, String::new(), next, text.take()]
}

/// Asks for the next slice of the operands that are copied, if there is one, and counts it as a group in any case.
fn copy(text: &mut Text, sides: [&Side; 2], tag: &str, buffers_bytes: usize) {
    if sides.iter().all(|side| side.gather.is_some()) {
        return;
    }
    text.line("{ .reg .pred %t_p; .reg .b32 %t_x, %t_to;");
    text.line(format!("setp.le.s32 %t_p, %to_come, 0; @%t_p bra $asked_{tag};"));
    for side in sides.into_iter().filter(|side| side.gather.is_none()) {
        side.copy(text);
    }
    text.line("sub.s32 %to_come, %to_come, 32;");
    if buffers_bytes > 2 * BUFFER_BYTES {
        text.line(format!("add.u32 %in, %in, {BUFFER_BYTES}; setp.eq.u32 %t_p, %in, {buffers_bytes};"));
        text.line("selp.b32 %in, 0, %in, %t_p;");
    }
    text.push(&format!("$asked_{tag}:\n"));
    text.line("cp.async.commit_group; }");
}

/// A step of 16 along K: fragments by ldmatrix, then 4×4 products.
fn multiply(text: &mut Text, [a, b]: [&Side; 2], step: usize, ty: &str) {
    (0..TALL).for_each(|i| a.fragment(text, step, i));
    (0..WIDE / 2).for_each(|j| b.fragment(text, step, j));
    for (i, j) in products() {
        let c = (i * WIDE + j) * 4;
        let list = |name: &str, from: usize, n: usize| {
            (from..from + n).map(|k| format!("%{name}{k}")).collect::<Vec<_>>().join(", ")
        };
        text.line(format!(
            "mma.sync.aligned.m16n8k16.row.col.f32.{ty}.{ty}.f32 {{{c}}}, {{{}}}, {{{}}}, {{{c}}};",
            list("a_m", 4 * i, 4),
            list("b_m", 2 * j, 2),
            c = list("c", c, 4)
        ));
    }
}

/// One operand's way through shared memory to the tensor cores.
struct Side {
    name: &'static str,
    is_along_k: bool,
    gather: Option<Gather>,
}

impl Side {
    fn is_a(&self) -> bool {
        self.name == "a"
    }

    /// What a thread copies, two chunks of 16 bytes of a slice, and from where a lane's matrix rows are read.
    fn start(&self, text: &mut Text) {
        let name = self.name;
        let (extent, first, strides, base) =
            if self.is_a() { ("%m", "%row0", 56, 0) } else { ("%n", "%column0", 72, BUFFER_BYTES / 2) };
        if self.gather.is_some() {
            return self.start_gathered(text, base);
        }
        text.declare(&format!("    .reg .b32 %{name}_put, %{name}_k, %{name}_most0, %{name}_most1, %{name}_lane;"));
        text.declare(&format!("    .reg .b64 %{name}_second, %{name}_next;"));
        text.line("{ .reg .pred %t_p; .reg .b32 %t_o, %t_c, %t_x, %t_y; .reg .b64 %t_w, %t_s;");
        if self.is_along_k {
            // A row of K is 4 chunks, 64 bytes: two rows fill the banks, so the chunk's place turns with every second row.
            text.line("and.b32 %t_c, %thread, 3; shr.u32 %t_o, %thread, 2;");
            text.line("shr.u32 %t_x, %t_o, 1; and.b32 %t_x, %t_x, 3; xor.b32 %t_x, %t_x, %t_c; shl.b32 %t_x, %t_x, 4;");
            text.line(format!("mad.lo.u32 %{name}_put, %t_o, 64, %t_x;"));
            text.line(format!("ld.param.u64 %t_s, [args+{strides}]; add.u32 %t_o, %t_o, {first};"));
            text.line(format!("cvt.u64.u32 %t_w, %t_o; mad.lo.s64 %{name}, %t_w, %t_s, %{name};"));
            text.line(format!("shl.b32 %{name}_k, %t_c, 3; add.u32 %t_x, %{name}_k, %k0;"));
            text.line(format!("mul.wide.u32 %t_w, %t_x, 2; add.s64 %{name}, %{name}, %t_w;"));
            text.line(format!("shl.b64 %{name}_second, %t_s, 6; mov.b64 %{name}_next, 64;"));
            text.line(format!("setp.lt.u32 %t_p, %t_o, {extent}; selp.b32 %{name}_most0, 16, 0, %t_p;"));
            text.line(format!(
                "add.u32 %t_o, %t_o, 64; setp.lt.u32 %t_p, %t_o, {extent}; selp.b32 %{name}_most1, 16, 0, %t_p;"
            ));
        } else {
            // A row of the result's axis is 16 chunks, 256 bytes: the chunk's place turns with every row.
            text.line(format!("and.b32 %t_c, %thread, 15; shr.u32 %{name}_k, %thread, 4;"));
            text.line(format!("and.b32 %t_x, %{name}_k, 7; xor.b32 %t_x, %t_x, %t_c; shl.b32 %t_x, %t_x, 4;"));
            text.line(format!("mad.lo.u32 %{name}_put, %{name}_k, 256, %t_x;"));
            text.line(format!("ld.param.u64 %t_s, [args+{}]; add.u32 %t_x, %{name}_k, %k0;", strides + 8));
            text.line(format!("cvt.u64.u32 %t_w, %t_x; mad.lo.s64 %{name}, %t_w, %t_s, %{name};"));
            text.line(format!(
                "mad.lo.u32 %t_o, %t_c, 8, {first}; mul.wide.u32 %t_w, %t_o, 2; add.s64 %{name}, %{name}, %t_w;"
            ));
            text.line(format!("shl.b64 %{name}_second, %t_s, 4; shl.b64 %{name}_next, %t_s, 5;"));
            text.line(format!("sub.s32 %t_x, {extent}, %t_o; shl.b32 %t_x, %t_x, 1; max.s32 %t_x, %t_x, 0;"));
            text.line(format!("min.s32 %{name}_most0, %t_x, 16; mov.b32 %{name}_most1, %{name}_most0;"));
        }
        text.line(format!("mov.u32 %t_x, tiles; add.u32 %t_x, %t_x, {base}; add.u32 %{name}_put, %{name}_put, %t_x;"));
        self.lane(text);
        text.line("}");
    }

    /// What a thread gathers, two chunks of a slice: of one row of K if lanes go along the other axis, else of two rows.
    fn start_gathered(&self, text: &mut Text, base: usize) {
        let name = self.name;
        text.declare(&format!("    .reg .b32 %{name}_put<2>, %{name}_lane;"));
        text.line("{ .reg .pred %t_p; .reg .b32 %t_o, %t_c, %t_x, %t_y;");
        text.line(format!(
            "ld.param.u32 %t_x, [args+{}]; setp.ne.u32 %t_p, %t_x, 0;",
            if self.is_a() { 88 } else { 96 }
        ));
        text.line("and.b32 %t_o, %thread, 127; shr.u32 %t_x, %thread, 2; selp.b32 %t_o, %t_o, %t_x, %t_p;");
        text.line("shr.u32 %t_c, %thread, 7; and.b32 %t_x, %thread, 3; selp.b32 %t_c, %t_c, %t_x, %t_p;");
        text.line("shr.u32 %t_x, %t_o, 1; and.b32 %t_x, %t_x, 3; xor.b32 %t_x, %t_x, %t_c; shl.b32 %t_x, %t_x, 4;");
        text.line(format!("mad.lo.u32 %t_o, %t_o, 64, %t_x; mov.u32 %t_x, tiles; add.u32 %t_x, %t_x, {base};"));
        text.line(format!("add.u32 %{name}_put0, %t_o, %t_x; xor.b32 %t_y, %t_o, 32; add.u32 %t_o, %t_o, 4096;"));
        text.line(format!("selp.b32 %t_y, %t_y, %t_o, %t_p; add.u32 %{name}_put1, %t_y, %t_x;"));
        self.lane(text);
        text.line("}");
    }

    /// Loads a thread's two chunks.
    fn load(&self, text: &mut Text, gather: &Gather, turn: &str) {
        gather.open(text, turn);
        for chunk in 0..2 {
            gather.side(text);
            for k in 0..CHUNK {
                let to = format!("%loaded{}", chunk * CHUNK + k);
                gather.element(text, k);
                text.line(format!("mov.b16 {to}, 0; @%t_p ld.global.b16 {to}, [%t_at];"));
            }
            gather.step(text);
        }
        text.line("}");
    }

    /// Writes the chunks to the next buffer.
    fn put(&self, text: &mut Text) {
        text.line("{ .reg .b32 %t_to, %t_w<4>;");
        for chunk in 0..2 {
            for word in 0..4 {
                let low = chunk * CHUNK + 2 * word;
                text.line(format!("mov.b32 %t_w{word}, {{%loaded{low}, %loaded{}}};", low + 1));
            }
            text.line(format!("add.u32 %t_to, %{}_put{chunk}, %in;", self.name));
            text.line("st.shared.v4.b32 [%t_to], {%t_w0, %t_w1, %t_w2, %t_w3};");
        }
        text.line("}");
    }

    /// The row of 16 bytes that a lane names to ldmatrix: of matrix lane/8, which is one of 2×2 along K and the other axis.
    fn lane(&self, text: &mut Text) {
        let name = self.name;
        let (warp, side, by_o, by_k) = if self.is_a() { ("%warp_m", 64, 3, 4) } else { ("%warp_n", 32, 4, 3) };
        text.line(format!(
            "{{ .reg .b32 %t_r, %t_ho, %t_hk; and.b32 %t_r, %lane, 7; shr.u32 %t_ho, %lane, {by_o}; and.b32 %t_ho, %t_ho, 1; \
             shr.u32 %t_hk, %lane, {by_k}; and.b32 %t_hk, %t_hk, 1;"
        ));
        if self.is_along_k {
            text.line(format!("mad.lo.u32 %t_y, {warp}, {side}, %t_r; mad.lo.u32 %t_y, %t_ho, 8, %t_y;"));
            text.line("shr.u32 %t_c, %t_r, 1; xor.b32 %t_c, %t_c, %t_hk; shl.b32 %t_c, %t_c, 4;");
            text.line(format!("mad.lo.u32 %{name}_lane, %t_y, 64, %t_c;"));
        } else {
            text.line("mad.lo.u32 %t_y, %t_hk, 8, %t_r;");
            text.line(format!(
                "mad.lo.u32 %t_c, {warp}, {}, %t_ho; xor.b32 %t_c, %t_c, %t_r; shl.b32 %t_c, %t_c, 4;",
                side / 8
            ));
            text.line(format!("mad.lo.u32 %{name}_lane, %t_y, 256, %t_c;"));
        }
        text.line(format!("add.u32 %{name}_lane, %{name}_lane, %t_x; }}"));
    }

    /// Two copies of 16 bytes, of which those beyond an edge are zeros.
    fn copy(&self, text: &mut Text) {
        let name = self.name;
        text.line(format!(
            "{{ .reg .b64 %t_at; add.u32 %t_to, %{name}_put, %in; add.s64 %t_at, %{name}, %{name}_second;"
        ));
        for (i, from) in [format!("%{name}"), "%t_at".into()].iter().enumerate() {
            if self.is_along_k {
                text.line(format!("sub.s32 %t_x, %to_come, %{name}_k; shl.b32 %t_x, %t_x, 1; max.s32 %t_x, %t_x, 0;"));
                text.line(format!("min.s32 %t_x, %t_x, %{name}_most{i};"));
            } else {
                text.line(format!("add.s32 %t_x, %{name}_k, {}; setp.lt.s32 %t_p, %t_x, %to_come;", 16 * i));
                text.line(format!("selp.b32 %t_x, %{name}_most{i}, 0, %t_p;"));
            }
            text.line(format!("cp.async.cg.shared.global [%t_to+{}], [{from}], 16, %t_x;", 4096 * i));
        }
        text.line(format!("add.s64 %{name}, %{name}, %{name}_next; }}"));
    }

    /// Four matrices of 8×8: 16 along K by 16 along the other axis.
    fn fragment(&self, text: &mut Text, step: usize, i: usize) {
        let name = self.name;
        // The turned chunk: stepping by two chunks flips bits of its place.
        let (flip, at, trans) =
            if self.is_along_k { (32 * step, 1024 * i, "") } else { (32 * i, 4096 * step, ".trans") };
        let to: Vec<String> = (4 * i..4 * i + 4).map(|k| format!("%{name}_m{k}")).collect();
        text.line(format!("{{ .reg .b32 %t_x; xor.b32 %t_x, %{name}_lane, {flip}; add.u32 %t_x, %t_x, %out;"));
        text.line(format!("ldmatrix.sync.aligned.m8n8.x4{trans}.shared.b16 {{{}}}, [%t_x+{at}]; }}", to.join(", ")));
    }
}
