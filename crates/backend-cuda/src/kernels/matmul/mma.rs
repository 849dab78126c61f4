//! Products on tensor cores: the text of `matmul_mma.ptx`.

use tensor_core::op::ReduceKind;
use tensor_core::{DType, Result};

use super::frame::{self, Geometry, Problem};
use crate::kernels::Text;
use crate::kernels::reduce::neutral;

/// The tile of a block: the sums' pitch of 8 words more than columns keeps eight rows in different banks.
pub(super) const GEOMETRY: Geometry =
    Geometry { rows: 128, columns: 128, depth: 32, threads: 256, quarter: 64, pitch: 136 };

/// Bytes of a buffer, which holds a slice of both operands.
const BUFFER_BYTES: usize = 16384;

/// Products of a warp along M and N.
const TALL: usize = 4;
const WIDE: usize = 4;

/// The module.
pub(super) fn text(problem: &Problem<'_>) -> Result<String> {
    let lowered = problem.lowered()?;
    let mut text = frame::begin();
    let operands = frame::operands(&mut text, problem);
    let a = Side::new("a", problem.a.is_along_k());
    let b = Side::new("b", problem.b.is_along_k());
    text.declare("    .reg .f32 %c<64>;");
    text.declare("    .reg .b32 %lane, %warp_m, %warp_n, %sums, %a_m<16>, %b_m<8>;");
    text.line("and.b32 %lane, %thread, 31; shr.u32 %warp_m, %thread, 7;");
    text.line("shr.u32 %warp_n, %thread, 5; and.b32 %warp_n, %warp_n, 3; mov.b32 %my_half, %warp_m;");
    [&a, &b].iter().for_each(|side| side.start(&mut text));
    sums(&mut text);
    (0..64).for_each(|i| text.line(neutral(ReduceKind::Sum, DType::F32, &format!("%c{i}"))));
    let start = text.take();
    let [first, second, next] = ["first", "second", "next"].map(|tag| {
        copy(&mut text, [&a, &b], tag);
        text.take()
    });
    multiply(&mut text, [&a, &b], if problem.dtype == DType::F16 { "f16" } else { "bf16" });
    let multiplied = text.take();
    for (i, j, pair) in products().flat_map(|(i, j)| [(i, j, 0), (i, j, 1)]) {
        let at = ((i * 16 + pair * 8) * GEOMETRY.pitch + j * 8) * 4;
        let c = (i * WIDE + j) * 4 + pair * 2;
        text.line(format!("st.shared.v2.f32 [%sums+{at}], {{%c{c}, %c{}}};", c + 1));
    }
    let put = text.take();
    let finish = frame::finish(&mut text, problem, &lowered, &GEOMETRY, put);
    Ok(text
        .skeleton(include_str!("../../../kernels/matmul_mma.ptx"), "matmul_mma")
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
    text.line("{ .reg .b32 %t_x, %t_y; mov.u32 %t_x, tiles; shr.u32 %t_y, %lane, 2;");
    text.line(format!("mad.lo.u32 %sums, %t_y, {}, %t_x;", GEOMETRY.pitch * 4));
    text.line("mad.lo.u32 %sums, %warp_n, 128, %sums; and.b32 %t_y, %lane, 3; mad.lo.u32 %sums, %t_y, 8, %sums; }");
}

/// Asks for the next slice of both operands, if there is one, and counts it as a group in any case.
fn copy(text: &mut Text, sides: [&Side; 2], tag: &str) {
    text.line("{ .reg .pred %t_p; .reg .b32 %t_x, %t_to;");
    text.line(format!("setp.le.s32 %t_p, %to_come, 0; @%t_p bra $asked_{tag};"));
    for side in sides {
        side.copy(text);
    }
    text.line("sub.s32 %to_come, %to_come, 32;");
    text.line(format!(
        "add.u32 %in, %in, {BUFFER_BYTES}; setp.eq.u32 %t_p, %in, {}; selp.b32 %in, 0, %in, %t_p;",
        3 * BUFFER_BYTES
    ));
    text.push(&format!("$asked_{tag}:\n"));
    text.line("cp.async.commit_group; }");
}

/// Two steps of 16 along K: fragments by ldmatrix, then 4×4 products.
fn multiply(text: &mut Text, [a, b]: [&Side; 2], ty: &str) {
    for step in 0..2 {
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
}

/// One operand's way through shared memory to the tensor cores.
struct Side {
    name: &'static str,
    is_along_k: bool,
}

impl Side {
    fn new(name: &'static str, is_along_k: bool) -> Self {
        Self { name, is_along_k }
    }

    fn is_a(&self) -> bool {
        self.name == "a"
    }

    /// What a thread copies, two chunks of 16 bytes of a slice, and from where a lane's matrix rows are read.
    fn start(&self, text: &mut Text) {
        let name = self.name;
        let (extent, first, strides, base) =
            if self.is_a() { ("%m", "%row0", 56, 0) } else { ("%n", "%column0", 72, BUFFER_BYTES / 2) };
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
