//! Products on tensor cores: the text of `matmul_mma.ptx`.

mod side;

use tensor_core::op::ReduceKind;
use tensor_core::{DType, Result};

use self::side::Side;
use super::frame::{self, Geometry, Problem};
use super::gather::{Gather, Tables};
use crate::kernels::Text;
use crate::kernels::reduce::neutral;

/// The tile of a block, by the elements' dtype: slices are 64 bytes deep. The sums' pitch of 8 words more than columns keeps
/// eight rows in different banks.
pub(super) fn geometry(dtype: DType) -> Geometry {
    Geometry { rows: 128, columns: 128, depth: 64 / dtype.size_bytes(), threads: 256, quarter: 64, pitch: PITCH }
}

const PITCH: usize = 136;
/// Bytes of a buffer, which holds a slice of both operands.
const BUFFER_BYTES: usize = 16384;
/// Bytes of half a tile's sums, which take the buffers' place.
const SUMS_BYTES: usize = 64 * PITCH * 4;

/// Elements of a copy of 16 bytes.
pub(super) fn chunk(dtype: DType) -> usize {
    16 / dtype.size_bytes()
}

/// The product that a unit makes, by the factors' dtype.
fn instruction(dtype: DType) -> &'static str {
    match dtype {
        DType::F16 => "m16n8k16.row.col.f32.f16.f16.f32",
        DType::BF16 => "m16n8k16.row.col.f32.bf16.bf16.f32",
        DType::F32 => "m16n8k8.row.col.f32.tf32.tf32.f32",
        DType::F64 | DType::I64 | DType::I32 | DType::U8 | DType::Bool => {
            unreachable!("invariant: tensor cores are chosen for factors of up to 32 bits")
        }
    }
}

/// Products of a warp along M and N.
const TALL: usize = 4;
const WIDE: usize = 4;

/// The entry's name.
pub(super) fn name(problem: &Problem<'_>) -> &'static str {
    match problem.dtype {
        DType::F32 => problem.kernel("matmul_tf32", "conv_tf32"),
        _ => problem.kernel("matmul_mma", "conv_mma"),
    }
}

/// The module.
pub(super) fn text(problem: &Problem<'_>) -> Result<String> {
    let lowered = problem.lowered()?;
    let mut text = frame::begin();
    let operands = frame::operands(&mut text, problem);
    let (dtype, geometry) = (problem.dtype, geometry(problem.dtype));
    let tables = Tables::new(&mut text, problem, &geometry, chunk(dtype));
    let [a, b] = [("a", &problem.a), ("b", &problem.b)].map(|(name, x)| {
        let gather = tables.of(name);
        Side { name, dtype, is_along_k: gather.is_some() || x.is_along_k(), gather }
    });
    let name = name(problem);
    // What is gathered passes through registers: a slice ahead, not two.
    let buffers_bytes = BUFFER_BYTES * if tables.is_empty() { 3 } else { 2 };
    text.declare("    .reg .f32 %c<64>;");
    text.declare("    .reg .b32 %lane, %warp_m, %warp_n, %sums, %a_m<16>, %b_m<8>;");
    text.line("and.b32 %lane, %thread, 31; shr.u32 %warp_m, %thread, 7;");
    text.line("shr.u32 %warp_n, %thread, 5; and.b32 %warp_n, %warp_n, 3;");
    [&a, &b].iter().for_each(|side| side.start(&mut text));
    (0..64).for_each(|i| text.line(neutral(ReduceKind::Sum, DType::F32, &format!("%c{i}"))));
    let start = text.take();
    let (sides, unit) = ([&a, &b], instruction(dtype));
    let [first, second, next, multiplied] = if tables.is_empty() {
        let copies = ["first", "second", "next"].map(|tag| {
            copy(&mut text, sides, tag, buffers_bytes);
            text.take()
        });
        (0..2).for_each(|step| multiply(&mut text, sides, step, unit));
        let [first, second, next] = copies;
        [first, second, next, text.take()]
    } else {
        gathered(&mut text, sides, &tables, unit)
    };
    sums(&mut text);
    for (i, j, pair) in products().flat_map(|(i, j)| [(i, j, 0), (i, j, 1)]) {
        let at = ((i * 16 + pair * 8) * PITCH + j * 8) * 4;
        let c = (i * WIDE + j) * 4 + pair * 2;
        text.line(format!("st.shared.v2.f32 [%sums+{at}], {{%c{c}, %c{}}};", c + 1));
    }
    let put = text.take();
    let finish = frame::finish(&mut text, problem, &lowered, &geometry, put);
    Ok(text
        .skeleton(include_str!("../../../kernels/matmul_mma.ptx"), name)
        .put("TILES_BYTES", buffers_bytes.max(SUMS_BYTES).to_string())
        .put("BUFFERS_BYTES", buffers_bytes.to_string())
        // A gathered operand takes a few registers more than two blocks leave.
        .put("RESIDENT", if tables.is_empty() { "2" } else { "1" })
        .put("DEPTH", geometry.depth.to_string())
        .put("PENDING", if tables.is_empty() { "1" } else { "0" })
        .put("PLACE", frame::place(&geometry))
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
    text.line(format!("mad.lo.u32 %sums, %t_y, {}, %t_x;", PITCH * 4));
    text.line("shr.u32 %t_y, %thread, 5; and.b32 %t_y, %t_y, 3; mad.lo.u32 %sums, %t_y, 128, %sums;");
    text.line("and.b32 %t_y, %thread, 3; mad.lo.u32 %sums, %t_y, 8, %sums; }");
}

/// The pieces where an operand is gathered: loads of the next slice are under way while a step is multiplied.
fn gathered(text: &mut Text, sides: [&Side; 2], tables: &Tables, unit: &str) -> [String; 4] {
    let mut loads: Vec<(&Side, &Gather)> = Vec::new();
    loads.extend(sides.into_iter().filter_map(|side| Some((side, side.gather.as_ref()?))));
    sides[0].declare_loaded(text);
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
        multiply(text, sides, step, unit);
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
    text.line(format!("sub.s32 %to_come, %to_come, {};", geometry(sides[0].dtype).depth));
    if buffers_bytes > 2 * BUFFER_BYTES {
        text.line(format!("add.u32 %in, %in, {BUFFER_BYTES}; setp.eq.u32 %t_p, %in, {buffers_bytes};"));
        text.line("selp.b32 %in, 0, %in, %t_p;");
    }
    text.push(&format!("$asked_{tag}:\n"));
    text.line("cp.async.commit_group; }");
}

/// A step of 32 bytes along K: fragments, then 4×4 products.
fn multiply(text: &mut Text, [a, b]: [&Side; 2], step: usize, unit: &str) {
    (0..TALL).for_each(|i| a.fragment(text, step, i));
    (0..WIDE / 2).for_each(|j| b.fragment(text, step, j));
    for (i, j) in products() {
        let c = (i * WIDE + j) * 4;
        let list = |name: &str, from: usize, n: usize| {
            (from..from + n).map(|k| format!("%{name}{k}")).collect::<Vec<_>>().join(", ")
        };
        text.line(format!(
            "mma.sync.aligned.{unit} {{{c}}}, {{{}}}, {{{}}}, {{{c}}};",
            list("a_m", 4 * i, 4),
            list("b_m", 2 * j, 2),
            c = list("c", c, 4)
        ));
    }
}
