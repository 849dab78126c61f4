//! Operands along several axes that may reach outside, as the windows of a convolution do: the tables that a block keeps.
//!
//! An element's address and its coordinates are sums of a part that follows from its place along M or N and one that
//! follows from K. Both parts are entries of tables in shared memory: of the tile's side written once, of K slice by slice,
//! two slices ahead. What lies outside, in the operand or beyond the edges of the product, counts as zero.

use smallvec::{SmallVec, smallvec};
use tensor_core::plan::Plan;

use super::frame::{Geometry, Problem};
use crate::args::{Args, Slots};
use crate::index;
use crate::kernels::Text;

/// Coordinates that an entry has room for, at 32 bytes: tables and tiles fit in 48 KiB.
pub(super) const MAX_EDGES: usize = 6;
/// Sums of coordinates of at most so much stay apart from [`OUTSIDE`].
pub(super) const MAX_COORDINATE: usize = 1 << 29;
/// A coordinate that no sum brings inside.
const OUTSIDE: u32 = 1 << 30;

/// How an operand is read.
#[derive(Clone, Debug)]
pub(super) struct Walk {
    /// Along M or N, and along K: elements from one to the next, and steps of each coordinate.
    outer: Plan,
    k: Plan,
    /// Of each coordinate: where it begins, and the first one outside.
    edges: SmallVec<[(isize, usize); 3]>,
}

/// One coordinate: axis `axis` of both lists of axes moves it by `steps`.
pub(super) struct Coordinate {
    pub(super) axis: usize,
    pub(super) steps: [isize; 2],
    pub(super) start: isize,
    pub(super) below: usize,
}

impl Coordinate {
    /// Whether it leads outside.
    fn matters(&self, sides: [&[(usize, isize)]; 2]) -> bool {
        let reach = self.steps.iter().zip(sides).map(|(step, axes)| step * (axes[self.axis].0 as isize - 1).max(0));
        let (low, high) = reach.fold((self.start, self.start), |(low, high), n| (low + n.min(0), high + n.max(0)));
        low < 0 || high >= self.below as isize
    }
}

impl Walk {
    /// Axes along M or N and along K, outermost first, each with the elements from one to the next.
    pub(super) fn new(outer: &[(usize, isize)], k: &[(usize, isize)], coordinates: &[Coordinate]) -> Self {
        let coordinates: SmallVec<[&Coordinate; 3]> = coordinates.iter().filter(|c| c.matters([outer, k])).collect();
        let plan = |axes: &[(usize, isize)], side: usize| {
            let steps = |c: &&Coordinate| {
                let mut steps: SmallVec<[isize; 4]> = smallvec![0; axes.len()];
                steps[c.axis] = c.steps[side];
                steps
            };
            let strides = std::iter::once(axes.iter().map(|axis| axis.1).collect());
            let dims: SmallVec<[usize; 8]> = axes.iter().map(|axis| axis.0).collect();
            Plan::of(&dims, strides.chain(coordinates.iter().map(steps)).collect())
        };
        let edges = coordinates.iter().map(|c| (c.start, c.below)).collect();
        Self { outer: plan(outer, 0), k: plan(k, 1), edges }
    }

    /// The strides along M or N and along K, if there are no more to it.
    pub(super) fn strides(&self) -> Option<[isize; 2]> {
        let is_plain = self.edges.is_empty() && self.outer.rank() == 1 && self.k.rank() == 1;
        is_plain.then(|| [&self.outer, &self.k].map(|plan| plan.strides[0][0]))
    }

    /// Whether no coordinate leads outside.
    pub(super) fn is_inside(&self) -> bool {
        self.edges.is_empty()
    }

    /// Whether threads side by side read neighbours along K.
    pub(super) fn is_along_k(&self) -> bool {
        let inner = |plan: &Plan| {
            let last = plan.rank() - 1;
            (plan.dims[last] < 8, plan.strides[0][last].unsigned_abs())
        };
        inner(&self.k) < inner(&self.outer)
    }

    /// What the text depends on.
    pub(super) fn structure(&self) -> u64 {
        (self.outer.rank() << 16 | self.k.rank() << 8 | (self.edges.len() + 1)) as u64
    }

    /// The parameters that [`Gather::new`] counts.
    pub(super) fn push(&self, args: &mut Args, element_bytes: usize) {
        let bytes = |i: usize| if i == 0 { element_bytes } else { 1 };
        index::push(args, &self.outer, bytes);
        index::push(args, &self.k, bytes);
        for &(start, below) in &self.edges {
            args.push_signed(start as i64);
            args.push(below as u64);
        }
    }
}

