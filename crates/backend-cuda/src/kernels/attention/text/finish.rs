//! Sums to the result.

use tensor_core::expr::build;
use tensor_core::expr::lower::lower;

use super::super::SIDE;
use super::{EACH, FACTOR, Kind, WIDTH, Writer};
use crate::emit::{self, Body};

impl Writer<'_> {
    /// Sums to the result.
    pub(super) fn finish(&mut self) {
        let (form, ty) = (*self.form, self.sizes.ty);
        if form.kind == Kind::Forward {
            let ln = lower("attention", &[build(|[sum, shift]| sum.ln() + shift)], &[self.sizes.wide; 2]);
            let ln = ln.expect("invariant: a logarithm of a float");
            for i in 0..EACH {
                self.line(format!("mov.{ty} %w, %sum{i};"));
                self.exchange("add.rn");
                self.line(format!("mov.{ty} %sum{i}, %w;"));
                self.shift(&format!("%top{i}"));
                let (inputs, outputs) = ([format!("%sum{i}"), format!("%top{i}")], ["%u".to_string()]);
                let body = Body { lowered: &ln, inputs: &inputs, numbers: &[], outputs: &outputs }.text();
                self.text.push(&body);
                // One of the threads that share the row writes.
                self.line(format!(
                    "{{ .reg .pred %t_p; .reg .b32 %t_x; .reg .b64 %t_at; setp.ne.u32 %t_p, %tx, 0; \
                     setp.ge.or.u32 %t_p, %my_row{i}, %n_rows, %t_p; mad.lo.u32 %t_x, %matrix, %n_rows, %my_row{i}; \
                     mul.wide.u32 %t_at, %t_x, {}; add.s64 %t_at, %t_at, %row_lse;",
                    self.sizes.bytes
                ));
                self.line(format!("@!%t_p st.global.{ty} [%t_at], %u; }}"));
            }
        } else {
            self.line(format!("ld.param.{ty} %w, [args+{FACTOR}];"));
        }
        self.line(format!("{{ .reg .b32 %t_width, %t_column, %t_row; .reg .b64 %t_row_at, %t_at; ld.param.u32 %t_width, [args+{WIDTH}];"));
        for i in 0..EACH {
            self.line(format!("setp.ge.u32 %outside, %my_row{i}, %n_rows; @%outside bra $done;"));
            self.line(format!(
                "mad.lo.u32 %t_row, %matrix, %n_rows, %my_row{i}; mul.wide.u32 %t_row_at, %t_row, %t_width;"
            ));
            self.line(format!("mad.lo.s64 %t_row_at, %t_row_at, {}, %to;", form.dtype.size_bytes()));
            for c in 0..form.width / 16 {
                let (sum, column) = (format!("%o{}", i * form.width / 16 + c), c / 4 * SIDE + c % 4);
                self.line(match form.kind {
                    Kind::Forward => format!("div.rn.{ty} {sum}, {sum}, %sum{i};"),
                    Kind::Query | Kind::Key | Kind::Value => format!("mul.rn.{ty} {sum}, {sum}, %w;"),
                });
                self.line(format!(
                    "mad.lo.u32 %t_column, %tx, 4, {column}; setp.ge.u32 %outside, %t_column, %t_width;"
                ));
                self.line(format!("@%outside bra $skip_{i}_{c};"));
                self.line(format!(
                    "mul.wide.u32 %t_at, %t_column, {}; add.s64 %t_at, %t_at, %t_row_at;",
                    form.dtype.size_bytes()
                ));
                self.text.push(&emit::store(form.dtype, "%t_at", &sum));
                self.text.push(&format!("$skip_{i}_{c}:\n"));
            }
        }
        self.text.push("$done:\n");
        self.line("}");
    }
}
