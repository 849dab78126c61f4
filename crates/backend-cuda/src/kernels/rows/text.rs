//! The text of `rows.ptx`.

use std::fmt::Write;

use tensor_core::expr::lower::{LowType, Lowered, lower};
use tensor_core::op::ReduceKind;
use tensor_core::{DType, Result};

use super::super::{Text, names, reduce, vector};
use super::{Form, Rows};
use crate::emit::{self, Body};
use crate::index;

/// An expression with the registers of its run-time numbers.
struct Formula {
    lowered: Lowered,
    numbers: Vec<String>,
}

impl Formula {
    fn text(&self, inputs: &[String], output: &str) -> String {
        Body { lowered: &self.lowered, inputs, numbers: &self.numbers, outputs: &[output.to_string()] }.text()
    }
}

/// What the pieces share.
struct Pieces<'a> {
    rows: &'a Rows,
    form: Form,
    /// From `%r` and `%from…` to `%at…`.
    advance: String,
    values: Vec<String>,
}

impl Pieces<'_> {
    /// From `%base` to a thread's k-th place of the round.
    fn step(&self, k: usize) -> usize {
        let Form { threads, vector, .. } = self.form;
        k / vector * threads * vector + k % vector
    }

    /// Loads neighbours from `%r` on.
    fn load_at(&self, places: std::ops::Range<usize>) -> String {
        let mut text = String::new();
        for j in 0..self.rows.elements.len() {
            let _ = writeln!(text, "    mov.b64 %at{j}, %from{j};");
        }
        text += &self.advance;
        for (j, &dtype) in self.rows.elements.iter().enumerate() {
            let registers: Vec<String> = places.clone().map(|k| format!("%x{j}_{k}")).collect();
            text += &vector::load(dtype, &registers, &format!("%at{j}"));
        }
        text
    }

    /// Loads the elements of a round, and sets `%in{k}` to whether the row has the k-th.
    fn load(&self, label: &str) -> String {
        let Form { vector, has_tail, .. } = self.form;
        let mut text = String::new();
        for first in (0..self.form.items).step_by(vector) {
            let places = first..first + vector;
            for k in places.clone() {
                let _ = writeln!(text, "    add.u32 %r, %base, {};", self.step(k));
                let _ = writeln!(text, "    setp.lt.u32 %in{k}, %r, %end;");
            }
            if !has_tail {
                let _ = writeln!(text, "    add.u32 %r, %base, {};\n    min.u32 %r, %r, %last;", self.step(first));
                text += &self.load_at(places);
                continue;
            }
            // The last place of a vector inside: all are.
            let _ = writeln!(text, "    @!%in{} bra $tail_{label}{first};", places.end - 1);
            let _ = writeln!(text, "    add.u32 %r, %base, {};", self.step(first));
            text += &self.load_at(places.clone());
            let _ = writeln!(text, "    bra $loaded_{label}{first};\n$tail_{label}{first}:");
            for k in places {
                let _ = writeln!(text, "    add.u32 %r, %base, {};\n    min.u32 %r, %r, %last;", self.step(k));
                text += &self.load_at(k..k + 1);
            }
            let _ = writeln!(text, "$loaded_{label}{first}:");
        }
        text
    }

    /// Elements, values and the first folds' results, as an expression over the k-th place takes them.
    fn inputs(&self, k: usize, n_folds: usize) -> Vec<String> {
        let elements = (0..self.rows.elements.len()).map(|j| format!("%x{j}_{k}"));
        elements.chain(self.values.iter().cloned()).chain(names("stat", n_folds)).collect()
    }

    /// `body` once, or in rounds over the row, which load elements each time.
    fn rounds(&self, label: &str, body: &str) -> String {
        let Form { threads, items, is_kept, .. } = self.form;
        if is_kept {
            return body.to_string();
        }
        format!(
            "    mov.b32 %base, %first;\n${label}:\n    setp.ge.u32 %outside, %base, %end;\n    @%outside bra $past_{label};\n\
             {}{body}    add.u32 %base, %base, {};\n    bra ${label};\n$past_{label}:\n",
            self.load(label),
            threads * items
        )
    }
}

