//! The text of `attention.ptx`: what is attended to, or one of the three gradients.

use tensor_core::expr::build;
use tensor_core::expr::lower::{Lowered, lower};
use tensor_core::{DType, Result};

use self::sizes::Sizes;
use crate::emit::{Body, load_if};
use crate::kernels::Text;

mod finish;
mod products;
mod sizes;
mod start;
mod weights;

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

    /// A largest score as what scores are taken relative to.
    fn shift(&mut self, top: &str) {
        let (ty, zero, infinite) = (self.sizes.ty, self.sizes.constant(0.0), self.sizes.constant(f64::INFINITY));
        self.line(format!(
            "{{ .reg .pred %t_p; .reg .{ty} %t_x; abs.{ty} %t_x, {top}; setp.lt.{ty} %t_p, %t_x, {infinite}; \
             selp.{ty} {top}, {top}, {zero}, %t_p; }}"
        ));
    }
}
