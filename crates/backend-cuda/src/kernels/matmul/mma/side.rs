//! One operand's way from memory to the registers that tensor cores read.

use tensor_core::DType;

use super::super::gather::Gather;
use super::{BUFFER_BYTES, chunk};
use crate::kernels::Text;

/// One operand's way through shared memory to the tensor cores.
pub(super) struct Side {
    pub(super) name: &'static str,
    pub(super) dtype: DType,
    pub(super) is_along_k: bool,
    pub(super) gather: Option<Gather>,
}

impl Side {
    fn is_a(&self) -> bool {
        self.name == "a"
    }

    /// The place of the bit by which elements count in bytes.
    fn shift(&self) -> u32 {
        self.dtype.size_bytes().ilog2()
    }

    /// Lines along K that all threads together copy at a time, of an operand whose neighbours are not along K.
    fn n_lines(&self) -> usize {
        2 * chunk(self.dtype)
    }

    /// What a thread copies, two chunks of 16 bytes of a slice, and from where a lane's matrix rows are read.
    pub(super) fn start(&self, text: &mut Text) {
        let (name, shift, bytes, chunk) = (self.name, self.shift(), self.dtype.size_bytes(), chunk(self.dtype));
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
            text.line(format!("shl.b32 %{name}_k, %t_c, {}; add.u32 %t_x, %{name}_k, %k0;", chunk.ilog2()));
            text.line(format!("mul.wide.u32 %t_w, %t_x, {bytes}; add.s64 %{name}, %{name}, %t_w;"));
            text.line(format!("shl.b64 %{name}_second, %t_s, 6; mov.b64 %{name}_next, 64;"));
            text.line(format!("setp.lt.u32 %t_p, %t_o, {extent}; selp.b32 %{name}_most0, 16, 0, %t_p;"));
            text.line(format!(
                "add.u32 %t_o, %t_o, 64; setp.lt.u32 %t_p, %t_o, {extent}; selp.b32 %{name}_most1, 16, 0, %t_p;"
            ));
        } else {
            // A row of the result's axis is 16 or 32 chunks, 256 or 512 bytes: the chunk's place turns with every row.
            let (n, turned) = (128 / chunk, self.turned(&format!("%{name}_k")));
            text.line(format!("and.b32 %t_c, %thread, {}; shr.u32 %{name}_k, %thread, {};", n - 1, n.ilog2()));
            text.line(format!("{turned} xor.b32 %t_x, %t_x, %t_c; shl.b32 %t_x, %t_x, 4;"));
            text.line(format!("mad.lo.u32 %{name}_put, %{name}_k, {}, %t_x;", 16 * n));
            text.line(format!("ld.param.u64 %t_s, [args+{}]; add.u32 %t_x, %{name}_k, %k0;", strides + 8));
            text.line(format!("cvt.u64.u32 %t_w, %t_x; mad.lo.s64 %{name}, %t_w, %t_s, %{name};"));
            text.line(format!(
                "mad.lo.u32 %t_o, %t_c, {chunk}, {first}; mul.wide.u32 %t_w, %t_o, {bytes}; add.s64 %{name}, %{name}, %t_w;"
            ));
            let lines = self.n_lines().ilog2();
            text.line(format!("shl.b64 %{name}_second, %t_s, {lines}; shl.b64 %{name}_next, %t_s, {};", lines + 1));
            text.line(format!("sub.s32 %t_x, {extent}, %t_o; shl.b32 %t_x, %t_x, {shift}; max.s32 %t_x, %t_x, 0;"));
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

    /// The registers of [`Side::load`].
    pub(super) fn declare_loaded(&self, text: &mut Text) {
        text.declare(&format!("    .reg .b{} %loaded<{}>;", 8 * self.dtype.size_bytes(), 2 * chunk(self.dtype)));
    }

    /// Loads a thread's two chunks.
    pub(super) fn load(&self, text: &mut Text, gather: &Gather, turn: &str) {
        let (n, bits) = (chunk(self.dtype), 8 * self.dtype.size_bytes());
        gather.open(text, turn);
        for chunk in 0..2 {
            gather.side(text);
            for k in 0..n {
                let to = format!("%loaded{}", chunk * n + k);
                gather.element(text, k);
                text.line(format!("mov.b{bits} {to}, 0; @%t_p ld.global.b{bits} {to}, [%t_at];"));
            }
            gather.step(text);
        }
        text.line("}");
    }

    /// Writes the chunks to the next buffer.
    pub(super) fn put(&self, text: &mut Text) {
        text.line("{ .reg .b32 %t_to, %t_w<4>;");
        for chunk in 0..2 {
            for word in 4 * chunk..4 * chunk + 4 {
                let from = match self.dtype.size_bytes() {
                    4 => format!("%loaded{word}"),
                    _ => format!("{{%loaded{}, %loaded{}}}", 2 * word, 2 * word + 1),
                };
                text.line(format!("mov.b32 %t_w{}, {from};", word % 4));
            }
            text.line(format!("add.u32 %t_to, %{}_put{chunk}, %in;", self.name));
            text.line("st.shared.v4.b32 [%t_to], {%t_w0, %t_w1, %t_w2, %t_w3};");
        }
        text.line("}");
    }

    /// The place of a line's chunks of an operand whose neighbours are not along K, as a turn into `%t_x`.
    fn turned(&self, line: &str) -> String {
        match self.dtype.size_bytes() {
            // Four lines of two chunks are read together.
            4 => format!("and.b32 %t_x, {line}, 3; shl.b32 %t_x, %t_x, 1;"),
            _ => format!("and.b32 %t_x, {line}, 7;"),
        }
    }

    /// Where a lane reads: the row of 16 bytes that it names to ldmatrix, of matrix lane/8, which is one of 2×2 along K and the
    /// other axis; or its first element where they are read one by one.
    fn lane(&self, text: &mut Text) {
        let name = self.name;
        let (warp, side, by_o, by_k) = if self.is_a() { ("%warp_m", 64, 3, 4) } else { ("%warp_n", 32, 4, 3) };
        if self.is_read_singly() {
            text.line(
                "{ .reg .b32 %t_g, %t_t, %t_b; mov.b32 %t_b, %t_x; shr.u32 %t_g, %lane, 2; and.b32 %t_t, %lane, 3;",
            );
            text.line(format!("shr.u32 %t_y, %t_g, 2; mad.lo.u32 %t_y, {warp}, {}, %t_y;", side / 4));
            text.line(format!("{} xor.b32 %t_y, %t_y, %t_x; shl.b32 %t_y, %t_y, 4;", self.turned("%t_t")));
            text.line("mad.lo.u32 %t_y, %t_t, 512, %t_y; and.b32 %t_g, %t_g, 3; mad.lo.u32 %t_y, %t_g, 4, %t_y;");
            return text.line(format!("add.u32 %{name}_lane, %t_y, %t_b; }}"));
        }
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
    pub(super) fn copy(&self, text: &mut Text) {
        let name = self.name;
        text.line(format!(
            "{{ .reg .b64 %t_at; add.u32 %t_to, %{name}_put, %in; add.s64 %t_at, %{name}, %{name}_second;"
        ));
        for (i, from) in [format!("%{name}"), "%t_at".into()].iter().enumerate() {
            if self.is_along_k {
                text.line(format!(
                    "sub.s32 %t_x, %to_come, %{name}_k; shl.b32 %t_x, %t_x, {}; max.s32 %t_x, %t_x, 0;",
                    self.shift()
                ));
                text.line(format!("min.s32 %t_x, %t_x, %{name}_most{i};"));
            } else {
                text.line(format!(
                    "add.s32 %t_x, %{name}_k, {}; setp.lt.s32 %t_p, %t_x, %to_come;",
                    self.n_lines() * i
                ));
                text.line(format!("selp.b32 %t_x, %{name}_most{i}, 0, %t_p;"));
            }
            text.line(format!("cp.async.cg.shared.global [%t_to+{}], [{from}], 16, %t_x;", 4096 * i));
        }
        text.line(format!("add.s64 %{name}, %{name}, %{name}_next; }}"));
    }

    /// Whether elements are turned on the way to registers and too wide for ldmatrix to do it.
    fn is_read_singly(&self) -> bool {
        !self.is_along_k && self.dtype.size_bytes() == 4
    }

    /// What 2×2 products take: 32 bytes along K by 16 elements along the other axis.
    pub(super) fn fragment(&self, text: &mut Text, step: usize, i: usize) {
        let name = self.name;
        let to: Vec<String> = (4 * i..4 * i + 4).map(|k| format!("%{name}_m{k}")).collect();
        if self.is_read_singly() {
            self.elements(text, step, i, &to);
        } else {
            self.matrices(text, step, i, &to);
        }
        if self.dtype == DType::F32 {
            to.iter().for_each(|m| text.line(format!("cvt.rna.tf32.f32 {m}, {m};")));
        }
    }

    /// Four elements, each of one of 2×2 matrices of 4 along K by 8.
    fn elements(&self, text: &mut Text, step: usize, i: usize, to: &[String]) {
        let name = self.name;
        for (r, to) in to.iter().enumerate() {
            let (o, k) = if self.is_a() { (r & 1, r >> 1) } else { (r >> 1, r & 1) };
            text.line(format!("{{ .reg .b32 %t_x; xor.b32 %t_x, %{name}_lane, {};", 64 * i + 32 * o));
            text.line(format!("add.u32 %t_x, %t_x, %out; ld.shared.b32 {to}, [%t_x+{}]; }}", 4096 * step + 2048 * k));
        }
    }

    /// Four matrices of 8 rows of 16 bytes, 2 along K by 2.
    fn matrices(&self, text: &mut Text, step: usize, i: usize, to: &[String]) {
        let name = self.name;
        // The turned chunk: stepping by two chunks flips bits of its place.
        let (flip, at, trans) =
            if self.is_along_k { (32 * step, 1024 * i, "") } else { (32 * i, 4096 * step, ".trans") };
        text.line(format!("{{ .reg .b32 %t_x; xor.b32 %t_x, %{name}_lane, {flip}; add.u32 %t_x, %t_x, %out;"));
        text.line(format!("ldmatrix.sync.aligned.m8n8.x4{trans}.shared.b16 {{{}}}, [%t_x+{at}]; }}", to.join(", ")));
    }
}