pub(super) fn text(rows: &Rows, form: Form, ranks: [usize; 2]) -> Result<String> {
    let wide = rows.total;
    let mut text = Text::default();
    let _ = [(); 3].map(|()| text.slots.next());
    let from = names("from", rows.elements.len());
    let values_from = names("value_from", rows.values.len());
    let to: Vec<String> = rows.result.iter().map(|_| "%to".to_string()).collect();
    let all: Vec<String> = to.iter().chain(&from).chain(&values_from).cloned().collect();
    all.iter().for_each(|register| text.wide(register));
    let totals = names("total_to", rows.totals.len());
    totals.iter().for_each(|register| text.wide(register));
    let advance = index::advance(&mut text.slots, ranks[0], "%i", &all);
    text.push(&advance);
    let mut formulas = Vec::new();
    for (k, (expr, inputs)) in rows.exprs().zip(rows.inputs()).enumerate() {
        let lowered = lower(rows.name, std::slice::from_ref(expr), &inputs)?;
        let numbers = names(&format!("number{k}_"), lowered.params.len());
        for (register, param) in numbers.iter().zip(&lowered.params) {
            text.number(LowType::of(param.dtype), register);
        }
        formulas.push(Formula { lowered, numbers });
    }
    let at = names("at", rows.elements.len());
    at.iter().for_each(|register| text.register("b64", register));
    let advance = index::advance(&mut text.slots, ranks[1], "%r", &at);
    let values = names("value", rows.values.len());
    for ((register, &dtype), address) in values.iter().zip(&rows.values).zip(&values_from) {
        text.value(dtype, register);
        text.push(&emit::load(dtype, register, address));
    }
    for k in 0..form.items {
        text.register("pred", &format!("%in{k}"));
        for (j, &dtype) in rows.elements.iter().enumerate() {
            text.value(dtype, &format!("%x{j}_{k}"));
        }
        if rows.shortcut.is_some() {
            text.value(wide, &format!("%term{k}"));
        }
    }
    ["%total", "%term", "%neutral"].iter().for_each(|register| text.value(wide, register));
    names("stat", rows.folds.len()).iter().for_each(|register| text.value(wide, register));
    let pieces = Pieces { rows, form, advance, values };
    if form.is_kept {
        text.line("mov.b32 %base, %first;");
        text.push(&pieces.load("kept"));
    }
    let start = text.take();

    let mut formulas = formulas.iter();
    let mut next = || formulas.next().expect("invariant: a formula per expression");
    for (n, fold) in rows.folds.iter().enumerate() {
        let combine = lower(rows.name, &[reduce::fold(fold.kind)], &[wide, wide])?;
        let combine = Formula { lowered: combine, numbers: Vec::new() };
        let combine = combine.text(&["%total".into(), "%term".into()], "%total");
        text.line(reduce::neutral(fold.kind, wide, "%neutral"));
        text.line(format!("mov.{} %total, %neutral;", emit::register_type(LowType::of(wide))));
        let (term, mut body) = (next(), String::new());
        for k in 0..form.items {
            body += &term.text(&pieces.inputs(k, n), "%term");
            if rows.shortcut.is_some() && n + 1 == rows.folds.len() {
                let _ = writeln!(body, "    mov.{} %term{k}, %term;", emit::register_type(LowType::of(wide)));
            }
            body += &or_neutral(wide, k);
            body += &combine;
        }
        text.push(&pieces.rounds(&format!("fold{n}"), &body));
        if form.threads > 1 {
            exchange(&mut text, wide, &combine);
        }
        if form.threads == 256 {
            text.declare(&format!("    .shared .align 8 .b8 partial{n}[64];"));
            across_warps(&mut text, n, wide, fold.kind, &combine);
        }
        match &fold.finish {
            Some(_) => text.push(&next().text(&["%total".into()], &format!("%stat{n}"))),
            None => text.line(format!("mov.{} %stat{n}, %total;", emit::register_type(LowType::of(wide)))),
        }
    }
    let folds = text.take();

    if let Some((_, dtype)) = rows.result {
        let formula = next();
        let shortcut = rows.shortcut.as_ref().map(|_| next()).filter(|_| form.is_kept);
        text.register("b64", "%put");
        let results = names("y", form.vector);
        results.iter().for_each(|register| text.value(dtype, register));
        let advance = index::advance(&mut text.slots, ranks[1], "%r", &["%put".into()]);
        let mut body = String::new();
        for first in (0..form.items).step_by(form.vector) {
            let places = first..first + form.vector;
            for (k, y) in places.clone().zip(&results) {
                body += &match shortcut {
                    Some(formula) => formula.text(&[format!("%term{k}"), format!("%stat{}", rows.folds.len() - 1)], y),
                    None => formula.text(&pieces.inputs(k, rows.folds.len()), y),
                };
            }
            let store = |body: &mut String, k: usize, registers: &[String]| {
                let _ = write!(body, "    mov.b64 %put, %to;\n    add.u32 %r, %base, {};\n", pieces.step(k));
                body.push_str(&advance);
                body.push_str(&vector::store(dtype, "%put", registers));
            };
            let last = places.end - 1;
            let tail = if form.has_tail { format!("$rest{first}") } else { format!("$past{first}") };
            let _ = writeln!(body, "    @!%in{last} bra {tail};");
            store(&mut body, first, &results);
            if form.has_tail {
                let _ = writeln!(body, "    bra $past{first};\n{tail}:");
                for (k, y) in places.zip(&results) {
                    let _ = writeln!(body, "    @!%in{k} bra $past{first};");
                    store(&mut body, k, std::slice::from_ref(y));
                }
            }
            let _ = writeln!(body, "$past{first}:");
        }
        text.push(&pieces.rounds("result", &body));
    }
    let results = text.take();

    if !rows.totals.is_empty() {
        text.register("b32", "%row");
        text.line("mov.u32 %row, %ctaid.y;");
        text.line("mad.lo.u32 %row, %row, %count, %i;");
    }
    for (&(n, dtype), to) in rows.totals.iter().zip(&totals) {
        text.advance(to, "%row", dtype.size_bytes());
        text.push(&emit::store(dtype, to, &format!("%stat{n}")));
    }
    let totals = text.take();

    let row = match form.threads {
        1 => "    mad.lo.u32 %i, %i, 256, %thread;\n    mov.b32 %lane, 0;",
        32 => "    shr.u32 %lane, %thread, 5;\n    mad.lo.u32 %i, %i, 8, %lane;\n    and.b32 %lane, %thread, 31;",
        _ => "    mov.b32 %lane, %thread;",
    };
    Ok(text
        .skeleton(include_str!("../../../kernels/rows.ptx"), rows.entry)
        .put("ROW", row)
        .put("VECTOR", form.vector.to_string())
        .put("LAST", if form.has_tail { 1 } else { form.vector }.to_string())
        .put("START", start)
        .put("FOLDS", folds)
        .put("RESULTS", results)
        .put("TOTALS", totals)
        .finish())
}

