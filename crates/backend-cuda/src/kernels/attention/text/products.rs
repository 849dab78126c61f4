//! The two products: scores or slopes over the depth, and what is mixed over the columns.

use super::super::SIDE;
use super::sizes::registers;
use super::{DEPTH, STRIDES, WIDTH, Writer};
use crate::emit::load_if;

impl Writer<'_> {
    /// Sums of products over the depth into 16 registers: row i and column j in number 4i + j.
    pub(super) fn product(&mut self, tag: &str, i: usize, to: &str) {
        let (depth, n) = (self.sizes.depth, SIDE * self.sizes.depth / 256);
        let step = SIDE / n;
        let ty = self.sizes.ty;
        for k in 0..16 {
            self.line(format!("mov.{ty} %{to}{k}, {};", self.sizes.constant(0.0)));
        }
        self.line("{ .reg .pred %t_p; .reg .b32 %t_i; .reg .b64 %t_a, %t_b, %t_at;");
        self.line(format!("ld.param.u32 %left, [args+{}]; mov.b64 %t_a, %a{i}; mov.b64 %t_b, %b{i};", DEPTH[i]));
        self.advance("%t_b", "%column0", STRIDES + 32 * i + 16);
        self.text.push(&format!("${tag}:\n"));
        for (side, first, count, slot) in
            [("a", "%row0", "%n_rows", 32 * i), ("b", "%column0", "%n_columns", 32 * i + 16)]
        {
            let into = if side == "a" { "x" } else { "y" };
            self.line(format!("mov.b64 %t_at, %t_{side}; add.u32 %t_i, {first}, %o_row;"));
            self.line(format!("{{ .reg .b64 %t_s; ld.param.u64 %t_s, [args+{}];", STRIDES + slot));
            self.line(format!("mul.lo.s64 %t_s, %t_s, {step};"));
            for j in 0..n {
                self.line(format!("setp.lt.u32 %t_p, %t_i, {count}; setp.lt.and.u32 %t_p, %r, %left, %t_p;"));
                let load = load_if(self.form.dtype, "%t_p", &format!("%{into}{j}"), "%t_at");
                self.line(load);
                self.line(format!("add.u32 %t_i, %t_i, {step}; add.s64 %t_at, %t_at, %t_s;"));
            }
            self.line("}");
            self.advance(&format!("%t_{side}"), &depth.to_string(), STRIDES + slot + 8);
        }
        self.line("bar.sync 0;");
        for (into, base) in [("x", 0), ("y", self.sizes.columns)] {
            for j in 0..n {
                let at = base + j * step * self.sizes.bytes;
                self.line(format!("st.shared.{ty} [%put+{at}], %{into}{j};"));
            }
        }
        self.line("bar.sync 0;");
        for r in 0..depth {
            let at = r * self.sizes.pitch * self.sizes.bytes;
            self.sizes.four(&mut self.text, true, registers("x", 0), "%x_from", at);
            self.sizes.four(&mut self.text, true, registers("y", 0), "%y_from", at);
            for k in 0..16 {
                self.line(format!("fma.rn.{ty} %{to}{k}, %x{}, %y{}, %{to}{k};", k / 4, k % 4));
            }
        }
        self.line(format!("setp.gt.u32 %more, %left, {depth}; sub.u32 %left, %left, {depth}; @%more bra ${tag}; }}"));
    }

    /// Adds the other side's elements, weighted: slices of columns of the block, which are rows of what is mixed.
    pub(super) fn mix(&mut self) {
        let (depth, width, ty, bytes) = (self.sizes.depth, self.form.width, self.sizes.ty, self.sizes.bytes);
        let (n, step) = (depth * width / 256, 256 / width);
        let groups = width / SIDE;
        self.line("{ .reg .pred %t_p, %t_in; .reg .b32 %t_i, %t_first, %t_from; .reg .b64 %t_c, %t_at, %t_s;");
        self.line(format!("ld.param.u32 %t_i, [args+{WIDTH}]; setp.lt.u32 %t_in, %c_column, %t_i;"));
        self.line(format!(".reg .{ty} %t_x<{n}>;"));
        self.line("mov.b64 %t_c, %c; mov.b32 %t_first, %column0; mov.b32 %t_from, %w_from;");
        self.advance("%t_c", "%column0", STRIDES + 64);
        self.line(format!("ld.param.u64 %t_s, [args+{}]; mul.lo.s64 %t_s, %t_s, {step};", STRIDES + 64));
        self.text.push("$mix:\n");
        self.line("mov.b64 %t_at, %t_c; add.u32 %t_i, %t_first, %c_row;");
        for i in 0..n {
            self.line("setp.lt.and.u32 %t_p, %t_i, %n_columns, %t_in;");
            self.line(load_if(self.form.dtype, "%t_p", &format!("%t_x{i}"), "%t_at"));
            self.line(format!("add.u32 %t_i, %t_i, {step}; add.s64 %t_at, %t_at, %t_s;"));
        }
        self.line("bar.sync 0;");
        for i in 0..n {
            self.line(format!("st.shared.{ty} [%c_put+{}], %t_x{i};", i * step * width * bytes));
        }
        self.line("bar.sync 0;");
        for r in 0..depth {
            self.sizes.four(&mut self.text, true, registers("x", 0), "%t_from", r * self.sizes.pitch * bytes);
            for group in 0..groups {
                let at = (r * width + group * SIDE) * bytes;
                self.sizes.four(&mut self.text, true, registers("y", 0), "%c_from", at);
                for k in 0..16 {
                    let sum = (k / 4) * (width / 16) + group * 4 + k % 4;
                    self.line(format!("fma.rn.{ty} %o{sum}, %x{}, %y{}, %o{sum};", k / 4, k % 4));
                }
            }
        }
        self.line(format!("add.u32 %t_from, %t_from, {};", depth * self.sizes.pitch * bytes));
        self.advance("%t_c", &depth.to_string(), STRIDES + 64);
        self.line(format!("add.u32 %t_first, %t_first, {depth}; add.u32 %t_i, %column0, {SIDE};"));
        self.line("min.u32 %t_i, %t_i, %n_columns; setp.lt.u32 %more, %t_first, %t_i; @%more bra $mix; }");
    }
}