/// The tables of a block.
pub(super) struct Tables {
    sides: SmallVec<[Gather; 2]>,
    depth: usize,
    chunk: usize,
    /// Bytes of an entry: the address, then coordinates.
    entry: usize,
}

/// One operand's tables.
#[derive(Clone)]
pub(super) struct Gather {
    name: &'static str,
    ranks: [usize; 2],
    /// Where the parameters of both plans and the edges begin.
    slots: [Slots; 3],
    n_edges: usize,
    /// The side of the tile, its length, and where the tile begins.
    side: usize,
    extent: &'static str,
    first: &'static str,
    /// The first thread that writes the side's table, and how many there are.
    thread: usize,
    n_threads: usize,
    /// The slot of whether threads go along the side first, and how many neighbours along K each takes.
    flag: usize,
    chunk: usize,
    depth: usize,
    /// Where the tables begin: of the side, and of K.
    at: [usize; 2],
    entry: usize,
    /// From the one table of K to the other.
    turn: usize,
}

/// Lines of a table of K from one gap to the next, against conflicts of banks: a thread's neighbours lie between two.
fn gap(chunk: usize) -> usize {
    if chunk == 1 { 8 } else { chunk }
}

/// Where a slice's line along K is in its table.
fn line(k: usize, chunk: usize) -> usize {
    k + k / gap(chunk)
}

impl Tables {
    /// Counts the parameters of operands that are gathered and declares the tables.
    ///
    /// A thread takes `chunk` neighbours along K at a time.
    pub(super) fn new(text: &mut Text, problem: &Problem<'_>, g: &Geometry, chunk: usize) -> Self {
        let walks = || {
            [(&problem.a, true), (&problem.b, false)].into_iter().filter_map(|(x, is_a)| Some((x.walk.as_ref()?, is_a)))
        };
        // An entry says at least whether it is outside.
        let words = walks().map(|(walk, _)| 2 + walk.edges.len().max(1)).max().unwrap_or(0);
        let entry = words.next_multiple_of(4) * 4;
        let (mut at, lines) = (0, line(g.depth, chunk));
        let mut sides: SmallVec<[Gather; 2]> = SmallVec::new();
        for (walk, is_a) in walks() {
            let ranks = [walk.outer.rank(), walk.k.rank()];
            let registers = vec![String::new(); 1 + walk.edges.len()];
            let outer = text.slots.clone();
            let _ = index::advance(&mut text.slots, ranks[0], "", &registers);
            let k = text.slots.clone();
            let _ = index::advance(&mut text.slots, ranks[1], "", &registers);
            let edges = text.slots.clone();
            (0..2 * walk.edges.len()).for_each(|_| drop(text.slots.next()));
            let (name, side, extent, first, flag) =
                if is_a { ("a", g.rows, "%m", "%row0", 88) } else { ("b", g.columns, "%n", "%column0", 96) };
            sides.push(Gather {
                name,
                ranks,
                slots: [outer, k, edges],
                n_edges: walk.edges.len(),
                side,
                extent,
                first,
                thread: if is_a { 0 } else { g.threads - side },
                n_threads: g.threads,
                flag,
                chunk,
                depth: g.depth,
                at: [at, 0],
                entry,
                turn: 0,
            });
            at += side * entry;
        }
        let turn = sides.len() * lines * entry;
        for (i, side) in sides.iter_mut().enumerate() {
            (side.at[1], side.turn) = (at + i * lines * entry, turn);
        }
        if !sides.is_empty() {
            text.declare(&format!("    .shared .align 16 .b8 tables[{}];", at + 2 * turn));
            text.declare("    .reg .b32 %next_k;");
        }
        Self { sides, depth: g.depth, chunk, entry }
    }

