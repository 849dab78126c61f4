//! The text of `attention.ptx`: what is attended to, or one of the three gradients.

use tensor_core::expr::build;
use tensor_core::expr::lower::{LowType, Lowered, lower};
use tensor_core::{DType, Result};

use super::SIDE;
use crate::emit::{self, Body, load_if, register_type};
use crate::index;
use crate::kernels::{Text, names};

/// Which sums are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// What is attended to.
    Forward,
    /// The gradient by query.
    Query,
    /// The gradient by key.
    Key,
    /// The gradient by value.
    Value,
}

impl Kind {
    pub(super) fn entry(self) -> &'static str {
        match self {
            Self::Forward => "attention",
            Self::Query => "attention_query",
            Self::Key => "attention_key",
            Self::Value => "attention_value",
        }
    }

    /// Whether a block's rows are keys, and columns queries.
    pub(super) fn has_keys_in_rows(self) -> bool {
        matches!(self, Self::Key | Self::Value)
    }

    /// Whether weights are turned into slopes, which takes a second product.
    fn has_slopes(self) -> bool {
        matches!(self, Self::Query | Self::Key)
    }
}

/// What the text depends on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Form {
    pub(super) kind: Kind,
    pub(super) dtype: DType,
    /// Columns of the result at most: 64, 128 or 256.
    pub(super) width: usize,
    pub(super) has_mask: bool,
    /// Axes of the batch.
    pub(super) rank: usize,
}

/// Slots of parameters that are read by their numbers, as bytes.
const DEPTH: [usize; 2] = [24, 32];
const WIDTH: usize = 40;
const LIMIT: usize = 48;
/// Of the rows' and the columns' side of both products and of what is mixed: along the rows, along the depth.
const STRIDES: usize = 56;
const MASK_STRIDES: usize = 136;
const SCALE: usize = 152;
const FACTOR: usize = 160;
const FIXED_SLOTS: usize = 21;

/// Rows and columns of a thread in a block.
const EACH: usize = 4;

/// Sizes that follow from the type that is computed in.
struct Sizes {
    wide: DType,
    ty: &'static str,
    bytes: usize,
    /// Depth of a slice.
    depth: usize,
    /// Elements from one depth to the next in shared memory: 16 bytes more than there are, against conflicts of banks.
    pitch: usize,
    /// Where the columns' side and the weights begin, and where all ends.
    columns: usize,
    weights: usize,
    shared: usize,
}

impl Sizes {
    fn new(form: &Form) -> Self {
        let wide = form.dtype.compute();
        let bytes = wide.size_bytes();
        let (depth, pitch) = (64 / bytes, SIDE + 16 / bytes);
        let slice = depth * pitch * bytes;
        // Slices of what is mixed lie where those of the sides were.
        let weights = (2 * slice).max(depth * form.width * bytes);
        let shared = weights + SIDE * pitch * bytes;
        Self { wide, ty: register_type(LowType::of(wide)), bytes, depth, pitch, columns: slice, weights, shared }
    }

    /// Moves four neighbours between registers and shared memory.
    fn four(&self, text: &mut Text, load: bool, registers: [String; 4], address: &str, at: usize) {
        let n = 16 / self.bytes;
        for (i, part) in registers.chunks(n.min(4)).enumerate() {
            let (list, at) = (part.join(", "), at + 16 * i);
            text.line(match load {
                true => format!("ld.shared.v{n}.{} {{{list}}}, [{address}+{at}];", self.ty),
                false => format!("st.shared.v{n}.{} [{address}+{at}], {{{list}}};", self.ty),
            });
        }
    }

    fn constant(&self, value: f64) -> String {
        match self.wide {
            DType::F64 => format!("0d{:016X}", value.to_bits()),
            _ => format!("0f{:08X}", (value as f32).to_bits()),
        }
    }
}

fn registers(prefix: &str, from: usize) -> [String; 4] {
    std::array::from_fn(|i| format!("%{prefix}{}", from + i))
}

/// The module.
pub(super) fn text(form: &Form) -> Result<String> {
    let sizes = Sizes::new(form);
    let exp = lower("attention", &[build(|[x]| x.exp())], &[sizes.wide])?;
    let mut writer = Writer { form, sizes, exp, text: Text::default() };
    writer.start();
    let start = writer.text.take();
    writer.product("scores", 0, "s");
    if form.kind.has_slopes() {
        writer.product("slopes", 1, "g");
    }
    let scores = writer.text.take();
    match form.kind {
        Kind::Forward => writer.forward_weights(),
        Kind::Query | Kind::Key | Kind::Value => writer.gradient_weights(),
    }
    let weights = writer.text.take();
    writer.mix();
    let mix = writer.text.take();
    writer.finish();
    let Writer { mut text, sizes, .. } = writer;
    let finish = text.take();
    // Else the assembler spills some to have two blocks at a time.
    let is_large = form.width == 256 || sizes.bytes == 8;
    Ok(text
        .skeleton(include_str!("../../../kernels/attention.ptx"), form.kind.entry())
        .put("DEPTH", sizes.depth.to_string())
        .put("EACH", (form.width / 16).to_string())
        .put("RESIDENT", if is_large { ".minnctapersm 1" } else { "" })
        .put("SHARED_BYTES", sizes.shared.to_string())
        .put("START", start)
        .put("SCORES", scores)
        .put("WEIGHTS", weights)
        .put("MIX", mix)
        .put("FINISH", finish)
        .finish())
}

