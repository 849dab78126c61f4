//! What a block does first: addresses, a thread's places, sums that are 0.

use super::sizes::Sizes;
use super::{EACH, FIXED_SLOTS, Kind, LIMIT, MASK_STRIDES, SCALE, STRIDES, Writer};
use crate::index;
use crate::kernels::names;

impl Writer<'_> {
    /// Addresses, a thread's places, and sums that are 0.
    pub(super) fn start(&mut self) {
        let (form, Sizes { ty, bytes, depth, pitch, columns, weights, .. }) = (*self.form, &self.sizes);
        let (ty, bytes, depth, pitch, columns, weights) = (*ty, *bytes, *depth, *pitch, *columns, *weights);
        let width = form.width;
        let text = &mut self.text;
        (0..FIXED_SLOTS).for_each(|_| drop(text.slots.next()));
        text.declare(&format!("    .reg .{ty} %s<16>, %g<16>, %o<{}>, %x<4>, %y<4>, %scale, %u, %w;", width / EACH));
        text.declare(&format!("    .reg .{ty} %top<4>, %sum<4>, %lse<4>, %delta<4>;"));
        text.declare(
            "    .reg .b32 %tx, %ty, %r, %o_row, %c_row, %c_column, %my_row<4>, %my_column<4>, %last<4>, %limit;",
        );
        text.declare("    .reg .b32 %put, %x_from, %y_from, %w_put, %w_from, %c_put, %c_from;");
        text.declare("    .reg .pred %sees;");
        for register in ["%row_lse", "%row_delta", "%to"] {
            text.wide(register);
        }
        let operands = ["%a0", "%b0", "%a1", "%b1", "%c", "%mask"].map(String::from);
        let operands = &operands[..if form.has_mask { 6 } else { 5 }];
        operands.iter().for_each(|register| text.wide(register));
        let advance = index::advance(&mut text.slots, form.rank, "%matrix", operands);
        text.push(&advance);
        text.line("and.b32 %tx, %thread, 15; shr.u32 %ty, %thread, 4;");
        text.line(format!("and.b32 %r, %thread, {}; shr.u32 %o_row, %thread, {};", depth - 1, depth.ilog2()));
        text.line(format!("and.b32 %c_column, %thread, {}; shr.u32 %c_row, %thread, {};", width - 1, width.ilog2()));
        text.line(format!("ld.param.u32 %limit, [args+{LIMIT}]; ld.param.{ty} %scale, [args+{SCALE}];"));
        text.line("{ .reg .b32 %t_x, %t_y; mov.u32 %t_x, tiles;");
        text.line(format!("mad.lo.u32 %t_y, %r, {pitch}, %o_row; mad.lo.u32 %put, %t_y, {bytes}, %t_x;"));
        text.line(format!("mad.lo.u32 %x_from, %ty, {}, %t_x;", EACH * bytes));
        text.line(format!("mad.lo.u32 %y_from, %tx, {}, %t_x; mov.b32 %c_from, %y_from;", EACH * bytes));
        text.line(format!("add.u32 %y_from, %y_from, {columns}; add.u32 %w_from, %x_from, {weights};"));
        text.line(format!("mad.lo.u32 %w_put, %tx, {}, %w_from;", EACH * pitch * bytes));
        text.line(format!("mad.lo.u32 %t_y, %c_row, {width}, %c_column; mad.lo.u32 %c_put, %t_y, {bytes}, %t_x; }}"));
        for i in 0..EACH {
            text.line(format!("mad.lo.u32 %my_row{i}, %ty, {EACH}, %row0; add.u32 %my_row{i}, %my_row{i}, {i};"));
        }
        // The first element of a thread in a slice of each side.
        self.line("{ .reg .b32 %t_i; add.u32 %t_i, %row0, %o_row;");
        let n_products = if form.kind.has_slopes() { 2 } else { 1 };
        for i in 0..n_products {
            self.advance(&format!("%a{i}"), "%t_i", STRIDES + 32 * i);
            self.advance(&format!("%a{i}"), "%r", STRIDES + 32 * i + 8);
            self.advance(&format!("%b{i}"), "%o_row", STRIDES + 32 * i + 16);
            self.advance(&format!("%b{i}"), "%r", STRIDES + 32 * i + 24);
        }
        self.advance("%c", "%c_row", STRIDES + 64);
        self.advance("%c", "%c_column", STRIDES + 72);
        self.line("}");
        if form.has_mask {
            self.advance("%mask", "%row0", MASK_STRIDES);
            self.line("{ .reg .b32 %t_i; shl.b32 %t_i, %ty, 2;");
            self.advance("%mask", "%t_i", MASK_STRIDES);
            self.line("shl.b32 %t_i, %tx, 2;");
            self.advance("%mask", "%t_i", MASK_STRIDES + 8);
            self.line("}");
        }
        for sum in names("o", width / EACH) {
            self.line(format!("mov.{ty} {sum}, {};", self.sizes.constant(0.0)));
        }
        match form.kind {
            Kind::Forward => {
                for i in 0..EACH {
                    self.line(format!("mov.{ty} %top{i}, {};", self.sizes.constant(f64::NEG_INFINITY)));
                    self.line(format!("mov.{ty} %sum{i}, {};", self.sizes.constant(0.0)));
                }
            }
            Kind::Query => {
                for i in 0..EACH {
                    self.load_row(&format!("%lse{i}"), "%row_lse", &format!("%my_row{i}"), "%n_rows");
                    self.load_row(&format!("%delta{i}"), "%row_delta", &format!("%my_row{i}"), "%n_rows");
                }
            }
            Kind::Key | Kind::Value => {}
        }
        // Which columns some row of the block sees, the mask aside.
        if form.kind.has_keys_in_rows() {
            self.line("sub.s32 %column0, %row0, %limit; max.s32 %column0, %column0, 0;");
            self.line("and.b32 %column0, %column0, -64; mov.b32 %end, %n_columns;");
        } else {
            self.line("mov.b32 %column0, 0; add.s32 %end, %row0, 64; add.s32 %end, %end, %limit;");
            self.line("min.s32 %end, %end, %n_columns;");
            for i in 0..EACH {
                self.line(format!("add.s32 %last{i}, %my_row{i}, %limit;"));
            }
        }
    }
}