    /// Whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.sides.is_empty()
    }

    /// The table of an operand.
    pub(super) fn of(&self, name: &str) -> Option<Gather> {
        self.sides.iter().find(|side| side.name == name).cloned()
    }

    /// Writes the tables of the tile's sides, and those of the first two slices; gives where the first one is, for
    /// [`Gather::open`].
    pub(super) fn start(&self, text: &mut Text) -> String {
        let Some(first) = self.sides.first() else { return String::new() };
        for side in &self.sides {
            let Gather { name, side: n, extent, first, thread, at, entry, .. } = side;
            text.line("{ .reg .pred %t_in; .reg .b32 %t_o, %t_to;");
            text.line(format!(
                "sub.u32 %t_o, %thread, {thread}; setp.ge.u32 %t_in, %t_o, {n}; @%t_in bra $side_{name};"
            ));
            text.line(format!("mov.u32 %t_to, tables; mad.lo.u32 %t_to, %t_o, {entry}, %t_to;"));
            text.line(format!("add.u32 %t_o, %t_o, {first}; setp.lt.u32 %t_in, %t_o, {extent};"));
            side.put(text, 0, "%t_o", at[0]);
            text.push(&format!("$side_{name}:\n    }}\n"));
        }
        text.line("add.u32 %next_k, %k0, %thread;");
        self.write(text, "first", "mov.b32 %t_x, 0;");
        self.write(text, "second", &format!("mov.b32 %t_x, {};", first.turn));
        text.line("bar.sync 0;");
        "mov.b32 %t_x, 0;".into()
    }

    /// Writes the table of the slice after the next, and gives where the next one's is. `turn` sets `%t_p`: every second
    /// time it holds.
    pub(super) fn slice(&self, text: &mut Text, turn: &str) -> String {
        let Some(first) = self.sides.first() else { return String::new() };
        let at = |[holds, else_]: [usize; 2]| format!("{turn} selp.b32 %t_x, {holds}, {else_}, %t_p;");
        self.write(text, "next", &at([first.turn, 0]));
        at([0, first.turn])
    }

    /// Writes the table of a slice where `at` says.
    fn write(&self, text: &mut Text, tag: &str, at: &str) {
        text.line("{ .reg .pred %t_in, %t_p; .reg .b32 %t_to, %t_x, %t_t; mov.u32 %t_t, %tid.x;");
        text.line(format!("setp.ge.u32 %t_in, %t_t, {}; @%t_in bra $line_{tag};", self.depth));
        text.line(at);
        text.line(format!(
            "shr.u32 %t_to, %t_t, {}; add.u32 %t_to, %t_to, %t_t; mad.lo.u32 %t_to, %t_to, {}, %t_x;",
            gap(self.chunk).ilog2(),
            self.entry
        ));
        text.line("mov.u32 %t_x, tables; add.u32 %t_to, %t_to, %t_x;");
        // The end of this part of K.
        text.line("{ .reg .b32 %t_n; mov.u32 %t_x, %ctaid.y; ld.param.u32 %t_n, [args+40]; mad.lo.u32 %t_x, %t_x, %t_n, %t_n;");
        text.line("ld.param.u32 %t_n, [args+16]; min.u32 %t_x, %t_x, %t_n; setp.lt.u32 %t_in, %next_k, %t_x; }");
        for side in &self.sides {
            side.put(text, 1, "%next_k", side.at[1]);
        }
        text.line(format!("add.u32 %next_k, %next_k, {};", self.depth));
        text.push(&format!("$line_{tag}:\n    }}\n"));
    }
}

impl Gather {
    /// Coordinates of an entry: one at least.
    fn n_coordinates(&self) -> usize {
        self.n_edges.max(1)
    }

    /// Writes the entry of an index to `%t_to`; outside where `%t_in` does not hold.
    fn put(&self, text: &mut Text, plan: usize, index: &str, at: usize) {
        let n = self.n_coordinates();
        text.line(format!("{{ .reg .b64 %t_w, %t_q<{n}>; .reg .b32 %t_e<{}>;", self.entry / 4));
        text.line("mov.b64 %t_w, 0;");
        let (mut slots, mut edges) = (self.slots[plan].clone(), self.slots[2].clone());
        let registers: Vec<String> =
            std::iter::once("%t_w".into()).chain((0..self.n_edges).map(|e| format!("%t_q{e}"))).collect();
        for e in 0..n {
            let start = if plan == 0 && e < self.n_edges { edges.next() } else { String::new() };
            let _ = edges.next();
            text.line(if start.is_empty() {
                format!("mov.b64 %t_q{e}, 0;")
            } else {
                format!("ld.param.u64 %t_q{e}, {start};")
            });
        }
        text.push(&index::advance(&mut slots, self.ranks[plan], index, &registers));
        text.line("mov.b64 {%t_e0, %t_e1}, %t_w;");
        (0..n).for_each(|e| text.line(format!("cvt.u32.u64 %t_e{}, %t_q{e};", 2 + e)));
        text.line(format!("@!%t_in mov.b32 %t_e2, {OUTSIDE};"));
        (2 + n..self.entry / 4).for_each(|e| text.line(format!("mov.b32 %t_e{e}, 0;")));
        for e in (0..self.entry / 4).step_by(4) {
            let words = [e, e + 1, e + 2, e + 3].map(|e| format!("%t_e{e}")).join(", ");
            text.line(format!("st.shared.v4.b32 [%t_to+{}], {{{words}}};", at + 4 * e));
        }
        text.line("}");
    }