/// The term of a place that the row does not have is the value that changes nothing.
fn or_neutral(dtype: DType, k: usize) -> String {
    match LowType::of(dtype) {
        LowType::Bool => format!(
            "    {{ .reg .pred %t_m; and.pred %term, %term, %in{k}; not.pred %t_m, %in{k}; and.pred %t_m, %t_m, %neutral; \
             or.pred %term, %term, %t_m; }}\n"
        ),
        ty => format!("    selp.{} %term, %term, %neutral, %in{k};\n", emit::register_type(ty)),
    }
}

/// Folds the totals of a warp's threads: every thread gets the result.
fn exchange(text: &mut Text, dtype: DType, combine: &str) {
    for distance in [16, 8, 4, 2, 1] {
        let swap = |to: &str, of: &str| format!("shfl.sync.bfly.b32 {to}, {of}, {distance}, 31, 0xFFFFFFFF;");
        text.line(match LowType::of(dtype) {
            LowType::F32 | LowType::I32 => swap("%term", "%total"),
            LowType::F64 | LowType::I64 => format!(
                "{{ .reg .b32 %t_l, %t_h; mov.b64 {{%t_l, %t_h}}, %total; {} {} mov.b64 %term, {{%t_l, %t_h}}; }}",
                swap("%t_l", "%t_l"),
                swap("%t_h", "%t_h")
            ),
            LowType::Bool => format!(
                "{{ .reg .b32 %t_l; selp.b32 %t_l, 1, 0, %total; {} setp.ne.b32 %term, %t_l, 0; }}",
                swap("%t_l", "%t_l")
            ),
        });
        text.push(combine);
    }
}

/// Folds the totals of a block's 8 warps, one after the other: every thread gets the result.
fn across_warps(text: &mut Text, n: usize, dtype: DType, kind: ReduceKind, combine: &str) {
    text.line(format!("mov.u32 %t_shared, partial{n};"));
    text.line("shr.u32 %r, %thread, 5;");
    text.line("mad.lo.u32 %r, %r, 8, %t_shared;");
    text.line("and.b32 %t_shared, %thread, 31;");
    text.line("setp.ne.u32 %again, %t_shared, 0;");
    text.line(format!("@%again bra $put{n};"));
    text.push(&reduce::shared(dtype, "%r", "%total", true));
    text.push(&format!("$put{n}:\n"));
    text.line("bar.sync 0;");
    text.line(reduce::neutral(kind, dtype, "%total"));
    for warp in 0..8 {
        text.push(&reduce::shared(dtype, &format!("partial{n}+{}", 8 * warp), "%term", false));
        text.push(combine);
    }
}
