//! What happens to scores pair by pair until they are weights in shared memory.

use super::{EACH, MASK_STRIDES, Writer};

impl Writer<'_> {
    /// Scores to weights by the largest so far: what was added up before is scaled down when a larger one comes.
    pub(super) fn forward_weights(&mut self) {
        let (ty, least) = (self.sizes.ty, self.sizes.constant(f64::NEG_INFINITY));
        self.each_pair(|writer, k| {
            writer.line(format!("mul.rn.{ty} %s{k}, %s{k}, %scale; selp.{ty} %s{k}, %s{k}, {least}, %sees;"));
        });
        for i in 0..EACH {
            self.line(format!("max.{ty} %w, %s{}, %s{};", 4 * i, 4 * i + 1));
            (2..4).for_each(|j| self.text.line(format!("max.{ty} %w, %w, %s{};", 4 * i + j)));
            self.exchange("max");
            // As if by 0 where there is nothing to attend to, or something is not a number.
            self.line(format!("max.{ty} %w, %w, %top{i}; mov.{ty} %x0, %top{i};"));
            self.line(format!("mov.{ty} %top{i}, %w;"));
            self.shift("%w");
            self.line(format!("sub.rn.{ty} %u, %x0, %w;"));
            self.exp("%u", "%u");
            self.line(format!("mul.rn.{ty} %sum{i}, %sum{i}, %u;"));
            for c in 0..self.form.width / 16 {
                let sum = i * self.form.width / 16 + c;
                self.line(format!("mul.rn.{ty} %o{sum}, %o{sum}, %u;"));
            }
            for k in 4 * i..4 * i + 4 {
                self.line(format!("sub.rn.{ty} %s{k}, %s{k}, %w;"));
                self.exp(&format!("%s{k}"), &format!("%s{k}"));
                self.line(format!("add.rn.{ty} %sum{i}, %sum{i}, %s{k};"));
            }
        }
        self.put_weights("s");
    }

    /// Scores to P, and to dS where that is asked for.
    pub(super) fn gradient_weights(&mut self) {
        let (kind, ty, zero) = (self.form.kind, self.sizes.ty, self.sizes.constant(0.0));
        if kind.has_keys_in_rows() {
            for j in 0..EACH {
                let column = format!("%my_column{j}");
                self.line(format!("mad.lo.u32 {column}, %tx, {EACH}, %column0; add.u32 {column}, {column}, {j};"));
                self.load_row(&format!("%lse{j}"), "%row_lse", &column, "%n_columns");
                if kind.has_slopes() {
                    self.load_row(&format!("%delta{j}"), "%row_delta", &column, "%n_columns");
                }
            }
        }
        self.each_pair(|writer, k| {
            let own = if kind.has_keys_in_rows() { k % EACH } else { k / EACH };
            writer.line(format!("mul.rn.{ty} %s{k}, %s{k}, %scale; sub.rn.{ty} %s{k}, %s{k}, %lse{own};"));
            writer.exp(&format!("%s{k}"), &format!("%s{k}"));
            if kind.has_slopes() {
                writer.line(format!("sub.rn.{ty} %g{k}, %g{k}, %delta{own}; mul.rn.{ty} %s{k}, %s{k}, %g{k};"));
            }
            // What is hidden weighs nothing, whatever the formula gives.
            writer.line(format!("selp.{ty} %s{k}, %s{k}, {zero}, %sees;"));
        });
        self.put_weights("s");
    }

    /// Calls `f` for every pair of a thread with the pair's number, when `%sees` says whether the row may see the column.
    fn each_pair(&mut self, mut f: impl FnMut(&mut Self, usize)) {
        for j in 0..EACH {
            self.line(format!(
                "mad.lo.u32 %my_column{j}, %tx, {EACH}, %column0; add.u32 %my_column{j}, %my_column{j}, {j};"
            ));
            if self.form.kind.has_keys_in_rows() {
                self.line(format!("add.s32 %last{j}, %my_column{j}, %limit;"));
            }
        }
        self.line("{ .reg .b64 %t_row, %t_mask, %t_down, %t_right; .reg .b32 %t_m;");
        if self.form.has_mask {
            self.line("mov.b64 %t_row, %mask;");
            self.advance("%t_row", "%column0", MASK_STRIDES + 8);
            self.line(format!(
                "ld.param.u64 %t_down, [args+{MASK_STRIDES}]; ld.param.u64 %t_right, [args+{}];",
                MASK_STRIDES + 8
            ));
        }
        for i in 0..EACH {
            if self.form.has_mask {
                self.line("mov.b64 %t_mask, %t_row; add.s64 %t_row, %t_row, %t_down;");
            }
            for j in 0..EACH {
                self.line(format!("setp.lt.u32 %sees, %my_column{j}, %n_columns;"));
                // Key against the last one that the query sees.
                self.line(match self.form.kind.has_keys_in_rows() {
                    true => format!("setp.le.and.s32 %sees, %my_row{i}, %last{j}, %sees;"),
                    false => format!("setp.le.and.s32 %sees, %my_column{j}, %last{i}, %sees;"),
                });
                if self.form.has_mask {
                    self.line(format!("setp.lt.and.u32 %sees, %my_row{i}, %n_rows, %sees; mov.b32 %t_m, 0;"));
                    self.line("@%sees ld.global.u8 %t_m, [%t_mask]; setp.ne.u32 %sees, %t_m, 0;");
                    self.line("add.s64 %t_mask, %t_mask, %t_right;");
                }
                f(self, EACH * i + j);
            }
        }
        self.line("}");
    }

    /// Weights to shared memory with the columns outermost.
    fn put_weights(&mut self, from: &str) {
        for j in 0..EACH {
            let column = std::array::from_fn(|i| format!("%{from}{}", EACH * i + j));
            self.sizes.four(&mut self.text, false, column, "%w_put", j * self.sizes.pitch * self.sizes.bytes);
        }
    }
}