    /// Opens a scope in which `%t_side` and `%t_line` are a thread's first entries of this slice, `%t_o_step` and `%t_k_step`
    /// the bytes to its next ones.
    pub(super) fn open(&self, text: &mut Text, turn: &str) {
        let Self { side, entry, at, chunk, n_threads, .. } = self;
        let chunks = self.depth / chunk;
        text.line(
            "{ .reg .pred %t_p; .reg .b32 %t_side, %t_line, %t_o_step, %t_k_step, %t_x, %t_t; .reg .b64 %t_at, %t_w;",
        );
        text.line(format!(".reg .b32 %t_o<{0}>, %t_k<{0}>, %t_below<{1}>;", entry / 4, self.n_coordinates()));
        // Read anew where it is needed: registers are scarce.
        text.line("mov.u32 %t_t, %tid.x;");
        text.line(format!("ld.param.u32 %t_x, [args+{}]; setp.ne.u32 %t_p, %t_x, 0;", self.flag));
        text.line(format!("and.b32 %t_side, %t_t, {}; shr.u32 %t_x, %t_t, {};", side - 1, chunks.ilog2()));
        text.line("selp.b32 %t_side, %t_side, %t_x, %t_p;");
        text.line(format!("shr.u32 %t_line, %t_t, {}; and.b32 %t_x, %t_t, {};", side.ilog2(), chunks - 1));
        text.line("selp.b32 %t_line, %t_line, %t_x, %t_p; mov.u32 %t_x, tables;");
        text.line(format!("mad.lo.u32 %t_side, %t_side, {entry}, %t_x; add.u32 %t_side, %t_side, {};", at[0]));
        text.line(format!("mad.lo.u32 %t_line, %t_line, {}, %t_x;", line(*chunk, *chunk) * entry));
        text.line(format!("selp.b32 %t_o_step, 0, {}, %t_p;", n_threads / chunks * entry));
        text.line(format!("selp.b32 %t_k_step, {}, 0, %t_p;", n_threads / side * line(*chunk, *chunk) * entry));
        text.line(format!("{turn} add.u32 %t_line, %t_line, %t_x; add.u32 %t_line, %t_line, {};", at[1]));
        let mut edges = self.slots[2].clone();
        text.line("mov.b32 %t_below0, 1;");
        for e in 0..self.n_edges {
            let _ = edges.next();
            text.line(format!("ld.param.u32 %t_below{e}, {};", edges.next()));
        }
    }

    /// On to a thread's next entries.
    pub(super) fn step(&self, text: &mut Text) {
        text.line("add.u32 %t_side, %t_side, %t_o_step; add.u32 %t_line, %t_line, %t_k_step;");
    }

    /// Reads an entry of the side into `%t_o0`, …
    pub(super) fn side(&self, text: &mut Text) {
        self.read(text, "o", "%t_side", 0);
    }

    /// Reads an entry of the slice; `%t_at` is then an element's address, and `%t_p` says whether it is inside.
    pub(super) fn element(&self, text: &mut Text, line: usize) {
        self.read(text, "k", "%t_line", line * self.entry);
        text.line("mov.b64 %t_at, {%t_o0, %t_o1}; mov.b64 %t_w, {%t_k0, %t_k1}; add.s64 %t_at, %t_at, %t_w;");
        text.line(format!("add.s64 %t_at, %t_at, %{};", self.name));
        for e in 0..self.n_coordinates() {
            let (and, also) = if e == 0 { ("", "") } else { (".and", ", %t_p") };
            text.line(format!("add.u32 %t_k{0}, %t_k{0}, %t_o{0};", 2 + e));
            text.line(format!("setp.lt{and}.u32 %t_p, %t_k{}, %t_below{e}{also};", 2 + e));
        }
    }

    fn read(&self, text: &mut Text, to: &str, from: &str, at: usize) {
        let words = 2 + self.n_coordinates();
        for e in (0..words).step_by(4) {
            let list = [e, e + 1, e + 2, e + 3].map(|e| format!("%t_{to}{e}")).join(", ");
            text.line(format!("ld.shared.v4.b32 {{{list}}}, [{from}+{}];", at + 4 * e));
        }
    }
}
