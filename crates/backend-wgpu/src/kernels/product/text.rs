//! The text of products: `product.wgsl`, `product_each.wgsl` and what is pasted into them.

use std::fmt::Write;

use tensor_core::expr::lower::{LowType, lower};
use tensor_core::plan::Plan;
use tensor_core::{DType, Expr, Result};

use super::{Form, Product};
use crate::args::Args;
use crate::index;
use crate::kernels::map::expressions;
use crate::kernels::rows::total;
use crate::shader::{Finished, Shader, names};

/// Vectors of shared memory from one place along k to the next: one more than a tile has, so that neither those who lie along k
/// nor those who lie across meet in a bank.
const PITCH: usize = 17;

impl Product<'_> {
    /// What [`Product::text_b`] reads.
    pub(super) fn push_b(&self, args: &mut Args, columns: &Plan, depth: &Plan) {
        if self.patches.is_empty() {
            index::push_advance(args, columns);
            index::push_advance(args, depth);
            return;
        }
        let is_spread = self.is_spread();
        index::push_coordinates(args, &columns.dims);
        let plain = |plan: &Plan| plan.strides[0][..plan.rank() - self.patches.len()].to_vec();
        plain(columns).into_iter().for_each(|stride| args.push_signed(stride));
        for axis in &self.patches {
            args.push_signed(axis.by_column);
            args.push_signed(-axis.before);
        }
        index::push_coordinates(args, &depth.dims);
        plain(depth).into_iter().for_each(|stride| args.push_signed(stride));
        self.patches.iter().for_each(|axis| args.push_signed(axis.by_depth));
        for axis in &self.patches {
            if is_spread {
                args.push(axis.divisor);
            }
            args.push(axis.size * axis.divisor);
            args.push_signed(axis.stride);
        }
    }

    /// The functions that place and fetch b; gives whether a place is a structure.
    fn text_b(&self, shader: &mut Shader, t: &str, [columns, depth]: [usize; 2]) -> bool {
        let n = self.patches.len();
        if n == 0 {
            placed(shader, "columns_b", columns);
            placed(shader, "depth_b", depth);
            shader.push(&fetch("b", t));
            return false;
        }
        let fields: String = (0..n).map(|k| format!(" c{k}: u32,")).collect();
        shader.push(&format!("struct PlaceInside {{ at: u32,{fields} }}\n"));
        for (name, rank, is_column) in [("columns_b", columns, true), ("depth_b", depth, false)] {
            let mut body = index::coordinates(shader, "i", rank, "c");
            body.push_str("    var place: PlaceInside;\n");
            for axis in 0..rank - n {
                let _ = writeln!(body, "    place.at += c{axis} * {};", shader.arg());
            }
            for k in 0..n {
                let _ = write!(body, "    place.c{k} = c{} * {}", rank - n + k, shader.arg());
                let _ = if is_column { writeln!(body, " + {};", shader.arg()) } else { writeln!(body, ";") };
            }
            shader.push(&format!("fn {name}(i: u32) -> PlaceInside {{\n{body}    return place;\n}}\n"));
        }
        let mut body = String::from("    var at = outer.at + inner.at;\n    var is_inside = true;\n");
        for k in 0..n {
            // Ahead of the first element the sum wraps to a number that no size reaches.
            let divisor = self.is_spread().then(|| shader.arg());
            let (limit, stride) = (shader.arg(), shader.arg());
            let _ = writeln!(body, "    let c{k} = outer.c{k} + inner.c{k};");
            let _ = writeln!(body, "    is_inside = is_inside && c{k} < {limit};");
            let _ = match divisor {
                Some(divisor) => writeln!(
                    body,
                    "    let q{k} = c{k} / {divisor};\n    is_inside = is_inside && q{k} * {divisor} == c{k};\n    at += q{k} * {stride};"
                ),
                None => writeln!(body, "    at += c{k} * {stride};"),
            };
        }
        let _ = writeln!(body, "    if is_inside {{\n        return load_b(at);\n    }}\n    return {t}();");
        shader.push(&format!("fn fetch_b(outer: PlaceInside, inner: PlaceInside) -> {t} {{\n{body}}}\n"));
        true
    }

    /// The kernel over operands of these types: a's and b's, then the extra inputs'.
    pub(super) fn text(&self, form: Form, dtypes: &[DType], epilogue: &Expr, ranks: [usize; 4]) -> Result<Finished> {
        let [batch_rank, rows_rank, columns_rank, depth_rank] = ranks;
        let lowered = lower(self.name, std::slice::from_ref(epilogue), dtypes)?;
        let (register, result) = lowered.results[0];
        let mut shader = Shader::new();
        let [batches, segment, depth, rows, columns, n, tasks] = std::array::from_fn(|_| shader.arg());
        let tiles = if let Form::Tile { .. } = form { [shader.arg(), shader.arg()] } else { Default::default() };
        let t = shader.type_of(dtypes[0]);
        shader.write("to", total(result));
        let extra = names("x", dtypes.len() - 1);
        extra.iter().zip(&dtypes[1..]).for_each(|(name, &dtype)| shader.read(name, dtype));
        ["a", "b"].iter().for_each(|name| shader.read(name, dtypes[0]));
        let written = std::iter::once("to").chain(extra.iter().map(String::as_str));
        let outputs: Vec<String> = written.map(|name| format!("at_{name}")).collect();
        let all: Vec<String> = outputs.iter().cloned().chain(["at_a", "at_b"].map(String::from)).collect();
        let mut places = index::places(&mut shader, batch_rank, "batch", &all);
        let _ = writeln!(places, "    at_to += part * {n};");
        let fields: String = outputs.iter().map(|name| format!(" {name}: u32,")).collect();
        shader.push(&format!("struct Place {{{fields} }}\n"));
        for (name, rank) in [("rows_to", rows_rank), ("columns_to", columns_rank)] {
            let variables: Vec<String> = outputs.iter().map(|name| format!("place.{name}")).collect();
            let body = index::advance(&mut shader, rank, "i", &variables);
            shader
                .push(&format!("fn {name}(i: u32) -> Place {{\n    var place: Place;\n{body}    return place;\n}}\n"));
        }
        placed(&mut shader, "rows_a", rows_rank);
        placed(&mut shader, "depth_a", depth_rank);
        shader.push(&fetch("a", t));
        let is_patch = self.text_b(&mut shader, t, [columns_rank, depth_rank]);
        // Bytes are summed as i32: what an epilogue sees has wrapped.
        let sum = if dtypes[0] == DType::U8 { "(sum & 0xff)" } else { "sum" };
        let at = |name: &str| format!("at_{name} + row_at.at_{name} + column_at.at_{name}");
        let loads = extra.iter().map(|name| format!("load_{name}({})", at(name)));
        let inputs: Vec<String> = std::iter::once(sum.to_string()).chain(loads).collect();
        let mut store = expressions(&mut shader, &lowered, "v", &inputs, &["result".to_string()]);
        let is_truth = lowered.instrs[register as usize].ty == LowType::Bool;
        let value = if is_truth { "select(0, 1, result)" } else { "result" };
        let _ = write!(store, "    to[{}] = {value};", at("to"));
        let entry = match form {
            Form::Each => {
                let base = if is_patch { "own_b.at" } else { "own_b" };
                include_str!("../../../shaders/product_each.wgsl").replace("{{BASE}}", base)
            }
            Form::Tile { r, step } => {
                let a = Side { name: "a", place: "rows_a", first: "first_row", limit: &rows, is_patch: false };
                let b = Side { name: "b", place: "columns_b", first: "first_column", limit: &columns, is_patch };
                tile(r, step, t, [(a, self.along[0]), (b, self.along[1])])
                    .replace("{{DOWN}}", &tiles[0])
                    .replace("{{ACROSS}}", &tiles[1])
            }
        };
        let entry = entry
            .replace("{{T}}", t)
            .replace("{{TASKS}}", &tasks)
            .replace("{{BATCHES}}", &batches)
            .replace("{{SEGMENT}}", &segment)
            .replace("{{DEPTH}}", &depth)
            .replace("{{PLACES}}", &places)
            .replace("{{ROWS}}", &rows)
            .replace("{{COLUMNS}}", &columns)
            .replace("{{STORE}}", &store);
        Ok(shader.finish(&entry))
    }
}