struct Writer<'a> {
    form: &'a Form,
    sizes: Sizes,
    exp: Lowered,
    text: Text,
}

impl Writer<'_> {
    fn line(&mut self, line: impl AsRef<str>) {
        self.text.line(line);
    }

    /// `at += index · stride`, the stride in a slot.
    fn advance(&mut self, at: &str, index: &str, slot: usize) {
        self.line(format!(
            "{{ .reg .b64 %t_w, %t_s; ld.param.u64 %t_s, [args+{slot}]; cvt.s64.s32 %t_w, {index}; \
             mad.lo.s64 {at}, %t_w, %t_s, {at}; }}"
        ));
    }

    /// `to = e^from`.
    fn exp(&mut self, from: &str, to: &str) {
        let (inputs, outputs) = ([from.to_string()], [to.to_string()]);
        let body = Body { lowered: &self.exp, inputs: &inputs, numbers: &[], outputs: &outputs }.text();
        self.text.push(&body);
    }

    /// Loads a number per row, or 0 beyond the last: `index` counts from the rows' matrix on.
    fn load_row(&mut self, to: &str, base: &str, index: &str, count: &str) {
        let load = load_if(self.sizes.wide, "%t_p", to, "%t_at");
        self.line(format!(
            "{{ .reg .pred %t_p; .reg .b32 %t_x; .reg .b64 %t_at; setp.lt.u32 %t_p, {index}, {count}; \
             mad.lo.u32 %t_x, %matrix, {count}, {index}; mul.wide.u32 %t_at, %t_x, {}; add.s64 %t_at, %t_at, {base}; {load} }}",
            self.sizes.bytes
        ));
    }

    /// Addresses, a thread's places, and sums that are 0.
    fn start(&mut self) {
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

    /// Sums of products over the depth into 16 registers: row i and column j in number 4i + j.
    fn product(&mut self, tag: &str, i: usize, to: &str) {
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

    /// Scores to weights by the largest so far: what was added up before is scaled down when a larger one comes.
    fn forward_weights(&mut self) {
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

    /// A largest score as what scores are taken relative to.
    fn shift(&mut self, top: &str) {
        let (ty, zero, infinite) = (self.sizes.ty, self.sizes.constant(0.0), self.sizes.constant(f64::INFINITY));
        self.line(format!(
            "{{ .reg .pred %t_p; .reg .{ty} %t_x; abs.{ty} %t_x, {top}; setp.lt.{ty} %t_p, %t_x, {infinite}; \
             selp.{ty} {top}, {top}, {zero}, %t_p; }}"
        ));
    }

    /// Folds `%w` of the 16 threads that share rows: every one gets the result.
    fn exchange(&mut self, fold: &str) {
        let ty = self.sizes.ty;
        for distance in [8, 4, 2, 1] {
            let swap = |to: &str, of: &str| format!("shfl.sync.bfly.b32 {to}, {of}, {distance}, 31, 0xFFFFFFFF;");
            self.line(match self.sizes.bytes {
                4 => swap("%u", "%w"),
                _ => format!(
                    "{{ .reg .b32 %t_l, %t_h; mov.b64 {{%t_l, %t_h}}, %w; {} {} mov.b64 %u, {{%t_l, %t_h}}; }}",
                    swap("%t_l", "%t_l"),
                    swap("%t_h", "%t_h")
                ),
            });
            self.line(format!("{fold}.{ty} %w, %w, %u;"));
        }
    }

    /// Scores to P, and to dS where that is asked for.
    fn gradient_weights(&mut self) {
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

    /// Weights to shared memory with the columns outermost.
    fn put_weights(&mut self, from: &str) {
        for j in 0..EACH {
            let column = std::array::from_fn(|i| format!("%{from}{}", EACH * i + j));
            self.sizes.four(&mut self.text, false, column, "%w_put", j * self.sizes.pitch * self.sizes.bytes);
        }
    }

    /// Adds the other side's elements, weighted: slices of columns of the block, which are rows of what is mixed.
    fn mix(&mut self) {
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

    /// Sums to the result.
    fn finish(&mut self) {
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