/// The entry point of tiles.
fn tile(r: usize, step: usize, t: &str, sides: [(Side<'_>, bool); 2]) -> String {
    let [a, b] = sides.map(|(side, is_along)| side.text(r, step, t, is_along));
    let at_once = 4;
    let components = &["x", "y", "z", "w"][..r];
    let mut products = String::new();
    for k in 0..at_once {
        let _ = writeln!(products, "            let a{k} = shared_a[at + y + {}u];", k * PITCH);
        let _ = writeln!(products, "            let b{k} = shared_b[at + x + {}u];", k * PITCH);
        for (i, component) in components.iter().enumerate() {
            let _ = writeln!(products, "            sum{i} += a{k}.{component} * b{k};");
        }
    }
    let sums: String = (0..r).map(|i| format!("    var sum{i}: vec{r}<{t}>;\n")).collect();
    // Chosen, not indexed: what is indexed may not stay in registers.
    let mut row_sums = String::from("            var sums = sum0;\n");
    let mut own_sum = String::from("                    var sum = sums.x;\n");
    for (i, component) in components.iter().enumerate().skip(1) {
        let _ = writeln!(row_sums, "            sums = select(sums, sum{i}, i == {i}u);");
        let _ = writeln!(own_sum, "                    sum = select(sum, sums.{component}, j == {i}u);");
    }
    include_str!("../../../shaders/product.wgsl")
        .replace("{{SHARED}}", &(step * PITCH).to_string())
        .replace("{{TILE}}", &(16 * r).to_string())
        .replace("{{OWN}}", &format!("{}{}{sums}", a.0, b.0))
        .replace("{{R}}", &r.to_string())
        .replace("{{STEP}}", &step.to_string())
        .replace("{{AT_ONCE}}", &at_once.to_string())
        .replace("{{PITCH}}", &PITCH.to_string())
        .replace("{{LOADS}}", &format!("{}{}", a.1, b.1))
        .replace("{{PRODUCTS}}", &products)
        .replace("{{ROW_SUMS}}", &row_sums)
        .replace("{{OWN_SUM}}", &own_sum)
}

/// fn {name}(i): how far from the beginning of an operand its i-th place is.
fn placed(shader: &mut Shader, name: &str, rank: usize) {
    let body = index::advance(shader, rank, "i", &["at".to_string()]);
    shader.push(&format!("fn {name}(i: u32) -> u32 {{\n    var at = 0u;\n{body}    return at;\n}}\n"));
}

/// fn fetch_{name}(outer, inner): the element of a plain operand.
fn fetch(name: &str, t: &str) -> String {
    format!("fn fetch_{name}(outer: u32, inner: u32) -> {t} {{\n    return load_{name}(outer + inner);\n}}\n")
}

/// How one operand's tiles come into shared memory.
struct Side<'a> {
    name: &'a str,
    /// The function that places rows or columns.
    place: &'a str,
    first: &'a str,
    limit: &'a str,
    is_patch: bool,
}

impl Side<'_> {
    /// What an invocation finds out once, and what it does at each step: it brings one vector of a tile.
    fn text(&self, r: usize, step: usize, t: &str, is_along: bool) -> (String, String) {
        let Self { name, place, first, limit, is_patch } = self;
        let (k, outer) = if is_along {
            (format!("lane % {step}u"), format!("lane / {step}u"))
        } else {
            ("lane / 16u".to_string(), "lane % 16u".to_string())
        };
        let at = if *is_patch { ".at" } else { "" };
        let mut own = format!("    let k_{name} = {k};\n    let outer_{name} = {outer};\n");
        let mut loads = format!(
            "        if lane < {}u {{
            let k = step + k_{name};
            var value: vec{r}<{t}>;
            if k < end {{
                let inner = depth_{name}(k);
",
            16 * step
        );
        for (j, component) in (0..r).zip(["x", "y", "z", "w"]) {
            let _ = write!(
                own,
                "    let place_{name}{j} = {first} + outer_{name} + {}u;
    var own_{name}{j} = {place}(place_{name}{j});
    own_{name}{j}{at} += at_{name};
",
                16 * j
            );
            let _ = write!(
                loads,
                "                if place_{name}{j} < {limit} {{
                    value.{component} = fetch_{name}(own_{name}{j}, inner);
                }}
"
            );
        }
        let _ = write!(
            loads,
            "            }}
            shared_{name}[k_{name} * {PITCH}u + outer_{name}] = value;
        }}
"
        );
        (own, loads)
    }
}
